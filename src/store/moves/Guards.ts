/**
 * Triggers on the rows of a tenant that is being moved. They record changes, and refuse them where the tenant is not
 * served. They exist only during the move, and fire only for the tenant's rows.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { TenantId } from "../../domain/Ids.ts"
import * as Tables from "../archive/Tables.ts"
import { isCatalogueConflict } from "../database/Failure.ts"

/** In milliseconds. All writes to a table wait while a change of its triggers waits for the lock. */
const lockTimeout = "100"
/** Maximum time of attempts to lock a table, to which long transactions may write. */
const maxRetryTime = Duration.minutes(10)

const retrySchedule = Schedule.exponential("50 millis").pipe(
  Schedule.union(Schedule.spaced("2 seconds")),
  Schedule.jittered,
  Schedule.upTo(maxRetryTime)
)

const namesOf = (tenantId: TenantId) => ({
  write: `tenant_moves_w_${tenantId}`,
  remove: `tenant_moves_d_${tenantId}`,
  hold: `tenant_moves_h_${tenantId}`
})

export class MoveGuards extends Effect.Service<MoveGuards>()("store/moves/Guards", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const tables = Effect.provideService(Tables.ofTenants, SqlClient.SqlClient, sql)
    const textLiteral = (value: string) => sql.literal(`'${value.replaceAll("'", "''")}'`)

    /** Runs `change` in a separate transaction, so that no two tables are locked at the same time. */
    const inOwnTransaction = <A, E>(change: Effect.Effect<A, E>) =>
      sql
        .withTransaction(
          Effect.zipRight(
            sql`select set_config('lock_timeout', ${lockTimeout}, true), set_config('statement_timeout', '0', true)`,
            change
          )
        )
        .pipe(
          Effect.retry({
            while: isCatalogueConflict,
            schedule: retrySchedule
          })
        )

    /** The tables with triggers of the tenant. */
    const guardedTables = (tenantId: TenantId) =>
      sql<{ readonly name: string }>`
        select distinct c.relname as name from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where t.tgname in ${sql.in(Object.values(namesOf(tenantId)))} and t.tgparentid = 0
          and c.relnamespace = to_regnamespace(quote_ident(current_schema()))`.pipe(
        Effect.map((rows) => new Set(rows.map(({ name }) => name)))
      )

    const installGuard = (tenantId: TenantId, { key, owner, table }: Tables.Table) => {
      const { remove, write } = namesOf(tenantId)
      const column = sql(owner ?? "tenant_id")
      const call = sql`execute function tenant_moves_guard(${sql.csv([tenantId, table, ...key].map((value) => sql`${textLiteral(value)}`))})`
      return Effect.zipRight(
        sql`create or replace trigger ${sql(write)} before insert or update on ${sql(table)}
          for each row when (new.${column} = ${textLiteral(tenantId)}) ${call}`,
        sql`create or replace trigger ${sql(remove)} before delete on ${sql(table)}
          for each row when (old.${column} = ${textLiteral(tenantId)}) ${call}`
      )
    }

    const holdJobs = (tenantId: TenantId) =>
      sql`create or replace trigger ${sql(namesOf(tenantId).hold)} after insert or update on queue_jobs
        for each row when (new.state = 'waiting' and (
          new.payload ->> 'tenantId' = ${textLiteral(tenantId)} or starts_with(new.owner, ${textLiteral(tenantId)})
            or new.payload ->> 'inboxId' is not null))
        execute function tenant_moves_hold(${textLiteral(tenantId)})`

    /** Creates the missing triggers on every table with rows of tenants, and on the queue. */
    const install = Effect.fn("MoveGuards.install")(function* (tenantId: TenantId) {
      const done = yield* guardedTables(tenantId)
      for (const table of yield* tables) {
        if (!done.has(table.table)) yield* inOwnTransaction(installGuard(tenantId, table))
      }
      if (!done.has("queue_jobs")) yield* inOwnTransaction(holdJobs(tenantId))
    })

    const remove = Effect.fn("MoveGuards.remove")(function* (tenantId: TenantId) {
      const names = namesOf(tenantId)
      for (const table of yield* guardedTables(tenantId)) {
        yield* inOwnTransaction(
          Effect.forEach(
            Object.values(names),
            (name) => sql`drop trigger if exists ${sql(name)} on ${sql(table)}`,
            { discard: true }
          )
        )
      }
    })

    return { install, remove } as const
  })
}) {}
