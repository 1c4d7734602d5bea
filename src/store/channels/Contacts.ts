/**
 * Contacts of messaging channels. A person is a set of aliases, each of which belongs to one person of the tenant.
 * Everything here joins the caller's transaction.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { ContactAlias, MessagingChannel } from "../../domain/channels/Channel.ts"
import { EndUserId, type TenantId } from "../../domain/Ids.ts"
import { lastChange } from "../conversations/Activity.ts"
import * as Rows from "../Rows.ts"

/** A person who has some of the requested aliases. */
const Person = Schema.Struct({
  id: EndUserId,
  externalId: Schema.NullOr(Schema.String),
  /** Place of the person's first alias among the requested ones, of which the first, 1, is the most stable. */
  place: Schema.Int
})
type Person = typeof Person.Type

const Removed = Schema.Struct({ externalId: Schema.NullOr(Schema.String) })

/**
 * Keeps one open conversation per contact and channel: the one that a human answers, else one that waits for an answer,
 * else the last used. The others are closed, and their unanswered messages stay unanswered.
 */
export const closeOtherConversations = (
  sql: SqlClient.SqlClient,
  { tenantId }: TenantScope,
  ids: ReadonlyArray<EndUserId>
) => sql`
  with held as (
    select c.* from conversations c
    where c.tenant_id = ${tenantId} and c.end_user_id = any(${ids}::text[]) order by c.id for update
  ),
  ranked as (
    select h.id, row_number() over (partition by h.channel_id order by
      (h.state <> 'AI_ACTIVE') desc,
      exists (
        select from messages m
        where m.tenant_id = h.tenant_id and m.conversation_id = h.id and m.role = 'user'
          and m.channel_message_id is not null and m.answered_by is null
      ) desc,
      ${lastChange(sql, "h")} desc, h.id desc) as place
    from held h where h.channel_id is not null and h.state <> 'CLOSED'
  ),
  closed as (
    update conversations c set state = 'CLOSED', epoch = c.epoch + 1, updated_at = now()
    from ranked where c.tenant_id = ${tenantId} and ranked.id = c.id and ranked.place > 1 returning c.id
  )
  update messages m set answered_by = 'merged' from closed
  where m.tenant_id = ${tenantId} and m.conversation_id = closed.id and m.role = 'user' and m.channel_message_id is not null
    and m.answered_by is null`

export interface AliasesOfContact {
  readonly tenantId: TenantId
  readonly channel: MessagingChannel
  readonly aliases: ReadonlyArray<ContactAlias>
}

export class ContactStore extends Effect.Service<ContactStore>()("store/channels/Contacts", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const given = ({ aliases }: AliasesOfContact) => sql`
      unnest(${aliases.map(({ kind }) => kind)}::text[], ${aliases.map(({ value }) => value)}::text[])
        with ordinality as given (kind, value, place)`

    /**
     * Locks the aliases, so that no other transaction creates, finds or merges their persons. All callers lock in the
     * same order.
     */
    const lockAliases = ({ aliases, channel, tenantId }: AliasesOfContact) => {
      const keys = aliases.map(({ kind, value }) => `${tenantId} ${channel} ${kind} ${value}`).toSorted()
      return sql`
        select pg_advisory_xact_lock(hashtextextended(key, 1)) from unnest(${keys}::text[]) as keys (key)`
    }

    /** The people who have these aliases, oldest first. */
    const people = (known: AliasesOfContact) =>
      sql`
        select e.id, e.external_id as "externalId", min(given.place)::int as place
        from ${given(known)}
        join end_user_aliases a on a.tenant_id = ${known.tenantId} and a.channel = ${known.channel}
          and a.kind = given.kind and a.value = given.value
        join end_users e on e.tenant_id = a.tenant_id and e.id = a.end_user_id
        group by e.tenant_id, e.id order by e.created_at, e.id`.pipe(Rows.all(Person))

    /** Locks the people. False when one of them was removed meanwhile. */
    const lockPeople = ({ tenantId }: AliasesOfContact, found: ReadonlyArray<Person>) =>
      Effect.map(
        sql`
          select id from end_users where tenant_id = ${tenantId} and id = any(${found.map(({ id }) => id)}::text[]) order by id
          ${found.length === 1 ? sql`for key share` : sql`for update`}`,
        (rows) => rows.length === found.length
      )

    /** Gives the person those of the aliases that nobody has. */
    const addAliases = (known: AliasesOfContact, id: EndUserId) => sql`
      insert into end_user_aliases (tenant_id, channel, kind, value, end_user_id)
      select ${known.tenantId}, ${known.channel}, given.kind, given.value, ${id} from ${given(known)}
      on conflict do nothing`

    /** Moves everything of `duplicates` to `survivor`, also the external id if it has none, and deletes them. */
    const merge = Effect.fn("ContactStore.merge")(function* (
      { tenantId }: AliasesOfContact,
      survivor: Person,
      duplicates: ReadonlyArray<EndUserId>
    ) {
      yield* closeOtherConversations(sql, { tenantId }, [survivor.id, ...duplicates])
      const isOfDuplicates = sql`tenant_id = ${tenantId} and end_user_id = any(${duplicates}::text[])`
      yield* sql`update conversations set end_user_id = ${survivor.id} where ${isOfDuplicates}`
      yield* sql`update widget_sessions set end_user_id = ${survivor.id} where ${isOfDuplicates}`
      yield* sql`update end_user_aliases set end_user_id = ${survivor.id} where ${isOfDuplicates}`
      const removed = yield* sql`
        delete from end_users where tenant_id = ${tenantId} and id = any(${duplicates}::text[])
        returning external_id as "externalId"`.pipe(Rows.all(Removed))
      const externalId = removed.find((row) => row.externalId !== null)?.externalId ?? null
      if (externalId !== null) {
        yield* sql`update end_users set external_id = ${externalId} where tenant_id = ${tenantId} and id = ${survivor.id}`
      }
    })

    /**
     * Returns the person who has these aliases, and adds the missing ones. Several people are merged into the oldest.
     * If more than one has an external id, they are not merged, and the person with the most stable alias is returned.
     * Without such a person, creates one with the id `newId`, or returns null if that is null.
     */
    const resolve = Effect.fn("ContactStore.resolve")(function* (
      known: AliasesOfContact,
      newId: EndUserId | null
    ) {
      yield* lockAliases(known)
      for (;;) {
        const found = yield* people(known)
        const [oldest] = found
        if (oldest === undefined) {
          if (newId === null) return null
          yield* sql`insert into end_users (id, tenant_id) values (${newId}, ${known.tenantId})`
          yield* addAliases(known, newId)
          return newId
        }
        // The person was merged through another alias meanwhile. Try again.
        if (!(yield* lockPeople(known, found))) continue
        const named = found.filter(({ externalId }) => externalId !== null)
        if (named.length > 1) {
          const first = found.toSorted((a, b) => a.place - b.place)[0] ?? oldest
          yield* addAliases(known, first.id)
          return first.id
        }
        if (found.length > 1) {
          yield* merge(
            known,
            oldest,
            found.slice(1).map(({ id }) => id)
          )
        }
        yield* addAliases(known, oldest.id)
        return oldest.id
      }
    }, Effect.orDie)

    return { resolve } as const
  })
}) {}
