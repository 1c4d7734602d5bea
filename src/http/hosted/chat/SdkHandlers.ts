import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import type { ExternalEndUserId } from "../../../domain/chat/ChatTurn.ts"
import type { AgentId } from "../../../domain/Ids.ts"
import type { SessionId } from "../../../domain/chat/Widget.ts"
import { Widgets } from "../../../usecases/agents/Widgets.ts"
import { Callers, resolveVisitor, type CallerAccess } from "../../../usecases/chat/widget/Callers.ts"
import { WidgetSessions } from "../../../usecases/chat/widget/Sessions.ts"
import { WidgetChat } from "../../../usecases/chat/widget/WidgetChat.ts"
import { Api } from "../../Api.ts"
import { CurrentCaller } from "../../Auth.ts"
import * as Transcript from "../../Transcript.ts"
import { fileResponse } from "../conversations/FileResponse.ts"

interface SessionParams {
  readonly sessionId?: SessionId
  readonly externalEndUserId?: ExternalEndUserId
}

export const SdkHandlers = HttpApiBuilder.group(Api, "sdk", (handlers) =>
  Effect.gen(function* () {
    const callers = yield* Callers
    const chat = yield* WidgetChat
    const sessions = yield* WidgetSessions
    const widgets = yield* Widgets

    const accessOf = (agentId: AgentId | undefined) =>
      Effect.flatMap(CurrentCaller, (caller) => callers.resolve(caller, agentId))

    /** The scope of the agent that the request names. */
    const scopeOf = (agentId: AgentId | undefined) => Effect.map(accessOf(agentId), ({ scope }) => scope)

    /** Opens a session, for the person that a token names, if there is one. */
    const beginSession = Effect.fn("SdkHandlers.beginSession")(function* (
      caller: CallerAccess,
      { externalEndUserId, sessionId }: SessionParams
    ) {
      return yield* chat.init(caller, {
        sessionId,
        externalEndUserId: yield* resolveVisitor(caller, externalEndUserId)
      })
    })

    return handlers
      .handle("widget", ({ urlParams: { agentId } }) => Effect.flatMap(scopeOf(agentId), widgets.publicView))
      .handle("init", ({ payload: { agentId, ...params } }) =>
        Effect.flatMap(accessOf(agentId), (caller) => beginSession(caller, params))
      )
      .handle("conversation", ({ urlParams: { agentId, sessionId } }) =>
        Effect.flatMap(accessOf(agentId), (caller) => chat.conversation(caller, sessionId))
      )
      .handle("messages", ({ urlParams: { agentId, sessionId, ...params } }) =>
        Effect.gen(function* () {
          const scope = yield* scopeOf(agentId)
          const session = yield* chat.session(scope, sessionId)
          const list = { scope: session.conversationId ?? "none", route: "/api/sdk/messages" }
          return yield* Transcript.page(list, params, (page) => chat.page(scope, session, page))
        })
      )
      .handle("attachment", ({ path: { id }, urlParams: { agentId, sessionId } }) =>
        Effect.flatMap(scopeOf(agentId), (scope) =>
          Effect.map(chat.attachment(scope, sessionId, id), fileResponse)
        )
      )
      .handle("identify", ({ payload: { agentId, externalEndUserId, sessionId } }) =>
        Effect.gen(function* () {
          const caller = yield* accessOf(agentId)
          yield* resolveVisitor(caller, externalEndUserId)
          return yield* sessions.identify(caller.scope, sessionId, externalEndUserId)
        })
      )
      .handle("feedback", ({ payload: { agentId, ...rating } }) =>
        Effect.flatMap(scopeOf(agentId), (scope) =>
          Effect.map(chat.rate(scope, rating), (feedback) => ({ feedback }))
        )
      )
      .handle("handoff", ({ payload: { agentId, sessionId, ...request } }) =>
        Effect.flatMap(accessOf(agentId), (access) => chat.handoff(access, sessionId, request))
      )
      .handle("typing", ({ payload: { agentId, sessionId } }) =>
        Effect.flatMap(accessOf(agentId), (access) =>
          Effect.map(chat.typing(access, sessionId), (told) => ({ told }))
        )
      )
      .handle("voice", ({ payload: { agentId, ...params } }) =>
        Effect.flatMap(accessOf(agentId), (caller) =>
          Effect.map(beginSession(caller, params), (session) => ({ ...session, voice: null }))
        )
      )
  })
)
