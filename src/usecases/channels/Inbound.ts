/**
 * Processes channel events, one job per event. A message is stored in its contact's conversation in one transaction.
 * Then the agent answers, unless a human has the conversation. Every step is idempotent: nothing is stored or answered
 * twice.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Data from "effect/Data"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { ChannelAdapters } from "../../capabilities/ChannelAdapters.ts"
import { JobFailure, JobQueue, type JobQueueError, type QueueJob } from "../../capabilities/JobQueue.ts"
import { RateLimiter } from "../../capabilities/RateLimiter.ts"
import type { AliasUpdate, InboundMessage } from "../../domain/channels/Channel.ts"
import { ConversationChannel } from "../../domain/conversations/Conversation.ts"
import { AgentId, ConversationId, type EndUserId, InboundEventId, newId, TenantId } from "../../domain/Ids.ts"
import {
  ChannelConversationStore,
  type MessageParties,
  type OpenConversation,
  type Route
} from "../../store/channels/ChannelConversations.ts"
import { ContactStore } from "../../store/channels/Contacts.ts"
import { ConversationStates } from "../../store/conversations/ConversationStates.ts"
import { InboundEvents } from "../../store/channels/InboundEvents.ts"
import { sweepBatchSize, UnansweredStore } from "../../store/channels/Unanswered.ts"
import { ChatTurn } from "../chat/ChatTurn.ts"
import * as TurnMetrics from "../chat/TurnMetrics.ts"
import { Handoff } from "../conversations/Handoff.ts"
import { ConversationControl } from "../conversations/ConversationControl.ts"
import { RealtimeFeed } from "../conversations/RealtimeFeed.ts"
import { Attachments } from "../chat/widget/Attachments.ts"
import * as Content from "./Content.ts"
import { withOwner, workFor } from "../../concurrency/CurrentOwner.ts"
import { InboundFiles } from "./InboundFiles.ts"
import { ChannelSender } from "./ChannelSender.ts"
import { DeliveryReceipts } from "./DeliveryReceipts.ts"

/** A message older than this by the provider's clock is stored and left to a human. The agent does not answer it. */
const maxReplyAge = Duration.minutes(15)
/** An unanswered message of this age has no job any more: all attempts have ended by then. */
const maxJobAge = Duration.minutes(7)
/** Maximum checks, and their interval, for the end of another turn of the conversation. */
const maxTurnPolls = 240
const turnPollInterval = Duration.millis(500)
/** Time-out for the read mark at the provider: the answer is more important. */
const markSeenTimeout = Duration.seconds(5)

/** The conversation to answer. */
const ConversationRef = Schema.Struct({
  tenantId: TenantId,
  agentId: AgentId,
  conversationId: ConversationId,
  channel: ConversationChannel
})
type ConversationRef = typeof ConversationRef.Type

const Payload = Schema.Union(Schema.Struct({ inboxId: InboundEventId }), ConversationRef)
const decode = Schema.decodeUnknown(Payload)

const fatalFailure = (message: string) => new JobFailure({ message, fatal: true })
const retryableFailure = (message: string) => new JobFailure({ message, fatal: false })

/** The contact was erased while a job processed their event: nothing of it is stored. */
class ErasedEvent extends Data.TaggedError("ErasedEvent") {}

const partiesOf = (event: InboundMessage | AliasUpdate): MessageParties => ({
  channel: event.channel,
  accountId: event.accountId,
  aliases: event._tag === "Message" ? event.from : event.aliases
})

export class Inbound extends Effect.Service<Inbound>()("usecases/channels/Inbound", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const queue = yield* JobQueue
    const inbox = yield* InboundEvents
    const contacts = yield* ContactStore
    const conversations = yield* ChannelConversationStore
    const states = yield* ConversationStates
    const unanswered = yield* UnansweredStore
    const chat = yield* ChatTurn
    const handoff = yield* Handoff
    const control = yield* ConversationControl
    const feed = yield* RealtimeFeed
    const sender = yield* ChannelSender
    const receipts = yield* DeliveryReceipts
    const files = yield* InboundFiles
    const attachments = yield* Attachments
    const adapters = yield* ChannelAdapters
    const limiter = yield* RateLimiter

    const inTransaction = <A, E>(work: Effect.Effect<A, E>) =>
      sql.withTransaction(work).pipe(Effect.catchTag("SqlError", Effect.die))

    const findRoute = Effect.fn("Inbound.findRoute")(function* (id: InboundEventId, from: MessageParties) {
      const route = yield* conversations.route(from)
      if (Option.isSome(route)) {
        yield* workFor(route.value.tenantId)
        return route.value
      }
      const reason = "There is no active configuration of this channel for the account, or more than one."
      yield* inbox.markFailed(id, reason)
      return yield* fatalFailure(reason)
    })

    /**
     * True when the sender has reached the channel's limit of answers. False when the counter is unavailable. Counts
     * the message, so it runs in the transaction that stores it: another attempt does not count it again. It uses a
     * savepoint, because a failed statement would otherwise abort that transaction.
     */
    const isOverLimit = ({ accountId, channel, kind, sender }: InboundMessage) => {
      const limit = adapters.named(channel)?.senderLimit
      if (limit === undefined || sender === undefined || kind === "echo") return Effect.succeed(false)
      return limiter.take(`channel-sender:${channel}:${accountId}:${sender}`, limit).pipe(
        sql.withTransaction,
        Effect.map(({ granted }) => !granted),
        Effect.catchAll(({ message }) =>
          Effect.as(Effect.logWarning("A sender is not counted", message), false)
        )
      )
    }

    /** The reason why the agent does not answer the message, or null. */
    const reasonForSilence = Effect.fn("Inbound.reasonForSilence")(function* (
      event: InboundMessage,
      { state }: OpenConversation,
      overLimit: boolean
    ) {
      if (event.standby) return "standby"
      if (state !== "AI_ACTIVE") return "human"
      if (overLimit) return "loop"
      const age = DateTime.distanceDuration(event.timestamp, yield* DateTime.now)
      const late = DateTime.lessThan(event.timestamp, yield* DateTime.now)
      return late && Duration.greaterThan(age, maxReplyAge) ? "stale" : null
    })

    /** A team member wrote it outside Spoke: humans answer the conversation from now on. */
    const takeOver = (route: Route, { id }: OpenConversation) =>
      states.change(route, id, {
        from: ["AI_ACTIVE", "HUMAN_REQUESTED", "HUMAN_ACTIVE"],
        to: "HUMAN_ACTIVE",
        unanswered: "human"
      })

    /** The agent does not answer an old message: a human is requested. */
    const requestHuman = (route: Route, { id }: OpenConversation) =>
      states.change(route, id, {
        from: ["AI_ACTIVE"],
        to: "HUMAN_REQUESTED",
        reason: "The message arrived too late for the agent to answer.",
        unanswered: "stale"
      })

    const append = Effect.fn("Inbound.append")(function* (
      route: Route,
      event: InboundMessage,
      conversation: OpenConversation
    ) {
      const now = yield* DateTime.now
      const echo = event.kind === "echo"
      const overLimit = yield* isOverLimit(event)
      const answeredBy = echo ? null : yield* reasonForSilence(event, conversation, overLimit)
      yield* conversations.append(route, conversation.id, {
        id: yield* newId.message,
        channelMessageId: event.messageId,
        content: Content.textOf(event),
        author: echo ? "human" : "contact",
        writtenAt: DateTime.min(event.timestamp, now),
        answeredBy,
        context: event.context ?? null
      })
      if (echo) yield* takeOver(route, conversation)
      if (answeredBy === "stale") yield* requestHuman(route, conversation)
      return { conversationId: conversation.id, fresh: true, outcome: echo ? "human" : answeredBy }
    })

    const appendOnce = Effect.fn("Inbound.appendOnce")(function* (
      route: Route,
      event: InboundMessage,
      endUserId: EndUserId,
      fresh: ConversationId
    ) {
      const known = yield* conversations.findByMessage(route, endUserId, event.messageId)
      if (known !== null) return { conversationId: known, fresh: false, outcome: null }
      const conversation = yield* conversations.open(route, event.channel, endUserId, fresh)
      return yield* append(route, event, conversation)
    })

    /**
     * Stores contact, conversation and message in one transaction, and marks the event as processed. Of several
     * concurrent events, the last one finds no other waiting and answers them all.
     */
    const store = Effect.fn("Inbound.store")(function* (
      id: InboundEventId,
      route: Route,
      event: InboundMessage
    ) {
      const from = { tenantId: route.tenantId, ...partiesOf(event) }
      const freshUser = yield* newId.endUser
      const freshConversation = yield* newId.conversation
      const work = Effect.gen(function* () {
        const endUserId = (yield* contacts.resolve(from, freshUser)) ?? freshUser
        const stored = yield* appendOnce(route, event, endUserId, freshConversation)
        // Last: an erasure that this transaction has waited for has deleted the event.
        if (!(yield* inbox.markProcessed(id, stored.outcome ?? "with a later message")))
          return yield* new ErasedEvent()
        return stored
      })
      const stored = yield* inTransaction(work)
      if (!stored.fresh) return stored
      if (stored.outcome === "stale") yield* TurnMetrics.handedOver("service")
      yield* event.kind === "echo" || stored.outcome === "stale"
        ? control.announce(route.tenantId, stored.conversationId)
        : feed.changed(stored.conversationId, null)
      return stored
    }, Effect.uninterruptible)

    /** Merges two aliases of one person. An unknown pair is ignored: that person has not written yet. */
    const mergeAliases = Effect.fn("Inbound.mergeAliases")(function* (route: Route, event: AliasUpdate) {
      yield* inTransaction(contacts.resolve({ tenantId: route.tenantId, ...partiesOf(event) }, null))
    })

    const runTurn = Effect.fn("Inbound.runTurn")(function* ({
      agentId,
      channel,
      conversationId,
      tenantId
    }: ConversationRef) {
      for (let attempt = 1; ; attempt++) {
        const now = yield* DateTime.now
        const outcome = yield* chat.answer(
          { tenantId, agentId },
          {
            conversationId,
            channel,
            now,
            queueTimeout: maxReplyAge,
            files: (stored) => attachments.ofConversation({ tenantId, agentId }, stored),
            post: ({ content, handedOff, id }, epoch) =>
              sender.post({
                tenantId,
                conversationId,
                messageId: id,
                // The hand-over notice is sent even when a human answers first.
                author: handedOff ? "system" : "agent",
                epoch,
                text: content
              })
          }
        )
        if (outcome._tag !== "Busy" || attempt >= maxTurnPolls) return outcome
        yield* Effect.sleep(turnPollInterval)
      }
    })

    /** Runs the turn that answers the waiting messages. Returns the reason why there is no answer, or null. */
    const answer = Effect.fn("Inbound.answer")(function* (job: QueueJob, conversation: ConversationRef) {
      const outcome = yield* runTurn(conversation)
      const requestHandoff = (unanswered: "quota" | "loop" | "failed", reason: string) =>
        handoff.request(conversation, conversation.conversationId, {
          reason,
          by: "service",
          unanswered,
          notifyCustomer: unanswered === "failed"
        })
      switch (outcome._tag) {
        case "Answered":
        case "Nothing":
          return null
        case "Inactive":
          return "human"
        case "Busy":
          return yield* retryableFailure("Another turn of the conversation takes too long.")
        case "Exhausted":
          yield* requestHandoff("quota", "The chat turns of this period are used up.")
          return "quota"
        case "Looping":
          yield* requestHandoff("loop", "There were too many replies in a short time.")
          return "loop"
        case "Failed": {
          const code = outcome.failure._tag
          if (!job.lastAttempt && outcome.repeatable) return yield* retryableFailure(code)
          yield* requestHandoff("failed", "The agent could not answer.")
          return yield* fatalFailure(code)
        }
      }
    })

    /** True when files were attached. If they cannot be stored now, another attempt does it; the last one goes on. */
    const attachFiles = (job: QueueJob, ...given: Parameters<typeof files.attach>) =>
      Effect.catchAll(files.attach(...given), ({ message }) =>
        job.lastAttempt ? Effect.succeed(false) : Effect.fail(retryableFailure(message))
      )

    const processMessage = Effect.fn("Inbound.processMessage")(function* (
      job: QueueJob,
      id: InboundEventId,
      event: InboundMessage
    ) {
      const route = yield* findRoute(id, partiesOf(event))
      if (event.kind === "echo" && (yield* receipts.isOwn(event)))
        return yield* Effect.asVoid(inbox.markProcessed(id, "ours"))
      const stored = yield* store(id, route, event).pipe(
        Effect.asSome,
        Effect.catchTag("ErasedEvent", () => Effect.succeedNone)
      )
      if (Option.isNone(stored)) return
      const { conversationId, outcome } = stored.value
      if (yield* attachFiles(job, route, conversationId, event)) yield* feed.changed(conversationId, null)
      if (event.media.some(({ data }) => data !== undefined)) yield* inbox.removeFiles(id)
      // Consecutive messages get one answer, by the job of the last one.
      if (yield* inbox.hasWaitingMessage(event)) return
      const { agentId, tenantId } = route
      const conversation: ConversationRef = { tenantId, agentId, conversationId, channel: event.channel }
      if (outcome === null) {
        yield* sender
          .markSeen({ tenantId }, conversationId)
          .pipe(Effect.timeout(markSeenTimeout), Effect.ignore, Effect.fork)
      }
      const answered = yield* answer(job, conversation).pipe(
        Effect.tapError((failure) => (failure.fatal ? inbox.markFailed(id, failure.message) : Effect.void))
      )
      yield* inbox.markProcessed(id, outcome ?? answered)
    })

    const processEvent = Effect.fn("Inbound.processEvent")(function* (job: QueueJob, id: InboundEventId) {
      const found = yield* inbox.event(id)
      if (found === null) return
      if (found.event._tag === "Message") return yield* processMessage(job, id, found.event)
      yield* mergeAliases(yield* findRoute(id, partiesOf(found.event)), found.event)
      yield* inbox.markProcessed(id, null)
    })

    /** Handles a job of `channel-inbound`. Fatal when another attempt cannot help; an operator may retry it later. */
    const process = Effect.fn("Inbound.process")(function* (job: QueueJob) {
      const payload = yield* decode(job.payload).pipe(
        Effect.mapError(() => fatalFailure("The job names no event and no conversation."))
      )
      yield* "inboxId" in payload ? processEvent(job, payload.inboxId) : answer(job, payload)
    }, Effect.asVoid)

    /** The worker of the last attempt died. {@link sweep} finds what it had stored. */
    const failAbandoned = Effect.fn("Inbound.failAbandoned")(function* (job: QueueJob) {
      const payload = yield* Effect.option(decode(job.payload))
      if (Option.isSome(payload) && "inboxId" in payload.value) {
        yield* inbox.markFailed(payload.value.inboxId, "The worker died.")
      }
    })

    /**
     * Finds stored messages without an answer whose job died. Fresh ones are queued again; for older ones a human is
     * requested. True when there may be more.
     */
    const sweep = Effect.gen(function* () {
      const now = yield* DateTime.now
      const found = yield* unanswered.listForgotten(
        DateTime.subtractDuration(now, maxJobAge),
        DateTime.subtractDuration(now, maxReplyAge)
      )
      for (const { fresh, ...conversation } of found) {
        const work: Effect.Effect<unknown, JobQueueError> = fresh
          ? queue.enqueue("channel-inbound", conversation, { serialKey: conversation.conversationId })
          : handoff.request(conversation, conversation.conversationId, {
              reason: "The agent did not answer in time.",
              by: "service",
              unanswered: "stale"
            })
        // The job is the tenant's, so that tenants share the workers.
        yield* withOwner(conversation.tenantId)(work)
      }
      return found.length === sweepBatchSize
    }).pipe(Effect.withSpan("Inbound.sweep"))

    return { process, failAbandoned, sweep } as const
  })
}) {}
