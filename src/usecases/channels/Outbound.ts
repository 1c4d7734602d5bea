/**
 * What goes out through messaging channels (specification 6, contract 8 and 11): written with the message, sent by a job of
 * queue `channel-outbound`, part by part. A part is sent once; only when the provider's answer was lost it is sent a second
 * time, and marked so. What the agent wrote is not sent once somebody else answers.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { DedupeStore } from "../../capabilities/DedupeStore.ts"
import { JobFailure, JobQueue, type QueueJob } from "../../capabilities/JobQueue.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { Graph, GraphError, unreadable } from "../../channels/Graph.ts"
import { outboundChannels } from "../../channels/Outbound.ts"
import { split } from "../../channels/Split.ts"
import type { DeliveryStatus, InboundMessage } from "../../domain/Channel.ts"
import { type ConversationId, MessageId, newId } from "../../domain/Ids.ts"
import { type Correspondent, type OutboxPart, OutboxStore, unknownOutcome } from "../../store/Outbox.ts"
import { RealtimeFeed } from "../RealtimeFeed.ts"
import { type Post, Posts } from "./Posts.ts"
import { Sent } from "./Sent.ts"

const decode = Schema.decodeUnknown(Schema.Struct({ messageId: MessageId }))

/** For so long an outbound id is sent once (specification 6). */
const keyLasts = Duration.days(7)

const workerDied = "The worker died."

const refused = (message: string) => new GraphError({ reason: "Refused", message, retryable: false })

const keyOf = ({ id }: OutboxPart) => `outbound:${id}`

/** Before the call: nothing has been sent yet. */
const keysSilent = () =>
  new GraphError({ reason: "Refused", message: "The dedupe keys cannot be reached.", retryable: true })

const failureOf = ({ message, retryAfter, retryable }: GraphError) =>
  new JobFailure({ message, fatal: !retryable, ...(retryAfter === undefined ? {} : { retryAfter }) })

export class Outbound extends Effect.Service<Outbound>()("usecases/channels/Outbound", {
  effect: Effect.gen(function* () {
    const outbox = yield* OutboxStore
    const queue = yield* JobQueue
    const keys = yield* DedupeStore
    const box = yield* SecretBox
    const graph = yield* Graph
    const feed = yield* RealtimeFeed

    /** Joins the transaction of the caller; nothing for a conversation without a channel. */
    const post = Effect.fn("Outbound.post")(function* ({ text, ...message }: Post) {
      const found = yield* outbox.correspondent(message.conversationId)
      if (Option.isNone(found)) return
      const channel = outboundChannels[found.value.channel]
      // What a human typed stands as it is.
      const shown = message.author === "human" ? text : channel.shown(text)
      const parts = yield* Effect.forEach(split(shown, channel.limit), (body) =>
        Effect.map(newId.outbox, (id) => ({ id, body }))
      )
      if (!(yield* outbox.insert({ ...message, parts }))) return
      const { conversationId: serialKey, messageId } = message
      yield* Effect.orDie(queue.enqueue("channel-outbound", { messageId }, { serialKey }))
    })

    const call = (to: Correspondent, body: Parameters<typeof graph.post>[2]) =>
      Effect.gen(function* () {
        const token = yield* box.open("channel-token", to.accessToken)
        if (Option.isNone(token)) return yield* refused("The channel's token cannot be opened.")
        return yield* graph.post(`${to.externalId}/messages`, Redacted.make(token.value), body)
      })

    const deliver = Effect.fn("Outbound.deliver")(function* (to: Correspondent, part: OutboxPart) {
      const channel = outboundChannels[to.channel]
      const body = channel.text({ aliases: to.aliases, body: part.body, outboxId: part.id })
      if (body === null) return yield* refused("The contact has no address on this channel.")
      const id = channel.accepted(yield* call(to, body))
      if (Option.isNone(id)) return yield* unreadable()
      return id.value
    })

    /** The key is checked before every call. Held by another call, it leaves only the one repeat that is marked as such. */
    const once = Effect.fn("Outbound.once")(function* (to: Correspondent, part: OutboxPart, resent: boolean) {
      const mine = yield* Effect.mapError(keys.claim(keyOf(part), keyLasts), keysSilent)
      if (!mine && !resent) return yield* unreadable()
      return yield* deliver(to, part)
    })

    /** The key goes first: without it the part counts as one whose answer was lost. */
    const takenBack = (part: OutboxPart, reason: string) =>
      Effect.zipRight(Effect.ignore(keys.release(keyOf(part))), outbox.refused(part.id, reason))

    /**
     * From the claim to the stored answer nothing gets in between: a call that was begun is waited for, its time-out being
     * the limit, so that only a process that dies leaves its outcome unknown.
     */
    const send = Effect.fn("Outbound.send")(function* (to: Correspondent, part: OutboxPart) {
      const claimed = yield* outbox.claim(part.id)
      if (Option.isNone(claimed)) return
      const { resent, state } = claimed.value
      if (state === "failed") return yield* refused(unknownOutcome)
      if (state !== "sending") return
      if (resent) yield* Effect.logWarning("A message whose answer was lost is sent again", part.id)
      const calling = yield* Effect.forkDaemon(Effect.interruptible(once(to, part, resent)))
      yield* Fiber.join(calling).pipe(
        Effect.flatMap((id) => outbox.sent(part.id, id)),
        Effect.tapError(({ message, reason }) =>
          reason === "Refused" ? takenBack(part, message) : Effect.void
        )
      )
    }, Effect.uninterruptible)

    const sendAll = Effect.fn("Outbound.sendAll")(function* (
      conversationId: ConversationId,
      parts: ReadonlyArray<OutboxPart>
    ) {
      const found = yield* outbox.correspondent(conversationId)
      if (Option.isNone(found) || !found.value.active) {
        return yield* refused("The channel of the conversation is not active any more.")
      }
      for (const part of parts) {
        if (part.state === "failed") return yield* refused(part.lastError ?? unknownOutcome)
        yield* send(found.value, part)
      }
    })

    const giveUp = Effect.fn("Outbound.giveUp")(function* (
      messageId: MessageId,
      conversationId: ConversationId,
      reason: string
    ) {
      yield* outbox.fail(messageId, reason)
      yield* Effect.logError("A message could not be sent", messageId, reason)
      yield* feed.changed(conversationId, null)
    })

    /** Handles a job of `channel-outbound`: the parts of one message in order, as far as they are not settled. */
    const process = Effect.fn("Outbound.process")(function* (job: QueueJob) {
      const { messageId } = yield* Effect.orDie(decode(job.payload))
      if (job.attempt === 1) yield* outbox.reopen(messageId)
      const parts = yield* outbox.parts(messageId)
      const [first] = parts
      if (first === undefined) return
      yield* sendAll(first.conversationId, parts).pipe(
        Effect.tapError(({ message, retryable }) =>
          retryable && !job.lastAttempt ? Effect.void : giveUp(messageId, first.conversationId, message)
        ),
        Effect.mapError(failureOf)
      )
    })

    /** The worker of the last attempt died. */
    const abandoned = Effect.fn("Outbound.abandoned")(function* (job: QueueJob) {
      const { messageId } = yield* Effect.orDie(decode(job.payload))
      const [first] = yield* outbox.parts(messageId)
      if (first !== undefined) yield* giveUp(messageId, first.conversationId, workerDied)
    })

    /** Shows the contact that their message was read and an answer is being written; best effort. */
    const seen = Effect.fn("Outbound.seen")(function* (conversationId: ConversationId) {
      const found = yield* outbox.correspondent(conversationId)
      if (Option.isNone(found) || !found.value.active || found.value.lastMessageId === null) return
      const to = found.value
      const bodies = outboundChannels[to.channel].seen(to.aliases, found.value.lastMessageId)
      yield* Effect.forEach(bodies, (body) => call(to, body), { discard: true }).pipe(
        Effect.catchAll(({ message }) => Effect.logDebug("A message could not be marked as read", message))
      )
    })

    /** True when `echo` repeats a message that this service has sent. */
    const ours = (echo: InboundMessage) => Effect.withSpan(outbox.ours(echo), "Outbound.ours")

    /** Notes how far a message has come; only forward. */
    const delivered = (status: DeliveryStatus) =>
      Effect.withSpan(outbox.delivered(status), "Outbound.delivered")

    return { post, process, abandoned, seen, ours, delivered } as const
  })
}) {}

/** What those who write messages, and those who take deliveries, see of it. */
export const layerPorts: Layer.Layer<Posts | Sent, never, Outbound> = Layer.merge(
  Layer.effect(
    Posts,
    Effect.map(Outbound, ({ post, seen }) => ({ post, seen }))
  ),
  Layer.effect(
    Sent,
    Effect.map(Outbound, ({ delivered, ours }) => ({ delivered, ours }))
  )
)
