/** Conversations and their messages, in pages. An agent's key reads its own; the dashboard reads all of the tenant. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import {
  type AuthoredMessage,
  Conversation,
  ConversationChannel,
  type ConversationFilter,
  type ConversationScope,
  ConversationState,
  Message,
  MessageAuthor
} from "../../domain/conversations/Conversation.ts"
import { type ConversationId, MessageId } from "../../domain/Ids.ts"
import { pageOf } from "../../domain/Page.ts"
import { isOfVisitor, mayBeOfVisitor } from "../chat/Visitors.ts"
import { readableUnder } from "../knowledge/SourceScopeColumns.ts"
import { lastChange } from "./Activity.ts"
import * as Rows from "../Rows.ts"

export const ConversationRow = Schema.Struct({
  ...Conversation.fields,
  createdAt: Schema.DateTimeUtcFromDate,
  updatedAt: Schema.DateTimeUtcFromDate,
  state: ConversationState,
  channel: ConversationChannel,
  /** Why a human was last requested. */
  handoffReason: Schema.NullOr(Schema.String)
})

/** One row per message. A conversation without messages on this page has one row of nulls. */
const MessageRow = Schema.Struct({
  /** True while messages of the conversation have no keys. No message is returned then. */
  pending: Schema.Boolean,
  /** Key of the conversation's last message; null when it has none. */
  last: Schema.NullOr(Schema.Int),
  position: Schema.NullOr(Schema.Int),
  id: Schema.NullOr(MessageId),
  role: Schema.NullOr(Message.fields.role),
  content: Schema.NullOr(Schema.String),
  author: Schema.NullOr(MessageAuthor),
  createdAt: Schema.NullOr(Schema.DateTimeUtcFromDate)
})

/** A message and its key. */
export interface KeyedMessage {
  readonly position: number
  readonly message: AuthoredMessage
}

/** Messages sorted by their keys. `pending`: they have no keys yet, and none is returned. */
export interface MessagePage {
  readonly pending: boolean
  readonly last: number | null
  readonly messages: ReadonlyArray<KeyedMessage>
}

const keyed = ({
  author,
  content,
  createdAt,
  id,
  position,
  role
}: typeof MessageRow.Type): ReadonlyArray<KeyedMessage> =>
  id === null || role === null || content === null || createdAt === null || position === null
    ? []
    : [{ position, message: { id, role, content, createdAt, author } }]

export class ConversationStore extends Effect.Service<ConversationStore>()(
  "store/conversations/Conversations",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const inScope = (scope: ConversationScope): ReadonlyArray<Fragment> => {
        const { agentId, channel, sourceScope = null, visitor } = scope
        return [
          readableUnder(sql, { sourceScope }, "c.source_scope"),
          ...(agentId === undefined ? [] : [sql`c.agent_id = ${agentId}`]),
          ...(channel === undefined ? [] : [sql`c.channel = ${channel}`]),
          ...(visitor === undefined ? [] : [mayBeOfVisitor(sql, scope, sql`c.id`)])
        ]
      }

      const rows = ({ tenantId }: ConversationScope, conditions: ReadonlyArray<Fragment>, limit: number) =>
        sql`
          select c.id, c.agent_id as "agentId", c.end_user_id as "endUserId",
            (c.message_count + c.legacy_count)::int as "messageCount", c.created_at as "createdAt",
            ${lastChange(sql)} as "updatedAt", c.state, c.channel, c.handoff_reason as "handoffReason"
          from conversations c
          where c.tenant_id = ${tenantId} and ${sql.and(conditions)} order by c.id desc limit ${limit}`.pipe(
          Rows.all(ConversationRow)
        )

      /** None when the scope has no such conversation. */
      const find = (scope: ConversationScope, id: ConversationId) =>
        rows(scope, [...inScope(scope), sql`c.id = ${id}`], 1).pipe(
          Effect.map(([row]) => Option.fromNullable(row)),
          Effect.withSpan("ConversationStore.find")
        )

      /** Newest first. Test conversations of the team only on request. */
      const list = Effect.fn("ConversationStore.list")(function* (
        scope: ConversationScope,
        { after, endUserId, limit, state }: ConversationFilter
      ) {
        const found = yield* rows(
          scope,
          [
            ...inScope(scope),
            isOfVisitor(sql, scope),
            ...(scope.channel === undefined ? [sql`c.channel <> 'test'`] : []),
            ...(after === undefined ? [] : [sql`c.id < ${after}`]),
            ...(endUserId === undefined ? [] : [sql`c.end_user_id = ${endUserId}`]),
            ...(state === undefined ? [] : [sql`c.state = ${state}`])
          ],
          limit + 1
        )
        return pageOf(found, limit)
      })

      /**
       * At most `limit` messages after the key `after`, or from the first message. None when the scope has no such
       * conversation. One statement sees either all or none of the keys that are assigned concurrently.
       */
      const messages = (
        scope: ConversationScope,
        id: ConversationId,
        { after, limit }: { readonly after: number | undefined; readonly limit: number }
      ) =>
        sql`
          select k.pending, k.last::int, m.position::int, m.id, m.role, m.content, m.author, m.created_at as "createdAt"
          from conversations c
          cross join lateral (
            select exists (select from messages n
                where n.tenant_id = c.tenant_id and n.conversation_id = c.id and n.position is null) as pending,
              (select max(n.position) from messages n
                where n.tenant_id = c.tenant_id and n.conversation_id = c.id) as last
          ) k
          left join lateral (
            select n.position, n.id, n.role, n.content, n.author, n.created_at from messages n
            where not k.pending and n.tenant_id = c.tenant_id and n.conversation_id = c.id
              and ${after === undefined ? sql`n.position is not null` : sql`n.position > ${after}`}
            order by n.position limit ${limit}
          ) m on true
          where c.tenant_id = ${scope.tenantId} and ${sql.and([...inScope(scope), sql`c.id = ${id}`])} order by m.position`.pipe(
          Rows.all(MessageRow),
          Effect.map((found) => {
            const [first] = found
            if (first === undefined) return Option.none<MessagePage>()
            const page: MessagePage = {
              pending: first.pending,
              last: first.last,
              messages: found.flatMap(keyed)
            }
            return Option.some(page)
          }),
          Effect.withSpan("ConversationStore.messages")
        )

      return { find, list, messages } as const
    })
  }
) {}
