/**
 * The events of one conversation for the realtime socket. Messages are read from the database by position, so lost
 * signals do not matter: no message is missed or repeated, and a slow reader only reads later.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Realtime, type Signal } from "../../capabilities/Realtime.ts"
import { redactedForEndUser } from "../../domain/chat/AgentRun.ts"
import type { GrantingCredential } from "../../domain/accounts/Access.ts"
import type { ConversationState } from "../../domain/conversations/Conversation.ts"
import type { ConversationId, MessageId, RunId } from "../../domain/Ids.ts"
import type { Frame, Writer } from "../../domain/conversations/RealtimeFrame.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { LruCache } from "../../concurrency/LruCache.ts"
import { ConversationFeedStore, pageSize } from "../../store/conversations/ConversationFeed.ts"

/** Interval at which the database is read when no signal comes. */
const pollInterval = Duration.seconds(5)

/** Minimum interval between two typing signals of the same side of a conversation. */
const typingInterval = Duration.seconds(2)
/** Maximum conversations whose last typing signal is remembered. */
const maxRememberedTyping = 10_000

/** A position before all messages. Imported ones have positions of 0 and below. */
const beforeAll = Number.MIN_SAFE_INTEGER

/** The conversation does not exist any more, or its reader has lost access. */
export class ConversationGone extends Schema.TaggedError<ConversationGone>()("ConversationGone", {}) {}

/** The conversation to read, and the credential of the reader; null when it cannot be revoked. */
export interface FeedRequest extends TenantScope {
  readonly conversationId: ConversationId
  readonly by: GrantingCredential | null
}

/** The position, state and events that one reader has received so far. */
interface ReaderProgress {
  position: number
  /** Null until the reader has received a state. */
  state: ConversationState | null
  /** The last run whose events the reader has received. */
  run: { readonly id: RunId; readonly sequence: number } | null
}

export class RealtimeFeed extends Effect.Service<RealtimeFeed>()("usecases/conversations/RealtimeFeed", {
  effect: Effect.gen(function* () {
    const realtime = yield* Realtime
    const store = yield* ConversationFeedStore

    /** One page of new frames, oldest first; empty when there are none. */
    const newFrames = CheapSpans.fn("RealtimeFeed.newFrames")(function* (
      request: FeedRequest,
      progress: ReaderProgress
    ) {
      const { by, conversationId } = request
      const head = yield* store.head(request, conversationId, null, by)
      if (Option.isNone(head)) return yield* new ConversationGone()
      const frames: Array<Frame> = []
      const { position, state } = head.value
      // A replaced turn of a test conversation gives its positions to the next one.
      progress.position = Math.min(progress.position, position)
      if (position > progress.position) {
        for (const { citations, position: place, ...message } of yield* store.messagesAfter(
          request,
          conversationId,
          progress.position
        )) {
          const cited = citations.length === 0 ? message : { ...message, citations }
          frames.push({ type: "message.created", conversationId, message: cited })
          progress.position = place
        }
      }
      // The state comes after the messages that led to it.
      if (frames.length < pageSize && state !== progress.state) {
        frames.push({ type: "conversation.updated", conversationId, state })
        progress.state = state
      }
      return frames
    })

    const newRunEvents = CheapSpans.fn("RealtimeFeed.newRunEvents")(function* (
      request: FeedRequest,
      runId: RunId,
      progress: ReaderProgress
    ) {
      const after = progress.run?.id === runId ? progress.run.sequence : 0
      const events = yield* store.eventsAfter(request, request.conversationId, runId, after)
      progress.run = { id: runId, sequence: events.at(-1)?.sequence ?? after }
      return events.map((event): Frame => ({ type: "run.event", event: redactedForEndUser(event) }))
    })

    const framesFor = (request: FeedRequest, progress: ReaderProgress, signal: Option.Option<Signal>) =>
      Effect.gen(function* () {
        const { conversationId } = request
        if (Option.isSome(signal) && signal.value._tag === "Typing") {
          const { by } = signal.value
          if (by === undefined) return [{ type: "typing", conversationId } as const]
          const isTeam = request.by !== null && "session" in request.by
          // A side gets no typing signal of its own.
          return isTeam === (by === "team") ? [] : [{ type: "typing", conversationId, by } as const]
        }
        const runId = Option.isSome(signal) && signal.value._tag === "Changed" ? signal.value.runId : null
        const events = runId === null ? [] : yield* newRunEvents(request, runId, progress)
        return [...events, ...(yield* newFrames(request, progress))]
      })

    /** The initial state of a new reader. */
    const initialProgress = (request: FeedRequest, lastMessageId: MessageId | null) =>
      Effect.gen(function* () {
        const head = yield* store.head(request, request.conversationId, lastMessageId, request.by)
        if (Option.isNone(head)) return yield* new ConversationGone()
        const { position, seen, state } = head.value
        const progress: ReaderProgress =
          lastMessageId === null
            ? { position, state, run: null }
            : { position: seen ?? beforeAll, state: null, run: null }
        return progress
      })

    /**
     * Frames from now on, or after `lastMessageId`; the latter include the current state. An unknown id stands for the
     * beginning of the conversation. Nothing is read ahead of the reader. Once the reader's credential is revoked no
     * more messages, states or events come, and the stream fails at the next read of the database.
     */
    const follow = (
      request: FeedRequest,
      lastMessageId: MessageId | null
    ): Stream.Stream<Frame, ConversationGone> =>
      Stream.unwrapScoped(
        Effect.gen(function* () {
          // Subscribes before the first read, so that no change between the two is missed.
          const signals = yield* realtime.subscribe(request.conversationId)
          const progress = yield* initialProgress(request, lastMessageId)
          // A new reader already has the current state: its first frame follows the next signal.
          let hasMore = lastMessageId !== null
          let lastReadAt = yield* monotonicMillis
          const next = Effect.gen(function* () {
            const now = yield* monotonicMillis
            const wait = Duration.toMillis(pollInterval) - (now - lastReadAt)
            // A constant stream of signals does not delay the periodic read.
            const signal =
              hasMore || wait <= 0
                ? Option.none<Signal>()
                : yield* Queue.take(signals).pipe(Effect.timeoutOption(wait))
            const frames = yield* framesFor(request, progress, signal)
            if (Option.isNone(signal) || signal.value._tag === "Changed") {
              lastReadAt = yield* monotonicMillis
              hasMore = frames.length >= pageSize
            }
            return frames
          })
          return Stream.repeatEffect(next).pipe(Stream.mapConcat((frames) => frames))
        })
      )

    /** Signals that messages, the state or the run's events have changed. Returns at once. */
    const changed = (conversationId: ConversationId | null, runId: RunId | null) =>
      conversationId === null ? Effect.void : realtime.publish({ _tag: "Changed", conversationId, runId })

    /** Signals that a reply is being generated. Returns at once. */
    const typing = (conversationId: ConversationId | null) =>
      conversationId === null ? Effect.void : realtime.publish({ _tag: "Typing", conversationId })

    /** Time of the last typing signal for each conversation and side. */
    const lastTyping = new LruCache<number>()

    /** Signals that the customer or the team is typing, at most once every {@link typingInterval}. Returns at once. */
    const signalTyping = Effect.fn("RealtimeFeed.signalTyping")(function* (
      conversationId: ConversationId,
      by: Writer
    ) {
      const now = yield* monotonicMillis
      const key = `${by} ${conversationId}`
      if (now - (lastTyping.get(key) ?? -Infinity) < Duration.toMillis(typingInterval)) return
      lastTyping.set(key, now)
      lastTyping.trim(maxRememberedTyping)
      yield* realtime.publish({ _tag: "Typing", conversationId, by })
    })

    return { follow, changed, typing, signalTyping } as const
  })
}) {}
