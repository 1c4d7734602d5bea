/**
 * Triggers on the rows of a tenant that moves: they note changes, and refuse them where the tenant is not served. They
 * exist only during its move, and are called for its rows alone.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { TenantId } from "../../domain/Ids.ts"
import * as Tables from "../archive/Tables.ts"
import { isCatalogueConflict } from "../database/Failure.ts"

/** Everybody's writes to a table wait as long as a change of its triggers waits for its lock. */
const lockTimeout = "100"
/** A lock on a table is tried for at most so long, because long transactions may write to it. */
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
    const text = (value: string) => sql.literal(`'${value.replaceAll("'", "''")}'`)

    /** In a transaction of its own for each table, so that no two tables are locked at once. */
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
    const guarded = (tenantId: TenantId) =>
      sql<{ readonly name: string }>`
        select distinct c.relname as name from pg_trigger t join pg_class c on c.oid = t.tgrelid
        where t.tgname in ${sql.in(Object.values(namesOf(tenantId)))} and t.tgparentid = 0
          and c.relnamespace = current_schema()::regnamespace`.pipe(
        Effect.map((rows) => new Set(rows.map(({ name }) => name)))
      )

    const guard = (tenantId: TenantId, { key, owner, table }: Tables.Table) => {
      const { remove, write } = namesOf(tenantId)
      const column = sql(owner ?? "tenant_id")
      const call = sql`execute function tenant_moves_guard(${sql.csv([tenantId, table, ...key].map((value) => sql`${text(value)}`))})`
      return Effect.zipRight(
        sql`create or replace trigger ${sql(write)} before insert or update on ${sql(table)}
          for each row when (new.${column} = ${text(tenantId)}) ${call}`,
        sql`create or replace trigger ${sql(remove)} before delete on ${sql(table)}
          for each row when (old.${column} = ${text(tenantId)}) ${call}`
      )
    }

    const holdJobs = (tenantId: TenantId) =>
      sql`create or replace trigger ${sql(namesOf(tenantId).hold)} after insert or update on queue_jobs
        for each row when (new.state = 'waiting' and (
          new.payload ->> 'tenantId' = ${text(tenantId)} or starts_with(new.owner, ${text(tenantId)})
            or new.payload ->> 'inboxId' is not null))
        execute function tenant_moves_hold(${text(tenantId)})`

    /** Guards every table with rows of the tenant. Does what is missing. */
    const install = Effect.fn("MoveGuards.install")(function* (tenantId: TenantId) {
      const done = yield* guarded(tenantId)
      for (const table of yield* tables) {
        if (!done.has(table.table)) yield* inOwnTransaction(guard(tenantId, table))
      }
      if (!done.has("queue_jobs")) yield* inOwnTransaction(holdJobs(tenantId))
    })

    const remove = Effect.fn("MoveGuards.remove")(function* (tenantId: TenantId) {
      const names = namesOf(tenantId)
      for (const table of yield* guarded(tenantId)) {
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
