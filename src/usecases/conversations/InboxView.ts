/** The dashboard's inbox: previews of conversations, their messages, newest first, and the runs behind them. */
import * as Effect from "effect/Effect"
import { ArtifactStore } from "../../capabilities/ArtifactStore.ts"
import { grantorOfUser, type SessionUser } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { AuthoredMessage } from "../../domain/conversations/Conversation.ts"
import type { InboxFilter, InboxStatus } from "../../domain/conversations/Inbox.ts"
import { orNoSuch } from "../../domain/Errors.ts"
import type { AgentId, ConversationId, MessageId, RunId } from "../../domain/Ids.ts"
import type { ConversationPreview } from "../../domain/conversations/InboxView.ts"
import type { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { AgentRunStore } from "../../store/chat/AgentRuns.ts"
import { ConversationStore } from "../../store/conversations/Conversations.ts"
import { InboxListStore, type InboxMember } from "../../store/conversations/InboxList.ts"
import { InboxWorkStore } from "../../store/conversations/InboxWork.ts"
import { InboxViewStore } from "../../store/conversations/InboxView.ts"
import { WidgetMessageStore } from "../../store/chat/WidgetMessages.ts"
import { AuditTrail, type AuditContext } from "../accounts/AuditTrail.ts"
import { RealtimeAccess } from "../chat/RealtimeAccess.ts"
import { readAttachment } from "./AttachmentFile.ts"

/** Preview of a conversation that was deleted meanwhile. */
const emptyPreview: ConversationPreview & InboxStatus = {
  customer: null,
  preview: null,
  failure: null,
  ratings: { helpful: 0, unhelpful: 0 },
  question: null,
  unread: false,
  assignee: null,
  labelIds: []
}

export class InboxView extends Effect.Service<InboxView>()("usecases/conversations/InboxView", {
  effect: Effect.gen(function* () {
    const audit = yield* AuditTrail
    const access = yield* RealtimeAccess
    const conversations = yield* ConversationStore
    const runs = yield* AgentRunStore
    const store = yield* InboxViewStore
    const lists = yield* InboxListStore
    const work = yield* InboxWorkStore
    const files = yield* WidgetMessageStore
    const artifacts = yield* ArtifactStore

    const findConversation = (scope: TenantScope, id: ConversationId) =>
      conversations.find(scope, id).pipe(orNoSuch("conversation"))

    /** Previews by conversation id: the customer, the last message, and its standing for the member. */
    const previewsOf = Effect.fn("InboxView.previewsOf")(function* (
      reader: InboxMember,
      ids: ReadonlyArray<ConversationId>
    ) {
      const [previews, standings] = yield* Effect.all(
        [store.previews(reader, ids), lists.readStates(reader, ids)],
        {
          concurrency: 2
        }
      )
      const standing = new Map(standings.map(({ conversationId, ...row }) => [conversationId, row]))
      return new Map(
        previews.map(({ conversationId, ...preview }) => [
          conversationId,
          { ...emptyPreview, ...preview, ...standing.get(conversationId) }
        ])
      )
    })

    /** Last activity first. */
    const list = Effect.fn("InboxView.list")(function* (
      reader: InboxMember,
      filter: InboxFilter,
      page: { readonly limit: number; readonly after: string | undefined }
    ) {
      const { next, rows } = yield* lists.list(reader, filter, page)
      const previews = yield* previewsOf(
        reader,
        rows.map(({ id }) => id)
      )
      return { rows: rows.map((row) => ({ ...row, ...(previews.get(row.id) ?? emptyPreview) })), next }
    })

    /**
     * A conversation and its last `limit` messages, or those before the message `before`, oldest first, with the
     * thread's events between them.
     */
    const recent = Effect.fn("InboxView.recent")(function* (
      reader: InboxMember,
      id: ConversationId,
      { before, limit }: { readonly before: MessageId | undefined; readonly limit: number }
    ) {
      const conversation = yield* findConversation(reader, id)
      const previews = yield* previewsOf(reader, [id])
      const rows = yield* store.messagesBefore(reader, id, before, limit + 1)
      const messages = rows.slice(0, limit).reverse()
      const hasMore = rows.length > limit
      const entries = yield* work.entries(reader, id, {
        first: hasMore ? (messages[0]?.position ?? 0) : 0,
        last: before === undefined ? null : (messages.at(-1)?.position ?? 0)
      })
      return {
        conversation: { ...conversation, ...(previews.get(id) ?? emptyPreview) },
        messages,
        entries,
        hasMore
      }
    })

    /** Adds delivery states and ratings to `messages`. */
    const withReceipts = Effect.fn("InboxView.withReceipts")(function* (
      scope: TenantScope,
      messages: ReadonlyArray<AuthoredMessage>
    ) {
      const rows = yield* store.receipts(
        scope,
        messages.map(({ id }) => id)
      )
      const added = new Map(rows.map(({ id, ...row }) => [id, row]))
      return messages.map((message) => ({
        delivery: null,
        feedback: null,
        ...message,
        ...added.get(message.id)
      }))
    })

    /** The outcome of the agent's last ended turn; null before the first. */
    const lastRun = Effect.fn("InboxView.lastRun")(function* (scope: TenantScope, agentId: AgentId) {
      return yield* store.lastRun({ tenantId: scope.tenantId, agentId }).pipe(orNoSuch("agent"))
    })

    /** A file of one of the conversation's messages. */
    const attachment = Effect.fn("InboxView.attachment")(function* (
      scope: TenantScope,
      id: ConversationId,
      artifact: ArtifactRef
    ) {
      yield* findConversation(scope, id)
      return yield* readAttachment(artifacts, artifact, yield* files.attachment(scope, id, artifact))
    })

    /** A token that opens the realtime socket of a conversation. */
    const realtime = Effect.fn("InboxView.realtime")(function* (user: SessionUser, id: ConversationId) {
      yield* findConversation({ tenantId: user.tenantId }, id)
      return yield* access.issue(user, id, grantorOfUser(user))
    })

    /** One page of a run's trace. The audit entry is written first; nothing is returned when that fails. */
    const trace = Effect.fn("InboxView.trace")(function* (
      by: AuditContext,
      id: RunId,
      page: { readonly limit: number; readonly after: number }
    ) {
      const agentId = yield* store.agentOf(by, id).pipe(orNoSuch("run"))
      const scope = { tenantId: by.tenantId, agentId, sourceScope: null }
      const run = yield* runs.trace(scope, id, page).pipe(orNoSuch("run"))
      yield* audit.record(by, "agent_run.read", id)
      return run
    })

    return { list, recent, withReceipts, lastRun, attachment, realtime, trace } as const
  })
}) {}
