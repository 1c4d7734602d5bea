/**
 * The state of a tenant that moves between two installations, each of which has a row. docs/design/placement.md has the
 * states and what holds in each of them.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Move, type MoveState } from "../../domain/accounts/TenantMove.ts"
import type { TenantId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"
import { timeAfter } from "../../concurrency/DatabaseTime.ts"

const columns = `tenant as "tenantId", move, role, state, handovers, served_at as "servedAt", accounts`

/** Notified when a row has changed. */
const channel = "tenant_moves"

const lockOf = (tenantId: string) => `tenant move ${tenantId}`

/** How long an attempt to fence waits before the next one. */
const fenceInterval = Duration.millis(10)

interface FenceOptions {
  readonly also?: Effect.Effect<void>
  readonly awaitsTurns?: boolean
}

export class MoveStore extends Effect.Service<MoveStore>()("store/moves/Moves", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const pg = yield* PgClient.PgClient
    const selected = sql.literal(columns)
    const notify = sql`select pg_notify(${channel}, '')`

    /** Every move of the installation. */
    const all = sql`select ${selected} from tenant_moves order by tenant`.pipe(Rows.all(Move))

    /** An element when a move may have changed here, by any process. The first comes once nothing is missed any more. */
    const changed = pg.listen(channel)

    /** The move of the tenant, if it has one. */
    const find = (tenantId: TenantId) =>
      sql`select ${selected} from tenant_moves where tenant = ${tenantId}`.pipe(Rows.first(Move))

    const withNotice = <A, E, R>(change: Effect.Effect<A, E, R>) => Effect.tap(change, () => notify)

    /**
     * Begins a move, or takes over its driving from an earlier command: what that one still writes is refused from here
     * on, and what it is writing has ended. False when the tenant has another move.
     */
    const begin = (
      tenantId: TenantId,
      { driver, move, role, servedAt }: Pick<Move, "move" | "role" | "servedAt"> & { readonly driver: string }
    ) =>
      sql`
        insert into tenant_moves as known (tenant, move, role, state, served_at, driver)
        values (${tenantId}, ${move}, ${role}, ${role === "origin" ? "serving" : "away"}, ${servedAt}, ${driver})
        on conflict (tenant) do update set driver = excluded.driver where known.move = excluded.move
        returning tenant`.pipe(
        withNotice,
        Effect.orDie,
        Effect.map((found) => found.length === 1)
      )

    /** Within a transaction: true while `driver` drives the move and the state is one of `states`, until it ends. */
    const holds = (tenantId: TenantId, driver: string, states: ReadonlyArray<MoveState>) =>
      sql`
        select tenant from tenant_moves
        where tenant = ${tenantId} and driver = ${driver} and state in ${sql.in(states)} for share`.pipe(
        Effect.orDie,
        Effect.map((found) => found.length === 1)
      )

    /** True while `driver` drives the move. */
    const isDrivenBy = (tenantId: TenantId, driver: string) =>
      sql`select tenant from tenant_moves where tenant = ${tenantId} and driver = ${driver}`.pipe(
        Effect.orDie,
        Effect.map((found) => found.length === 1)
      )

    /** Changes the state from one of `from`, for at most `hold`. False when it is another, or `driver` is not driving. */
    const hold = (
      tenantId: TenantId,
      driver: string,
      from: ReadonlyArray<MoveState>,
      to: "draining" | "pausing",
      lasts: Duration.DurationInput
    ) =>
      sql`
        update tenant_moves set state = ${to}, held_until = ${timeAfter(sql, lasts)}, updated_at = now(), accounts = array(
          select channel || ':' || external_id from channels where tenant_id = ${tenantId} and active order by 1)
        where tenant = ${tenantId} and driver = ${driver} and state in ${sql.in(from)} returning tenant`.pipe(
        withNotice,
        Effect.orDie,
        Effect.map((found) => found.length === 1)
      )

    /**
     * Fences the tenant: when it returns true, no transaction is writing rows of it or queueing jobs, and none can. Waits
     * for those that are, without making others wait behind it. With `awaitsTurns` it also waits for the tenant's turns:
     * one that was let in before the pause may begin at any time until then. `also` runs in the transaction that fences it.
     */
    const fence = (
      tenantId: TenantId,
      driver: string,
      wait: Duration.DurationInput,
      { also = Effect.void, awaitsTurns = false }: FenceOptions = {}
    ) => {
      const attempt = sql.withTransaction(
        Effect.gen(function* () {
          const [lock] = yield* sql<{ readonly mine: boolean }>`
            select pg_try_advisory_xact_lock(hashtextextended(${lockOf(tenantId)}, 0)) as mine`
          if (lock?.mine !== true) return Option.none<boolean>()
          // A statement behind the lock, so that it sees those that have begun until then.
          const running = yield* sql`
            select from agent_runs where tenant_id = ${tenantId} and status = 'running' and ${awaitsTurns} limit 1`
          if (running.length > 0) return Option.none<boolean>()
          const changed = yield* sql`
            update tenant_moves set state = 'fenced', updated_at = now()
            where tenant = ${tenantId} and driver = ${driver} and state in ('pausing', 'fenced') returning tenant`
          if (changed.length === 1) yield* also
          return Option.some(changed.length === 1)
        })
      )
      return Effect.zipLeft(attempt, Effect.sleep(fenceInterval)).pipe(
        Effect.repeat({ until: Option.isSome }),
        Effect.map(Option.getOrElse(() => false)),
        Effect.timeoutTo({ duration: wait, onTimeout: () => false, onSuccess: (fenced) => fenced }),
        withNotice,
        Effect.orDie
      )
    }

    /**
     * The decision: the tenant is served elsewhere from here on. False, without a change, when it is not fenced, the
     * hold is over, or changes are left to copy.
     */
    const handOver = (tenantId: TenantId, driver: string) =>
      sql`
        update tenant_moves set state = 'away', handovers = handovers + 1, held_until = null, updated_at = now()
        where tenant = ${tenantId} and driver = ${driver} and state = 'fenced' and held_until > clock_timestamp()
          and not exists (select from tenant_moves_changes where tenant = ${tenantId})
        returning tenant`.pipe(
        withNotice,
        Effect.orDie,
        Effect.map((found) => found.length === 1)
      )

    /** The tenant is served here from the caller's commit on. `handovers`: the number at the other side. */
    const serve = (tenantId: TenantId, driver: string, handovers: number) =>
      sql`
        update tenant_moves set state = 'serving', handovers = ${handovers}, updated_at = now()
        where tenant = ${tenantId} and driver = ${driver} and state = 'away' and handovers < ${handovers}
        returning tenant`.pipe(
        withNotice,
        Effect.map((found) => found.length === 1)
      )

    /** Serves the tenant again before it was handed over. */
    const release = (tenantId: TenantId, driver: string) =>
      sql`
        update tenant_moves set state = 'serving', held_until = null, updated_at = now()
        where tenant = ${tenantId} and driver = ${driver} and state in ('draining', 'pausing', 'fenced')
        returning tenant`.pipe(
        withNotice,
        Effect.map((found) => found.length === 1)
      )

    /** {@link release} of tenants whose command has not come back in time. Returns them. */
    const releaseExpired = sql<{ readonly tenantId: TenantId }>`
      update tenant_moves set state = 'serving', held_until = null, updated_at = now()
      where state in ('draining', 'pausing', 'fenced') and held_until < clock_timestamp()
      returning tenant as "tenantId"`.pipe(
      // A notification makes every process look for expired ones again.
      Effect.tap((released) => (released.length > 0 ? notify : Effect.void))
    )

    /** Forgets the move. False, without a change, while jobs wait to be carried over. */
    const forget = (tenantId: TenantId) =>
      sql
        .withTransaction(
          Effect.gen(function* () {
            const waiting = yield* sql`
              select id from tenant_moves_jobs where tenant = ${tenantId} and not queued limit 1`
            if (waiting.length > 0) return false
            for (const table of [
              "tenant_moves_changes",
              "tenant_moves_parts",
              "tenant_moves_jobs",
              "tenant_moves"
            ])
              yield* sql`delete from ${sql(table)} where tenant = ${tenantId}`
            return true
          })
        )
        .pipe(withNotice, Effect.orDie)

    return {
      all,
      changed,
      find,
      begin,
      holds,
      isDrivenBy,
      hold,
      fence,
      handOver,
      serve,
      release,
      releaseExpired,
      forget
    } as const
  })
}) {}
