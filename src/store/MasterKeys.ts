/**
 * Stores the ids of the master secrets that the database was written with, so that a lost or wrong secret is noticed
 * before it is used. Read-only commands use it before migrations are applied too.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

const tableExists = (table: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ readonly there: boolean }>`select to_regclass(${table}) is not null as there`,
      ([row]) => row?.there === true
    )
  )

/** Whether a tenant exists. */
export const hasTenants = Effect.gen(function* () {
  if (!(yield* tableExists("tenants"))) return false
  const sql = yield* SqlClient.SqlClient
  return (yield* sql`select 1 from tenants limit 1`).length > 0
}).pipe(Effect.orDie)

/** The key ids in sealed values: `v1.<id>.…`. */
const usedKeyIds = Effect.gen(function* () {
  if (!(yield* tableExists("tools")) || !(yield* tableExists("channels"))) return []
  const sql = yield* SqlClient.SqlClient
  return yield* sql<{ readonly id: string }>`/* every tenant: operator */
    select split_part(secret, '.', 2) as id from tools where secret is not null
    union select split_part(access_token, '.', 2) from channels
    union select split_part(secrets, '.', 2) from channels where secrets is not null
    ${(yield* tableExists("webhook_endpoints")) ? sql`union select split_part(secret, '.', 2) from webhook_endpoints` : sql``}
    ${(yield* tableExists("sso_connections")) ? sql`union select split_part(client_secret, '.', 2) from sso_connections` : sql``}
    ${(yield* tableExists("tool_connections")) ? sql`union select split_part(tokens, '.', 2) from tool_connections where tokens is not null` : sql``}`
})

/** The ids of all valid secrets; none when nothing was sealed yet. */
export const knownIds = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const recorded = (yield* tableExists("master_keys"))
    ? yield* sql<{ readonly id: string }>`select id from master_keys`
    : []
  const rows = recorded.length > 0 ? recorded : yield* usedKeyIds
  return rows.map(({ id }) => id)
}).pipe(Effect.orDie)

/** Records the secret `id` as valid for the database. */
export const recordKeyId = (id: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql`insert into master_keys (id) values (${id}) on conflict do nothing`.pipe(
      Effect.whenEffect(tableExists("master_keys"))
    )
  ).pipe(Effect.asVoid, Effect.orDie)

/** The number of sealed values, which must be entered again when the master secret is lost. */
export const sealedCounts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{
    readonly tools: number
    readonly channels: number
    readonly webhooks: number
    readonly signOns: number
    readonly connections: number
  }>`/* every tenant: operator */
    select (select count(*) from tools where secret is not null)::int as tools,
      (select count(*) from channels)::int as channels, (select count(*) from webhook_endpoints)::int as webhooks,
      (select count(*) from sso_connections)::int as "signOns",
      (select count(*) from tool_connections where tokens is not null)::int as connections`
  return row ?? { tools: 0, channels: 0, webhooks: 0, signOns: 0, connections: 0 }
}).pipe(Effect.orDie)
