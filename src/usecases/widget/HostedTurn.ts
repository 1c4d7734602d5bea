/**
 * The hosted chat turn (specification 4.18, contract 5 and 9): the turn of `/v1/chat/stream` with files and sessions. While a
 * human answers a session's conversation its messages are stored and shown to the human, and the model stays silent.
 */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { AgentScope } from "../../domain/Access.ts"
import type { ChatTurnRequest, TurnPart } from "../../domain/ChatTurn.ts"
import { newId } from "../../domain/Ids.ts"
import type { HostedTurnRequest, SessionId } from "../../domain/Widget.ts"
import { WidgetMessageStore } from "../../store/WidgetMessages.ts"
import type { Place } from "../../store/WidgetSessions.ts"
import { ChatTurn, type RunningTurn } from "../chat/ChatTurn.ts"
import { telling } from "../chat/Turn.ts"
import type { Files } from "../chat/Extras.ts"
import * as Identity from "../chat/Identity.ts"
import { RealtimeFeed } from "../RealtimeFeed.ts"
import { Attachments, type StagedFile } from "./Attachments.ts"
import { WidgetSessions } from "./Sessions.ts"

/** How often a message looks again who answers, when that changes while it is being handed over. */
const looks = Schedule.recurs(3)

export class HostedTurn extends Effect.Service<HostedTurn>()("usecases/widget/HostedTurn", {
  effect: Effect.gen(function* () {
    const turns = yield* ChatTurn
    const sessions = yield* WidgetSessions
    const messages = yield* WidgetMessageStore
    const attachments = yield* Attachments
    const feed = yield* RealtimeFeed

    /** The message is stored for the human; what the page gets is a turn that ends at once, and says who answers. */
    const handOver = Effect.fn("HostedTurn.handOver")(function* (
      scope: AgentScope,
      { conversationId, endUserId, state }: Place,
      message: Parameters<WidgetMessageStore["store"]>[2]
    ) {
      if (!(yield* messages.store(scope, conversationId, message))) return yield* Identity.notActive()
      yield* feed.changed(conversationId, null)
      const result = { reply: "", conversationId, endUserId, citations: [], media: [], state }
      const parts = Stream.make<[TurnPart]>({ _tag: "Done", result })
      const turn: RunningTurn = { runId: null, endUserId, ...telling(parts) }
      return turn
    })

    /** A turn that stores nothing begins no conversation either. */
    const unstored = Effect.fn("HostedTurn.unstored")(function* (
      scope: AgentScope,
      sessionId: SessionId,
      turn: ChatTurnRequest,
      files: Files
    ) {
      const { conversationId, endUserId } = yield* sessions.find(scope, sessionId)
      const target = conversationId === null ? { endUserId } : { conversationId }
      return yield* turns.start(scope, { ...turn, ...target }, "widget", { files, endUserId })
    })

    const inSession = Effect.fn("HostedTurn.inSession")(function* (
      scope: AgentScope,
      sessionId: SessionId,
      turn: ChatTurnRequest,
      files: Files
    ) {
      const id = yield* newId.message
      let again = false
      const once = Effect.gen(function* () {
        const place = yield* sessions.place(scope, sessionId)
        const { conversationId, created, endUserId } = place
        if (place.state !== "AI_ACTIVE") {
          const { release, stored } = files
          const message = { id, content: turn.message, attachments: stored }
          return yield* Effect.tap(handOver(scope, place, message), release)
        }
        // What was refused after its place had come is stored under the id already.
        const userMessageId = again ? yield* newId.message : id
        again = true
        return yield* turns
          .start(scope, { ...turn, conversationId }, "widget", { files, endUserId, userMessageId })
          .pipe(Effect.tapError(() => (created ? sessions.discard(scope, conversationId) : Effect.void)))
      })
      return yield* once.pipe(
        Effect.retry({ schedule: looks, while: ({ _tag }) => _tag === "CONVERSATION_NOT_ACTIVE" })
      )
    })

    /** Starts the turn, as `ChatTurn.start` does; `sent` are its files, which are kept from here on. */
    const start = Effect.fn("HostedTurn.start")(function* (
      scope: AgentScope,
      { agentId: _, sessionId, ...turn }: HostedTurnRequest,
      sent: ReadonlyArray<StagedFile>
    ) {
      yield* attachments.check(scope, sent)
      const files = yield* attachments.keep(sent)
      const begun =
        sessionId === undefined
          ? turns.start(scope, turn, "widget", { files })
          : turn.persist
            ? inSession(scope, sessionId, turn, files)
            : unstored(scope, sessionId, turn, files)
      return yield* Effect.onError(begun, () => files.release)
    })

    return { start } as const
  })
}) {}
