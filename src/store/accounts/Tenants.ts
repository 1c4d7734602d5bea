/** Tenants, which the operator creates and lists. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Tenant } from "../../domain/agents/Agent.ts"
import { TenantId } from "../../domain/Ids.ts"
import type { Page } from "../../domain/Page.ts"

export interface PageRequest {
  readonly limit: number
  /** The id of the last row of the previous page. */
  readonly after?: string | undefined
}

const Row = Schema.Struct({ ...Tenant.fields, createdAt: Schema.DateTimeUtcFromDate })
const PageOf = Schema.Struct({ limit: Schema.Int, after: Schema.NullOr(Schema.String) })

export class TenantStore extends Effect.Service<TenantStore>()("store/accounts/Tenants", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const insertRow = SqlSchema.single({
      Request: Schema.Struct({ id: TenantId, name: Schema.String }),
      Result: Row,
      execute: ({ id, name }) => sql`
        insert into tenants (id, name) values (${id}, ${name}) returning id, name, created_at as "createdAt"`
    })

    const selectPage = SqlSchema.findAll({
      Request: PageOf,
      Result: Row,
      execute: ({ limit, after }) => sql`
        select id, name, created_at as "createdAt" from tenants
        where ${after === null ? sql`true` : sql`id < ${after}`}
        order by id desc limit ${limit}`
    })

    const insert = (tenant: { readonly id: TenantId; readonly name: string }) =>
      insertRow(tenant).pipe(
        Effect.orDie,
        Effect.map((row) => Tenant.make(row))
      )

    /** Newest first. */
    const list = Effect.fn("TenantStore.list")(function* ({ limit, after }: PageRequest) {
      const found = yield* selectPage({ limit: limit + 1, after: after ?? null })
      const rows = found.slice(0, limit).map((row) => Tenant.make(row))
      const page: Page<Tenant> = { rows, next: found.length > limit ? (rows.at(-1)?.id ?? null) : null }
      return page
    }, Effect.orDie)

    return { insert, list } as const
  })
}) {}
