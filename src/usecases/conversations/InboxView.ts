/** The dashboard's inbox: conversations at a glance, their newest messages first, and the runs behind them. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { ArtifactStore } from "../../capabilities/ArtifactStore.ts"
import { grantorOfUser, type SessionUser } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type {
  AuthoredMessage,
  ConversationFilter,
  ConversationScope
} from "../../domain/conversations/Conversation.ts"
import { NotFound } from "../../domain/Errors.ts"
import type { AgentId, ConversationId, MessageId, RunId } from "../../domain/Ids.ts"
import type { ConversationPreview } from "../../domain/conversations/InboxView.ts"
import type { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { AgentRunStore } from "../../store/chat/AgentRuns.ts"
import { ConversationStore } from "../../store/conversations/Conversations.ts"
import { InboxViewStore } from "../../store/conversations/InboxView.ts"
import { WidgetMessageStore } from "../../store/chat/WidgetMessages.ts"
import { AuditTrail, type By } from "../accounts/AuditTrail.ts"
import { RealtimeAccess } from "../chat/RealtimeAccess.ts"

const unseen: ConversationPreview = {
  customer: null,
  preview: null,
  failure: null,
  ratings: { helpful: 0, unhelpful: 0 }
}

export class InboxView extends Effect.Service<InboxView>()("usecases/conversations/InboxView", {
  effect: Effect.gen(function* () {
    const audit = yield* AuditTrail
    const access = yield* RealtimeAccess
    const conversations = yield* ConversationStore
    const runs = yield* AgentRunStore
    const store = yield* InboxViewStore
    const files = yield* WidgetMessageStore
    const artifacts = yield* ArtifactStore

    const found = (scope: TenantScope, id: ConversationId) =>
      Effect.flatMap(
        conversations.find(scope, id),
        Option.match({
          onNone: () => Effect.fail(new NotFound({ message: "There is no such conversation." })),
          onSome: (row) => Effect.succeed(row)
        })
      )

    /** Newest first. */
    const list = Effect.fn("InboxView.list")(function* (
      scope: ConversationScope,
      filter: ConversationFilter
    ) {
      const { next, rows } = yield* conversations.list(scope, filter)
      const glances = new Map(
        (yield* store.glances(
          scope,
          rows.map(({ id }) => id)
        )).map(({ conversationId, ...glance }) => [conversationId, glance])
      )
      return { rows: rows.map((row) => ({ ...row, ...(glances.get(row.id) ?? unseen) })), next }
    })

    /** A conversation and, oldest first, its last `limit` messages, or those before the message `before`. */
    const recent = Effect.fn("InboxView.recent")(function* (
      scope: TenantScope,
      id: ConversationId,
      { before, limit }: { readonly before: MessageId | undefined; readonly limit: number }
    ) {
      const conversation = yield* found(scope, id)
      const [{ conversationId: _, ...glance } = { conversationId: id, ...unseen }] = yield* store.glances(
        scope,
        [id]
      )
      const messages = yield* store.before(scope, id, before, limit + 1)
      return {
        conversation: { ...conversation, ...glance },
        messages: messages.slice(0, limit).reverse(),
        hasMore: messages.length > limit
      }
    })

    /** `messages` with how far each has come and what the customer thinks of it. */
    const posted = Effect.fn("InboxView.posted")(function* (
      scope: TenantScope,
      messages: ReadonlyArray<AuthoredMessage>
    ) {
      const rows = yield* store.added(
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

    /** How the agent's last turn that has ended went; null before the first. */
    const lastRun = Effect.fn("InboxView.lastRun")(function* (scope: TenantScope, agentId: AgentId) {
      const found = yield* store.lastRun({ tenantId: scope.tenantId, agentId })
      if (Option.isNone(found)) return yield* new NotFound({ message: "There is no such agent." })
      return found.value
    })

    /** A file of one of the conversation's messages. */
    const attachment = Effect.fn("InboxView.attachment")(function* (
      scope: TenantScope,
      id: ConversationId,
      artifact: ArtifactRef
    ) {
      yield* found(scope, id)
      const stored = yield* files.attachment(scope, id, artifact)
      const bytes = Option.isNone(stored) ? Option.none() : yield* Effect.orDie(artifacts.get(artifact))
      if (Option.isSome(stored) && Option.isSome(bytes)) return { ...stored.value, bytes: bytes.value }
      return yield* new NotFound({ message: "The conversation has no such file." })
    })

    /** A token that opens the realtime socket of a conversation. */
    const realtime = Effect.fn("InboxView.realtime")(function* (user: SessionUser, id: ConversationId) {
      yield* found({ tenantId: user.tenantId }, id)
      return yield* access.issue(user, id, grantorOfUser(user))
    })

    /** One page of a run's trace, after an audit entry says who reads it; without the entry nothing is shown. */
    const trace = Effect.fn("InboxView.trace")(function* (
      by: By,
      id: RunId,
      page: { readonly limit: number; readonly after: number }
    ) {
      const absent = () => new NotFound({ message: "There is no such run." })
      const agentId = yield* store.agentOf(by, id)
      if (Option.isNone(agentId)) return yield* absent()
      const scope = { tenantId: by.tenantId, agentId: agentId.value, sourceScope: null }
      const run = yield* runs.trace(scope, id, page)
      if (Option.isNone(run)) return yield* absent()
      yield* audit.record(by, "agent_run.read", id)
      return run.value
    })

    return { list, recent, posted, lastRun, attachment, realtime, trace } as const
  })
}) {}
