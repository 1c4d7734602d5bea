/** Tenants, which the operator creates and lists. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Tenant } from "../../domain/agents/Agent.ts"
import type { TenantId } from "../../domain/Ids.ts"
import { pageOf } from "../../domain/Page.ts"
import * as Rows from "../Rows.ts"

export interface PageRequest {
  readonly limit: number
  /** The id of the last row of the previous page. */
  readonly after?: string | undefined
}

const Row = Schema.Struct({ ...Tenant.fields, createdAt: Schema.DateTimeUtcFromDate })

export class TenantStore extends Effect.Service<TenantStore>()("store/accounts/Tenants", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const insert = ({ id, name }: { readonly id: TenantId; readonly name: string }) =>
      sql`
        insert into tenants (id, name) values (${id}, ${name}) returning id, name, created_at as "createdAt"`.pipe(
        Rows.one(Row),
        Effect.map((row) => Tenant.make(row))
      )

    /** Newest first. */
    const list = ({ limit, after }: PageRequest) =>
      sql`
        select id, name, created_at as "createdAt" from tenants
        where ${after === undefined ? sql`true` : sql`id < ${after}`}
        order by id desc limit ${limit + 1}`.pipe(
        Rows.all(Row),
        Effect.map((found) =>
          pageOf(
            found.map((row) => Tenant.make(row)),
            limit
          )
        ),
        Effect.withSpan("TenantStore.list")
      )

    return { insert, list } as const
  })
}) {}
