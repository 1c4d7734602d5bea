/**
 * The hosted chat turn: the turn of `/v1/chat/stream` with files and sessions. While a human answers a session's
 * conversation, messages are stored for the human and the model is not called.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { ReadScope } from "../../../domain/accounts/Access.ts"
import type { ChatTurnRequest, TurnPart } from "../../../domain/chat/ChatTurn.ts"
import { Forbidden, invalidField, NotFound, ValidationError } from "../../../domain/Errors.ts"
import { type MessageId, newId, type RunId } from "../../../domain/Ids.ts"
import type { HostedTurnRequest, SessionId } from "../../../domain/chat/Widget.ts"
import { ToolSources } from "../../../capabilities/ToolSources.ts"
import { AgentStore } from "../../../store/agents/Agents.ts"
import { TestConversationStore } from "../../../store/chat/TestConversations.ts"
import { WidgetMessageStore } from "../../../store/chat/WidgetMessages.ts"
import type { SessionConversation } from "../../../store/chat/WidgetSessions.ts"
import { checkToolNames } from "../../agents/Agents.ts"
import { AgentRuns } from "../AgentRuns.ts"
import { ChatTurn, type RunningTurn } from "../ChatTurn.ts"
import type { Files } from "../TurnOptions.ts"
import * as Identity from "../Identity.ts"
import { RealtimeFeed } from "../../conversations/RealtimeFeed.ts"
import { Attachments, type StagedFile } from "./Attachments.ts"
import { type HostedChannel, resolveVisitor, type CallerAccess } from "./Callers.ts"
import { WidgetSessions } from "./Sessions.ts"
import { noSuchVersion } from "../../../domain/agents/AgentVersion.ts"

/** Retries of a message when the conversation's state changes while it is placed. */
const placementRetries = Schedule.recurs(3)

interface Retry extends ChatTurnRequest {
  readonly retryOf: MessageId
  readonly sessionId: SessionId
}

export class HostedTurn extends Effect.Service<HostedTurn>()("usecases/chat/widget/HostedTurn", {
  effect: Effect.gen(function* () {
    const turns = yield* ChatTurn
    const sessions = yield* WidgetSessions
    const messages = yield* WidgetMessageStore
    const attachments = yield* Attachments
    const feed = yield* RealtimeFeed
    const agents = yield* AgentStore
    const tests = yield* TestConversationStore
    const runs = yield* AgentRuns
    const sources = yield* ToolSources

    /** Only team members may try unpublished settings or replace an earlier turn, and only outside a session. */
    const checkTrial = Effect.fn("HostedTurn.checkTrial")(function* (
      { channel, mayChange, scope }: CallerAccess,
      { draft, replaces, sessionId, version }: HostedTurnRequest
    ) {
      const named = Object.entries({ version, draft, replaces }).filter(([, value]) => value !== undefined)
      if (named.length === 0) return
      if (channel !== "test" || sessionId !== undefined) {
        return yield* new ValidationError({
          message: "What is tried is tried by the team alone, without a session.",
          details: { issues: named.map(([name]) => ({ path: [name], message: `Expected no ${name} here` })) }
        })
      }
      if (draft !== undefined && !mayChange) {
        return yield* new Forbidden({ message: "Only who may change the agent may try other settings." })
      }
      yield* checkToolNames(sources, draft?.tools ?? [], ["draft", "tools"])
      if (version === undefined) return
      const found = yield* agents.settingsOf(scope, scope.agentId, version)
      if (Option.isNone(found)) return yield* noSuchVersion()
    })

    /** Stops the turn `runId`. Returns its conversation, and the effect that resets it to before the turn. */
    const stopReplaced = Effect.fn("HostedTurn.stopReplaced")(function* (scope: ReadScope, runId: RunId) {
      const found = yield* tests.conversationOf(scope, runId)
      if (Option.isNone(found)) {
        return yield* new NotFound({ message: "No conversation of the team has such a turn." })
      }
      yield* runs.stop(scope, runId)
      const prepare = Effect.filterOrFail(
        tests.rewind(scope, found.value, runId),
        Boolean,
        Identity.notActive
      )
      return { target: { conversationId: found.value }, prepare }
    })

    /** Stores the message for the human. The page gets a turn that ends at once and says who answers. */
    const handOver = Effect.fn("HostedTurn.handOver")(function* (
      scope: ReadScope,
      { conversationId, endUserId, state }: SessionConversation,
      message: Parameters<WidgetMessageStore["store"]>[2]
    ) {
      if (!(yield* messages.store(scope, conversationId, message))) return yield* Identity.notActive()
      yield* feed.changed(conversationId, null)
      const result = { reply: "", conversationId, endUserId, citations: [], media: [], state }
      const parts = Stream.make<[TurnPart]>({ _tag: "Done", result })
      const turn: RunningTurn = { runId: null, endUserId, parts }
      return turn
    })

    /** A turn that stores nothing does not begin a conversation either. */
    const startUnstored = Effect.fn("HostedTurn.startUnstored")(function* (
      scope: ReadScope,
      channel: HostedChannel,
      sessionId: SessionId,
      turn: ChatTurnRequest,
      files: Files
    ) {
      const { conversationId, endUserId } = yield* sessions.find(scope, sessionId)
      const target = conversationId === null ? { endUserId } : { conversationId }
      return yield* turns.start(scope, { ...turn, ...target }, channel, { files, endUserId })
    })

    const inSession = Effect.fn("HostedTurn.inSession")(function* (
      scope: ReadScope,
      channel: HostedChannel,
      sessionId: SessionId,
      turn: ChatTurnRequest,
      files: Files
    ) {
      const id = yield* newId.message
      let isRetry = false
      const attempt = Effect.gen(function* () {
        const session = yield* sessions.place(scope, channel, sessionId)
        const { conversationId, created, endUserId } = session
        if (session.state !== "AI_ACTIVE") {
          const { release, stored } = files
          const message = { id, content: turn.message, attachments: stored }
          return yield* Effect.tap(handOver(scope, session, message), release)
        }
        // A message that was refused after it got its place is already stored under `id`.
        const userMessageId = isRetry ? yield* newId.message : id
        isRetry = true
        return yield* turns
          .start(scope, { ...turn, conversationId }, channel, { files, endUserId, userMessageId })
          .pipe(Effect.tapError(() => (created ? sessions.discard(scope, conversationId) : Effect.void)))
      })
      return yield* attempt.pipe(
        Effect.retry({ schedule: placementRetries, while: ({ _tag }) => _tag === "CONVERSATION_NOT_ACTIVE" })
      )
    })

    /**
     * Answers the person's last message, which has no answer yet. Not active while it is being answered or a human
     * answers.
     */
    const startRetry = Effect.fn("HostedTurn.startRetry")(function* (
      scope: ReadScope,
      channel: HostedChannel,
      { retryOf, sessionId, ...turn }: Retry
    ) {
      const { conversationId, endUserId } = yield* sessions.find(scope, sessionId)
      const asked =
        conversationId === null ? Option.none() : yield* messages.findMessage(scope, conversationId, retryOf)
      if (conversationId === null || Option.isNone(asked)) {
        return yield* new NotFound({ message: "The session has no such message." })
      }
      const { attachments: stored, content } = asked.value
      const files = attachments.ofConversation(scope, stored)
      const request = { ...turn, message: content, conversationId }
      return yield* turns.start(scope, request, channel, { files, endUserId, retryOf })
    })

    /** Starts the turn like `ChatTurn.start`. `sent` are its files, which are kept from here on. */
    const start = Effect.fn("HostedTurn.start")(function* (
      access: CallerAccess,
      request: HostedTurnRequest,
      sent: ReadonlyArray<StagedFile>
    ) {
      const { channel, scope } = access
      const { agentId: _, draft, replaces, retryOf, sessionId, version, ...turn } = request
      yield* checkTrial(access, request)
      const externalEndUserId = yield* resolveVisitor(access, turn.externalEndUserId)
      if (access.visitor !== null && turn.endUserId !== undefined) {
        return yield* invalidField(["endUserId"], "Expected none: the token names the visitor")
      }
      if (retryOf !== undefined && sessionId !== undefined) {
        return yield* startRetry(scope, channel, { ...turn, retryOf, sessionId })
      }
      yield* attachments.check(scope, sent)
      const replaced = replaces === undefined ? undefined : yield* stopReplaced(scope, replaces)
      const files = yield* attachments.keep(sent)
      const trial = {
        ...(version === undefined ? {} : { version }),
        ...(draft === undefined ? {} : { draft }),
        ...(replaced === undefined ? {} : { prepare: replaced.prepare })
      }
      const starting =
        sessionId === undefined
          ? turns.start(
              scope,
              {
                ...turn,
                ...(externalEndUserId === undefined ? {} : { externalEndUserId }),
                ...replaced?.target
              },
              channel,
              { files, ...trial }
            )
          : turn.persist
            ? inSession(scope, channel, sessionId, turn, files)
            : startUnstored(scope, channel, sessionId, turn, files)
      return yield* Effect.onError(starting, () => files.release)
    })

    return { start } as const
  })
}) {}
