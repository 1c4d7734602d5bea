/** Labels, saved views and canned replies of a tenant. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { maxInboxItems } from "../../domain/conversations/Inbox.ts"
import { toJsonb } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

/** Kind of an item. */
export const ItemKind = Schema.Literal("label", "view", "reply")
export type ItemKind = typeof ItemKind.Type

const Row = Schema.Struct({
  id: Schema.String,
  kind: ItemKind,
  name: Schema.String,
  content: Schema.Unknown
})
export type Item = typeof Row.Type

export class InboxItemStore extends Effect.Service<InboxItemStore>()("store/conversations/InboxItems", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Sorted by name. */
    const list = ({ tenantId }: TenantScope) =>
      sql`
        select id, kind, name, content from inbox_items where tenant_id = ${tenantId} order by lower(name), id`.pipe(
        Rows.all(Row),
        Effect.withSpan("InboxItemStore.list")
      )

    /** `taken`: another item of the kind has the name. `full`: the tenant has `maxInboxItems` of the kind. */
    const insert = Effect.fn("InboxItemStore.insert")(function* (
      { tenantId }: TenantScope,
      { content, id, kind, name }: Item
    ) {
      const [row] = yield* sql<{ readonly full: boolean; readonly made: boolean }>`
        with owner as (select id from tenants where id = ${tenantId} for no key update),
        room as (
          select count(*) >= ${maxInboxItems} as is_full from inbox_items
          where tenant_id = (select id from owner) and kind = ${kind}
        ), made as (
          insert into inbox_items (tenant_id, id, kind, name, content)
          select owner.id, ${id}, ${kind}, ${name}, ${toJsonb(content)}::jsonb from owner, room where not room.is_full
          on conflict (tenant_id, kind, lower(name)) do nothing returning id
        )
        select room.is_full as full, exists (select from made) as made from room`
      if (row?.made === true) return "made" as const
      return row?.full === true ? ("full" as const) : ("taken" as const)
    }, Effect.orDie)

    /** `missing`: the tenant has no such item of the kind. */
    const update = Effect.fn("InboxItemStore.update")(function* (
      { tenantId }: TenantScope,
      { content, id, kind, name }: Item
    ) {
      const [row] = yield* sql<{ readonly taken: boolean; readonly made: boolean }>`
        with other as (
          select exists (
            select from inbox_items where tenant_id = ${tenantId} and kind = ${kind} and lower(name) = lower(${name})
              and id <> ${id}
          ) as taken
        ), changed as (
          update inbox_items set name = ${name}, content = ${toJsonb(content)}::jsonb
          where tenant_id = ${tenantId} and kind = ${kind} and id = ${id} and not (select taken from other)
          returning id
        )
        select other.taken, exists (select from changed) as made from other`
      if (row?.made === true) return "made" as const
      return row?.taken === true ? ("taken" as const) : ("missing" as const)
    }, Effect.orDie)

    /** False when the tenant has no such item of the kind. */
    const remove = ({ tenantId }: TenantScope, kind: ItemKind, id: string) =>
      sql`
        delete from inbox_items where tenant_id = ${tenantId} and kind = ${kind} and id = ${id} returning id`.pipe(
        Rows.any,
        Effect.withSpan("InboxItemStore.remove")
      )

    return { list, insert, update, remove } as const
  })
}) {}
