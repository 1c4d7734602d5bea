/**
 * Sessions of the widget, each with one agent, one person and one open conversation. They are found by the hash of
 * their id only. Rows are locked in the order person, session, conversation.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentScope, ReadScope } from "../../domain/accounts/Access.ts"
import type { ExternalEndUserId } from "../../domain/chat/ChatTurn.ts"
import { type ConversationChannel, ConversationState } from "../../domain/conversations/Conversation.ts"
import { ConversationId, EndUserId, TenantId } from "../../domain/Ids.ts"
import { sessionDays } from "../../domain/chat/Widget.ts"
import { closeOtherConversations } from "../channels/Contacts.ts"
import { removeUnreachable } from "../conversations/AnonymousPeople.ts"
import { readableUnder, sourceScopeJson } from "../knowledge/SourceScopeColumns.ts"
import { mayBeVisitor } from "./Visitors.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of sessions that one sweep removes. */
const sweepLimit = 1_000

/** SHA-256 of a session's id. */
type SessionHash = Uint8Array

const Row = Schema.Struct({ endUserId: EndUserId, conversationId: Schema.NullOr(ConversationId) })

const LockedSession = Schema.Struct({ ...Row.fields, isUseOutdated: Schema.Boolean })

const Person = Schema.Struct({ endUserId: EndUserId, externalId: Schema.NullOr(Schema.String) })

/** The conversation of a session's next message. */
export interface SessionConversation {
  readonly conversationId: ConversationId
  readonly endUserId: EndUserId
  readonly state: ConversationState
  /** True when the conversation was created for it. */
  readonly created: boolean
}

export class WidgetSessionStore extends Effect.Service<WidgetSessionStore>()("store/chat/WidgetSessions", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const isAlive = sql`used_at > now() - ${sessionDays}::int * interval '1 day'`
    /** The time of use is written at most once an hour. */
    const isUseOutdated = sql`used_at < now() - interval '1 hour'`

    const upsertPerson = (scope: AgentScope, id: EndUserId, externalId: ExternalEndUserId | null) => sql`
      insert into end_users (id, tenant_id, external_id) values (${id}, ${scope.tenantId}, ${externalId})
      on conflict (tenant_id, external_id) do update set external_id = excluded.external_id
      returning id`

    /** Opens a session of the person with `externalId`, or of a new anonymous one. */
    const insert = (
      scope: AgentScope,
      hash: SessionHash,
      {
        endUserId,
        externalId
      }: { readonly endUserId: EndUserId; readonly externalId: ExternalEndUserId | null }
    ) =>
      sql`
        with person as (${upsertPerson(scope, endUserId, externalId)})
        insert into widget_sessions (id_hash, tenant_id, agent_id, end_user_id)
        select ${hash}, ${scope.tenantId}, ${scope.agentId}, id from person
        returning end_user_id as "endUserId", conversation_id as "conversationId"`.pipe(
        Rows.one(Row),
        Effect.withSpan("WidgetSessionStore.insert")
      )

    /**
     * None for a session of another agent or another visitor, or an expired one. The conversation is omitted if it began
     * under another scope, because this scope may not read it.
     */
    const find = (scope: ReadScope, hash: SessionHash) =>
      sql`
        with used as (
          update widget_sessions set used_at = now()
          where tenant_id = ${scope.tenantId} and id_hash = ${hash} and agent_id = ${scope.agentId} and ${isAlive}
            and ${isUseOutdated}
        )
        select end_user_id as "endUserId", (
          select c.id from conversations c
          where c.tenant_id = s.tenant_id and c.id = s.conversation_id and ${readableUnder(sql, scope, "c.source_scope")}
        ) as "conversationId"
        from widget_sessions s join end_users e on e.tenant_id = s.tenant_id and e.id = s.end_user_id
        where s.id_hash = ${hash} and s.tenant_id = ${scope.tenantId} and s.agent_id = ${scope.agentId} and s.${isAlive}
          and ${mayBeVisitor(sql, scope)}`.pipe(Rows.first(Row), Effect.withSpan("WidgetSessionStore.find"))

    const lockSession = (scope: ReadScope, hash: SessionHash) =>
      sql`
        select s.end_user_id as "endUserId", s.conversation_id as "conversationId", s.${isUseOutdated} as "isUseOutdated"
        from widget_sessions s join end_users e on e.tenant_id = s.tenant_id and e.id = s.end_user_id
        where s.id_hash = ${hash} and s.tenant_id = ${scope.tenantId} and s.agent_id = ${scope.agentId} and s.${isAlive}
          and ${mayBeVisitor(sql, scope)}
        for key share of e for update of s`.pipe(Rows.first(LockedSession))

    /** The state of a conversation that began under the same scope. */
    const stateOf = (scope: ReadScope, id: ConversationId | null) =>
      sql`
        select state from conversations
        where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId} and id = ${id}
          and source_scope is not distinct from ${sourceScopeJson(scope)}::jsonb`.pipe(
        Rows.first(Schema.Struct({ state: ConversationState }))
      )

    /**
     * The session's conversation, or a new one if it has none, a closed one or one of another scope. Concurrent
     * messages get the same conversation. None for a session of another agent or another visitor, or an expired one.
     */
    const place = Effect.fn("WidgetSessionStore.place")(
      function* (
        scope: ReadScope,
        hash: SessionHash,
        fresh: { readonly id: ConversationId; readonly channel: ConversationChannel }
      ) {
        const session = yield* lockSession(scope, hash)
        if (Option.isNone(session)) return Option.none<SessionConversation>()
        const { conversationId, endUserId, isUseOutdated } = session.value
        const known = yield* stateOf(scope, conversationId)
        if (conversationId !== null && Option.isSome(known) && known.value.state !== "CLOSED") {
          if (isUseOutdated)
            yield* sql`
              update widget_sessions set used_at = now() where tenant_id = ${scope.tenantId} and id_hash = ${hash}`
          return Option.some<SessionConversation>({
            conversationId,
            endUserId,
            state: known.value.state,
            created: false
          })
        }
        yield* sql`
          insert into conversations (id, tenant_id, agent_id, end_user_id, channel, source_scope)
          values (${fresh.id}, ${scope.tenantId}, ${scope.agentId}, ${endUserId}, ${fresh.channel},
            ${sourceScopeJson(scope)}::jsonb)`
        yield* sql`
          update widget_sessions set conversation_id = ${fresh.id}, used_at = now()
          where tenant_id = ${scope.tenantId} and id_hash = ${hash}`
        return Option.some<SessionConversation>({
          conversationId: fresh.id,
          endUserId,
          state: "AI_ACTIVE",
          created: true
        })
      },
      sql.withTransaction,
      Effect.orDie
    )

    /** Removes a conversation without messages, also from its session. */
    const discard = (scope: AgentScope, id: ConversationId) =>
      sql`
        delete from conversations
        where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId} and id = ${id} and tickets = 0 and message_count = 0`.pipe(
        Rows.none,
        Effect.withSpan("WidgetSessionStore.discard")
      )

    const owner = (scope: AgentScope, hash: SessionHash) =>
      sql`
        select e.id as "endUserId", e.external_id as "externalId"
        from widget_sessions s join end_users e on e.tenant_id = s.tenant_id and e.id = s.end_user_id
        where s.id_hash = ${hash} and s.tenant_id = ${scope.tenantId} and s.agent_id = ${scope.agentId} and s.${isAlive}
        for update of e for update of s`.pipe(Rows.first(Person))

    const idOf = Schema.decodeUnknown(Schema.NonEmptyArray(Schema.Struct({ id: EndUserId })))

    /**
     * Merges the session's anonymous person into the one with `externalId`. Conversations, aliases and sessions move
     * along, and the anonymous person is deleted. `missing`: no such session; `same`: the session already has this
     * person; `other`: the session's person has another external id.
     */
    const identify = Effect.fn("WidgetSessionStore.identify")(
      function* (scope: AgentScope, hash: SessionHash, externalId: ExternalEndUserId, fresh: EndUserId) {
        const found = yield* owner(scope, hash)
        if (Option.isNone(found)) return "missing" as const
        const { endUserId: anonymous, externalId: known } = found.value
        if (known === externalId) return "same" as const
        if (known !== null) return "other" as const
        const [{ id }] = yield* Effect.flatMap(upsertPerson(scope, fresh, externalId), idOf)
        yield* closeOtherConversations(sql, scope, [id, anonymous])
        const isOfAnonymous = sql`tenant_id = ${scope.tenantId} and end_user_id = ${anonymous}`
        yield* sql`update conversations set end_user_id = ${id} where ${isOfAnonymous}`
        yield* sql`update end_user_aliases set end_user_id = ${id} where ${isOfAnonymous}`
        yield* sql`update widget_sessions set end_user_id = ${id} where ${isOfAnonymous}`
        yield* sql`delete from end_users where tenant_id = ${scope.tenantId} and id = ${anonymous}`
        return "moved" as const
      },
      sql.withTransaction,
      Effect.orDie
    )

    /** Removes expired sessions, and anonymous people without any other data. True when there may be more. */
    const prune = Effect.gen(function* () {
      const people = yield* sql`/* every tenant: sweep */
        with old as materialized (
          select tenant_id, id_hash from widget_sessions where not ${isAlive} and tenant_is_swept(tenant_id)
          order by used_at limit ${sweepLimit} for update skip locked
        )
        delete from widget_sessions s using old where (s.tenant_id, s.id_hash) = (old.tenant_id, old.id_hash)
        returning s.tenant_id as "tenantId", s.end_user_id as id`.pipe(
        Rows.all(Schema.Struct({ tenantId: TenantId, id: EndUserId }))
      )
      yield* removeUnreachable(sql, people)
      return people.length === sweepLimit
    }).pipe(sql.withTransaction, Effect.orDie, Effect.withSpan("WidgetSessionStore.prune"))

    return { insert, find, place, discard, identify, prune } as const
  })
}) {}
