/**
 * Outgoing channel messages. They are queued with the message and sent by a job of queue `channel-outbound`, part by
 * part. A part is sent once; only when the provider's answer was lost it is sent a second time, and marked so. An
 * agent's reply is not sent once a human answers.
 * The invariants are in docs/design/channels.md.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { ArtifactStore } from "../../capabilities/ArtifactStore.ts"
import {
  type CarriedFile,
  type ChannelAdapter,
  ChannelAdapters,
  type ChannelFile,
  type ChannelRecipient,
  ChannelError,
  channelRefusal
} from "../../capabilities/ChannelAdapters.ts"
import { DedupeStore } from "../../capabilities/DedupeStore.ts"
import { JobFailure, JobQueue, type QueueJob } from "../../capabilities/JobQueue.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { split, splitFormatted } from "../../channels/SplitText.ts"
import { retryDuringOutage } from "../../concurrency/DatabaseOutage.ts"
import type { StoredAttachment } from "../../domain/channels/Attachment.ts"
import { withSharedPermit } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import type { DeliveryStatus, InboundMessage } from "../../domain/channels/Channel.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { type ConversationId, MessageId, newId, TenantId } from "../../domain/Ids.ts"
import {
  type OutboxRecipient,
  type OutboxPart,
  OutboxStore,
  unknownOutcome
} from "../../store/channels/Outbox.ts"
import { makeChannelHealth } from "../../store/channels/ChannelHealth.ts"
import { type Changed, ConversationStates } from "../../store/conversations/ConversationStates.ts"
import { retryDeadlocks } from "../../store/Deadlock.ts"
import * as TurnMetrics from "../chat/TurnMetrics.ts"
import { RealtimeFeed } from "../conversations/RealtimeFeed.ts"
import { ChannelSettings } from "./ChannelSettings.ts"
import { accessOf } from "./ChannelAccess.ts"
import { type Post, ChannelSender } from "./ChannelSender.ts"
import { DeliveryReceipts } from "./DeliveryReceipts.ts"

const decode = Schema.decodeUnknown(Schema.Struct({ tenantId: TenantId, messageId: MessageId }))

/** Time for which an outbound id is sent only once. */
const keyLifetime = Duration.days(7)

const workerDied = "The worker died."

const callInProgress = () =>
  new ChannelError({
    reason: "Unknown",
    message: "Another call of the message is under way.",
    retryable: true
  })

/** Maximum files in memory that are being sent. */
const concurrentFiles = { permits: 4, maxPermitsPerOwner: 2, maxWaiting: 1_024 } as const

/** The text and then the files. A single file with a text short enough becomes one part with a caption. */
const partsOf = (
  adapter: ChannelAdapter | null,
  author: Post["author"],
  text: string,
  attachments: ReadonlyArray<StoredAttachment>
): ReadonlyArray<{ readonly body: string; readonly media?: StoredAttachment }> => {
  // The job of this part reports that the channel no longer exists.
  if (adapter === null) return [{ body: text }]
  const { maxCaptionLength, maxTextLength, formatText } = adapter
  // Text of a human is sent unchanged.
  const texts =
    author === "human" ? split(text, maxTextLength) : splitFormatted(formatText(text), maxTextLength)
  const [first = "", ...more] = texts
  const [media, ...others] = attachments
  if (media !== undefined && others.length === 0 && more.length === 0 && first.length <= maxCaptionLength)
    return [{ body: first, media }]
  return [...texts.map((body) => ({ body })), ...attachments.map((media) => ({ body: "", media }))]
}

const carriedFileOf = (
  { fileTypes }: ChannelAdapter,
  { mimeType }: StoredAttachment
): CarriedFile | undefined => Object.entries(fileTypes).find(([type]) => type === mimeType)?.[1]

/** As a refusal: the part was not sent, although its file may have been uploaded. */
const asRefusal = ({ message, retryable }: ChannelError) => channelRefusal(message, retryable)

const keyOf = ({ id }: OutboxPart) => `outbound:${id}`

/** A restart of the dedupe store takes seconds. Each attempt waits for its end, for about 5 seconds. */
const keysRetries = Schedule.upTo(Schedule.spaced("500 millis"), "5 seconds")

/** The attempts of a message together span a longer outage of the dedupe store. */
const keysRetryAfter = Duration.minutes(1)

/** A refusal, because nothing has been sent before the key is claimed. */
const keysUnreachable = () =>
  new ChannelError({
    reason: "Refused",
    message: "The dedupe keys cannot be reached.",
    retryable: true,
    retryAfter: keysRetryAfter
  })

const tooManyFiles = () => channelRefusal("Too many files are being sent.", true)

const failureOf = ({ message, retryAfter, retryable }: ChannelError) =>
  new JobFailure({ message, fatal: !retryable, ...(retryAfter === undefined ? {} : { retryAfter }) })

interface Recipient extends ChannelRecipient, TenantScope, Pick<OutboxRecipient, "channelId" | "failures"> {}

export class Outbound extends Effect.Service<Outbound>()("usecases/channels/Outbound", {
  effect: Effect.gen(function* () {
    const outbox = yield* OutboxStore
    const queue = yield* JobQueue
    const keys = yield* DedupeStore
    const box = yield* SecretBox
    const { appId } = yield* ChannelSettings
    const sql = yield* SqlClient.SqlClient
    const states = yield* ConversationStates
    const adapters = yield* ChannelAdapters
    const artifacts = yield* ArtifactStore
    const fileLimiter = new FairLimiter({ name: "channel-outbound-files", ...concurrentFiles })
    const feed = yield* RealtimeFeed
    const health = yield* makeChannelHealth

    const adapterOf = ({ channel }: OutboxRecipient) => {
      const adapter = adapters.named(channel)
      return adapter === null
        ? channelRefusal("The channel no longer exists in this service.")
        : Effect.succeed(adapter)
    }

    const recipientOf = ({ aliases, context, ...to }: OutboxRecipient) =>
      Effect.map(accessOf(box, to), (access): Recipient => ({
        ...access,
        aliases,
        context: context ?? {},
        tenantId: to.tenantId,
        channelId: to.channelId,
        failures: to.failures
      }))

    /** Records in the channel's health whether its provider answered `call`. */
    const recordHealth = <A>(to: Recipient, call: Effect.Effect<A, ChannelError>) =>
      Effect.tapBoth(call, {
        onFailure: () => health.recordFailure(to, to.channelId),
        onSuccess: () => (to.failures > 0 ? health.recordSuccess(to, to.channelId) : Effect.void)
      })

    /** Queues the message in the caller's transaction. Does nothing for a conversation without a channel. */
    const post = Effect.fn("Outbound.post")(function* ({ attachments = [], text, ...message }: Post) {
      const found = yield* outbox.recipientOf(message, message.conversationId)
      if (Option.isNone(found)) return
      const adapter = adapters.named(found.value.channel)
      const parts = yield* Effect.forEach(partsOf(adapter, message.author, text, attachments), (part) =>
        Effect.map(newId.outbox, (id) => ({ id, ...part }))
      )
      if (!(yield* outbox.insert({ ...message, parts }))) return
      const { conversationId: serialKey, messageId, tenantId } = message
      yield* Effect.orDie(queue.enqueue("channel-outbound", { tenantId, messageId }, { serialKey }))
    })

    /**
     * The file of a part. It is uploaded first where the provider requires it; uploading does not show it to the
     * customer.
     */
    const fileOf = Effect.fn("Outbound.fileOf")(function* (
      adapter: ChannelAdapter,
      to: Recipient,
      media: StoredAttachment
    ) {
      const carried = carriedFileOf(adapter, media)
      if (carried === undefined)
        return yield* channelRefusal("The channel does not carry files of this type.")
      const found = yield* Effect.mapError(artifacts.get(media.artifact), ({ message }) =>
        channelRefusal(message, true)
      )
      if (Option.isNone(found)) return yield* channelRefusal("The file is gone.")
      const file = { as: carried.as, name: media.name, mimeType: media.mimeType, bytes: found.value }
      const uploaded = adapter.upload === undefined ? null : yield* recordHealth(to, adapter.upload(to, file))
      const ready: ChannelFile = { ...file, uploaded }
      return ready
    }, Effect.mapError(asRefusal))

    /**
     * Claims the dedupe key before every call. When another call has the key, only a part that is marked as resent is
     * sent.
     */
    const sendOnce = Effect.fn("Outbound.sendOnce")(function* (
      adapter: ChannelAdapter,
      to: Recipient,
      part: OutboxPart,
      file: ChannelFile | null,
      resent: boolean
    ) {
      const isClaimed = yield* keys.claim(keyOf(part), keyLifetime).pipe(
        // The key may have been claimed although the answer was lost.
        Effect.tapError(() => Effect.ignore(keys.release(keyOf(part)))),
        Effect.retry(keysRetries),
        Effect.mapError(keysUnreachable)
      )
      if (!isClaimed && !resent) return yield* callInProgress()
      return yield* recordHealth(
        to,
        adapter.send(to, { body: part.body, author: part.author, outboxId: part.id, file })
      )
    })

    /** Releases the key first: otherwise the part would count as one whose answer was lost. */
    const recordRefusal = (to: Recipient, part: OutboxPart, reason: string) =>
      retryDuringOutage(
        Effect.zipRight(Effect.ignore(keys.release(keyOf(part))), outbox.markRefused(to, part.id, reason))
      )

    /**
     * Sends one part. Interruption waits until the started call has ended or timed out and its answer is stored, so
     * that only the death of the process leaves an unknown outcome.
     */
    const send = Effect.fn("Outbound.send")(function* (
      adapter: ChannelAdapter,
      to: Recipient,
      part: OutboxPart,
      file: ChannelFile | null
    ) {
      const claimed = yield* outbox.claim(to, part.id)
      if (Option.isNone(claimed)) return
      const { resent, state } = claimed.value
      if (state === "failed") return yield* channelRefusal(unknownOutcome)
      if (state !== "sending") return
      if (resent) yield* Effect.logWarning("A message whose answer was lost is sent again", part.id)
      const callFiber = yield* Effect.forkDaemon(
        Effect.interruptible(sendOnce(adapter, to, part, file, resent))
      )
      yield* Fiber.join(callFiber).pipe(
        // Otherwise the customer would get the message again.
        Effect.flatMap((id) => retryDuringOutage(outbox.markSent(to, part.id, id))),
        Effect.tapError(({ message, reason }) =>
          reason === "Refused" ? recordRefusal(to, part, message) : Effect.void
        )
      )
    }, Effect.uninterruptible)

    /** A file stays in memory until it is sent, so the number of files is limited. */
    const sendPart = (adapter: ChannelAdapter, to: Recipient, part: OutboxPart) => {
      const { media, state } = part
      if (media === null || (state !== "pending" && state !== "sending")) return send(adapter, to, part, null)
      return fileOf(adapter, to, media).pipe(
        Effect.flatMap((file) => send(adapter, to, part, file)),
        withSharedPermit(fileLimiter, tooManyFiles)
      )
    }

    const sendAll = Effect.fn("Outbound.sendAll")(function* (
      scope: TenantScope,
      conversationId: ConversationId,
      parts: ReadonlyArray<OutboxPart>
    ) {
      const found = yield* outbox.recipientOf(scope, conversationId)
      if (Option.isNone(found) || !found.value.active) {
        return yield* channelRefusal("The channel of the conversation is no longer active.")
      }
      const adapter = yield* adapterOf(found.value)
      const to = yield* recipientOf(found.value)
      for (const part of parts) {
        if (part.state === "failed") return yield* channelRefusal(part.lastError ?? unknownOutcome)
        yield* sendPart(adapter, to, part)
      }
    })

    /** After a permanent refusal a human has to reach the customer in another way. Needs a transaction. */
    const requestHuman = (scope: TenantScope, conversationId: ConversationId, reason: string) =>
      states.change(scope, conversationId, {
        from: ["AI_ACTIVE"],
        to: "HUMAN_REQUESTED",
        reason,
        unanswered: "human"
      })

    /** Runs the change of parts and the requests for humans that follow from it in one transaction. */
    const handOver = <A>(
      change: Effect.Effect<A>,
      requests: (changed: A) => ReadonlyArray<Effect.Effect<Option.Option<Changed>>>
    ) =>
      Effect.gen(function* () {
        const changed = yield* change
        return { changed, requested: yield* Effect.all(requests(changed)) }
      }).pipe(
        sql.withTransaction,
        Effect.orDie,
        retryDeadlocks,
        Effect.tap(({ requested }) =>
          Effect.forEach(requested.filter(Option.isSome), () => TurnMetrics.handedOver("service"))
        ),
        Effect.map(({ changed }) => changed)
      )

    /** Sends no more of a message. `refused`: the provider refused it for good, so a human is requested. */
    const giveUp = Effect.fn("Outbound.giveUp")(function* (
      scope: TenantScope,
      messageId: MessageId,
      conversationId: ConversationId,
      reason: string,
      { refused }: { readonly refused: boolean }
    ) {
      yield* retryDuringOutage(
        handOver(outbox.fail(scope, messageId, reason), () =>
          refused && reason !== unknownOutcome ? [requestHuman(scope, conversationId, reason)] : []
        )
      )
      yield* Effect.logError("A message could not be sent", messageId, reason)
      yield* feed.changed(conversationId, null)
    })

    /** Handles a job of `channel-outbound`: sends the unsettled parts of one message in order. */
    const process = Effect.fn("Outbound.process")(function* (job: QueueJob) {
      const { messageId, ...scope } = yield* Effect.orDie(decode(job.payload))
      if (job.attempt === 1) yield* outbox.reopen(scope, messageId)
      const parts = yield* outbox.parts(scope, messageId)
      const [first] = parts
      if (first === undefined) return
      yield* sendAll(scope, first.conversationId, parts).pipe(
        Effect.tapError(({ message, retryable }) =>
          retryable && !job.lastAttempt
            ? Effect.void
            : giveUp(scope, messageId, first.conversationId, message, { refused: !retryable })
        ),
        Effect.mapError(failureOf)
      )
    })

    /** The worker of the last attempt died. */
    const failAbandoned = Effect.fn("Outbound.failAbandoned")(function* (job: QueueJob) {
      const { messageId, ...scope } = yield* Effect.orDie(decode(job.payload))
      const [first] = yield* outbox.parts(scope, messageId)
      if (first !== undefined)
        yield* giveUp(scope, messageId, first.conversationId, workerDied, { refused: false })
    })

    /** Shows the contact that their message was read and an answer is being written. Errors are only logged. */
    const markSeen = Effect.fn("Outbound.markSeen")(function* (
      scope: TenantScope,
      conversationId: ConversationId
    ) {
      const found = yield* outbox.recipientOf(scope, conversationId)
      if (Option.isNone(found) || !found.value.active || found.value.lastMessageId === null) return
      const { lastMessageId } = found.value
      yield* Effect.gen(function* () {
        const adapter = yield* adapterOf(found.value)
        yield* adapter.markSeen(yield* recipientOf(found.value), lastMessageId)
      }).pipe(
        Effect.catchAll(({ message }) => Effect.logDebug("A message could not be marked as read", message))
      )
    })

    /** True when `echo` repeats a message that this service sent, by its app, metadata or id. */
    const isOwn = (echo: InboundMessage) =>
      appId !== null && echo.origin?.appId === appId
        ? Effect.succeed(true)
        : Effect.withSpan(outbox.isOwn(echo), "Outbound.isOwn")

    /**
     * Records the delivery state of a message; a state never goes back. Providers also refuse by a status what they had
     * accepted.
     */
    const recordDelivery = Effect.fn("Outbound.recordDelivery")(function* (status: DeliveryStatus) {
      const record = outbox.recordDelivery(status)
      if (status.delivery !== "failed") return yield* Effect.asVoid(record)
      const parts = yield* handOver(record, (failed) =>
        failed.map(({ conversationId, lastError, tenantId }) =>
          requestHuman({ tenantId }, conversationId, lastError ?? "")
        )
      )
      for (const { conversationId } of parts) yield* feed.changed(conversationId, null)
    })

    return { post, process, failAbandoned, markSeen, isOwn, recordDelivery } as const
  })
}) {}

/** The interfaces for code that writes messages and code that receives deliveries. */
export const layerPorts: Layer.Layer<ChannelSender | DeliveryReceipts, never, Outbound> = Layer.merge(
  Layer.effect(
    ChannelSender,
    Effect.map(Outbound, ({ post, markSeen }) => ({ post, markSeen }))
  ),
  Layer.effect(
    DeliveryReceipts,
    Effect.map(Outbound, ({ isOwn, recordDelivery }) => ({ isOwn, recordDelivery }))
  )
)
