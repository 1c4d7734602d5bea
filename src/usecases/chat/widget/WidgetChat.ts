/** The widget's operations on its session's conversation. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { ArtifactStore } from "../../../capabilities/ArtifactStore.ts"
import type { ReadScope } from "../../../domain/accounts/Access.ts"
import type { StoredAttachment } from "../../../domain/channels/Attachment.ts"
import type { ExternalEndUserId, Media } from "../../../domain/chat/ChatTurn.ts"
import { NotFound, orNoSuch } from "../../../domain/Errors.ts"
import type { ConversationId } from "../../../domain/Ids.ts"
import { pageBy } from "../../../domain/Page.ts"
import { ArtifactRef } from "../../../domain/knowledge/Source.ts"
import type { FeedbackRequest, Session, SessionId } from "../../../domain/chat/Widget.ts"
import { AgentStore } from "../../../store/agents/Agents.ts"
import { ConversationStore } from "../../../store/conversations/Conversations.ts"
import { WidgetMessageStore } from "../../../store/chat/WidgetMessages.ts"
import { RealtimeAccess } from "../RealtimeAccess.ts"
import * as TurnMetrics from "../TurnMetrics.ts"
import { TurnSettings } from "../TurnSettings.ts"
import * as Notices from "../../../domain/chat/Notices.ts"
import { noFile, readAttachment } from "../../conversations/AttachmentFile.ts"
import { Handoff } from "../../conversations/Handoff.ts"
import { RealtimeFeed } from "../../conversations/RealtimeFeed.ts"
import type { CallerAccess } from "./Callers.ts"
import { WidgetSessions } from "./Sessions.ts"

const refPrefix = "sha256:"

/** The path of the file below `{app_url}`. It is useless without a session. */
const mediaOf = ({ artifact, mimeType, name }: StoredAttachment): Media => ({
  type: mimeType.startsWith("image/") ? "image" : "file",
  url: `/api/sdk/attachments/${artifact.slice(refPrefix.length)}`,
  name,
  mimeType
})

const refOf = (id: string) => Schema.decodeUnknownOption(ArtifactRef)(refPrefix + id)

interface HandoffRequest {
  readonly reason?: string | undefined
  /** Language of the page. */
  readonly language?: string | undefined
}

export class WidgetChat extends Effect.Service<WidgetChat>()("usecases/chat/widget/WidgetChat", {
  effect: Effect.gen(function* () {
    const sessions = yield* WidgetSessions
    const agents = yield* AgentStore
    const conversations = yield* ConversationStore
    const messages = yield* WidgetMessageStore
    const artifacts = yield* ArtifactStore
    const realtimeAccess = yield* RealtimeAccess
    const handoffs = yield* Handoff
    const feed = yield* RealtimeFeed
    const { realtimeUrl } = yield* TurnSettings

    /** Only an existing conversation gets a token. */
    const realtime = ({ by, scope }: Pick<CallerAccess, "by" | "scope">, id: ConversationId | null) =>
      id === null ? Effect.succeed({ realtimeToken: null, realtimeUrl }) : realtimeAccess.issue(scope, id, by)

    /** Initial data of a page: the named session, else a new one. */
    const init = Effect.fn("WidgetChat.init")(function* (
      { by, scope }: CallerAccess,
      given: {
        readonly sessionId?: SessionId | undefined
        readonly externalEndUserId?: ExternalEndUserId | undefined
      }
    ) {
      const agent = yield* agents.find(scope, scope.agentId).pipe(orNoSuch("agent"))
      const session = yield* sessions.begin(scope, given)
      const { greeting, id, name } = agent
      return {
        ...session,
        agent: { id, name, greeting },
        ...(yield* realtime({ by, scope }, session.conversationId))
      }
    })

    /** The session's conversation; null before its first message. */
    const conversation = Effect.fn("WidgetChat.conversation")(function* (
      { by, scope }: CallerAccess,
      sessionId: SessionId
    ) {
      const { conversationId } = yield* sessions.find(scope, sessionId)
      const found = conversationId === null ? Option.none() : yield* conversations.find(scope, conversationId)
      const turn = conversationId === null ? Option.none() : yield* messages.lastTurn(scope, conversationId)
      return {
        conversation: Option.getOrNull(found),
        turn: Option.getOrNull(turn),
        ...(yield* realtime({ by, scope }, conversationId))
      }
    })

    /** At most `limit` messages after the position `after`, oldest first; none when there is no conversation. */
    const page = Effect.fn("WidgetChat.page")(function* (
      scope: ReadScope,
      { conversationId }: Session,
      { after = 0, limit }: { readonly after: number | undefined; readonly limit: number }
    ) {
      const found =
        conversationId === null ? [] : yield* messages.page(scope, conversationId, after, limit + 1)
      const { next, rows } = pageBy(found, limit, ({ position }) => position)
      return {
        rows: rows.map(({ attachments, position: _, ...message }) => ({
          ...message,
          // The notice is the same sentence, whether the service or the agent hands over.
          notice:
            message.role === "assistant" && Notices.isHandoffNotice(message.content)
              ? ("handoff" as const)
              : null,
          media: attachments.map(mediaOf)
        })),
        next
      }
    })

    /** Stores the person's rating of a reply; the last one counts. */
    const rate = Effect.fn("WidgetChat.rate")(function* (
      scope: ReadScope,
      { comment, messageId, rating, sessionId }: FeedbackRequest
    ) {
      const { conversationId } = yield* sessions.find(scope, sessionId)
      const feedback = { messageId, rating, comment: comment ?? null }
      if (conversationId === null || !(yield* messages.rate(scope, conversationId, feedback)))
        return yield* new NotFound({ message: "The conversation has no such reply." })
      yield* TurnMetrics.rated(rating)
      return feedback
    })

    /** Requests a human, also before the first message. Does nothing when a human was already requested. */
    const handoff = Effect.fn("WidgetChat.handoff")(function* (
      caller: CallerAccess,
      sessionId: SessionId,
      { language, reason = "The person asked for a human." }: HandoffRequest
    ) {
      const { channel, scope } = caller
      const { conversationId } = yield* sessions.place(scope, channel, sessionId)
      yield* handoffs.request(scope, conversationId, { by: "person", reason, language })
      return yield* conversation(caller, sessionId)
    })

    /** Signals to the team that the person is typing. False before the first message: there is no conversation yet. */
    const typing = Effect.fn("WidgetChat.typing")(function* ({ scope }: CallerAccess, sessionId: SessionId) {
      const { conversationId } = yield* sessions.find(scope, sessionId)
      if (conversationId === null) return false
      yield* feed.signalTyping(conversationId, "customer")
      return true
    })

    /** A file of the session's conversation, by the last segment of its path in `media`. */
    const attachment = Effect.fn("WidgetChat.attachment")(function* (
      scope: ReadScope,
      sessionId: SessionId,
      id: string
    ) {
      const { conversationId } = yield* sessions.find(scope, sessionId)
      const ref = refOf(id)
      if (conversationId === null || Option.isNone(ref)) return yield* noFile()
      const stored = yield* messages.attachment(scope, conversationId, ref.value)
      return yield* readAttachment(artifacts, ref.value, stored)
    })

    return { init, conversation, page, rate, handoff, typing, attachment, session: sessions.find } as const
  })
}) {}
