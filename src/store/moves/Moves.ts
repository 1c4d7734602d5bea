/**
 * The state of a tenant that is being moved. Both installations have a row of it. docs/design/placement.md explains the
 * states.
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

/** Time between two attempts to fence. */
const fenceInterval = Duration.millis(10)

interface FenceOptions {
  readonly beforeCommit?: Effect.Effect<void>
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

    /** Emits when a process may have changed a move. After the first element, no change is missed. */
    const changed = pg.listen(channel)

    /** The move of the tenant, if it has one. */
    const find = (tenantId: TenantId) =>
      sql`select ${selected} from tenant_moves where tenant = ${tenantId}`.pipe(Rows.first(Move))

    const notifyAfter = <A, E, R>(change: Effect.Effect<A, E, R>) => Effect.tap(change, () => notify)

    /**
     * Begins a move, or takes it over from the command that has driven it until now: writes of that command have ended,
     * and later ones are refused. False when the tenant has another move.
     */
    const begin = (
      tenantId: TenantId,
      { driver, move, role, servedAt }: Pick<Move, "move" | "role" | "servedAt"> & { readonly driver: string }
    ) =>
      sql`
        insert into tenant_moves as known (tenant, move, role, state, served_at, driver)
        values (${tenantId}, ${move}, ${role}, ${role === "origin" ? "serving" : "away"}, ${servedAt}, ${driver})
        on conflict (tenant) do update set driver = excluded.driver where known.move = excluded.move
        returning tenant`.pipe(notifyAfter, Rows.any)

    /**
     * True if `driver` drives the move and the tenant is away. Locks the row, so that this remains true until the
     * caller's transaction ends.
     */
    const lockWhileAway = (tenantId: TenantId, driver: string) =>
      sql`
        select tenant from tenant_moves
        where tenant = ${tenantId} and driver = ${driver} and state = 'away' for share`.pipe(Rows.any)

    /** True while `driver` drives the move. */
    const isDrivenBy = (tenantId: TenantId, driver: string) =>
      sql`select tenant from tenant_moves where tenant = ${tenantId} and driver = ${driver}`.pipe(Rows.any)

    /**
     * Changes the state from one of `from`, for at most `maxDuration`. False when it is another one, or `driver` does
     * not drive the move.
     */
    const hold = (
      tenantId: TenantId,
      driver: string,
      from: ReadonlyArray<MoveState>,
      to: "draining" | "pausing",
      maxDuration: Duration.DurationInput
    ) =>
      sql`
        update tenant_moves set state = ${to}, held_until = ${timeAfter(sql, maxDuration)}, updated_at = now(), accounts = array(
          select channel || ':' || external_id from channels where tenant_id = ${tenantId} and active order by 1)
        where tenant = ${tenantId} and driver = ${driver} and state in ${sql.in(from)} returning tenant`.pipe(
        notifyAfter,
        Rows.any
      )

    /**
     * Fences the tenant. When it returns true, no transaction writes rows of the tenant or queues jobs for it, and none
     * can begin. Waits for running transactions without blocking others. With `awaitsTurns`, it also waits for the
     * tenant's turns, because a turn that was accepted before the pause may begin until then. `beforeCommit` runs in
     * the transaction that fences the tenant.
     */
    const fence = (
      tenantId: TenantId,
      driver: string,
      wait: Duration.DurationInput,
      { beforeCommit = Effect.void, awaitsTurns = false }: FenceOptions = {}
    ) => {
      const attempt = sql.withTransaction(
        Effect.gen(function* () {
          const [lock] = yield* sql<{ readonly mine: boolean }>`
            select pg_try_advisory_xact_lock(hashtextextended(${lockOf(tenantId)}, 0)) as mine`
          if (lock?.mine !== true) return Option.none<boolean>()
          // A separate statement after the lock, so that it sees turns that began before.
          const running = yield* sql`
            select from agent_runs where tenant_id = ${tenantId} and status = 'running' and ${awaitsTurns} limit 1`
          if (running.length > 0) return Option.none<boolean>()
          const changed = yield* sql`
            update tenant_moves set state = 'fenced', updated_at = now()
            where tenant = ${tenantId} and driver = ${driver} and state in ('pausing', 'fenced') returning tenant`
          if (changed.length === 1) yield* beforeCommit
          return Option.some(changed.length === 1)
        })
      )
      return Effect.zipLeft(attempt, Effect.sleep(fenceInterval)).pipe(
        Effect.repeat({ until: Option.isSome }),
        Effect.map(Option.getOrElse(() => false)),
        Effect.timeoutTo({ duration: wait, onTimeout: () => false, onSuccess: (fenced) => fenced }),
        notifyAfter,
        Effect.orDie
      )
    }

    /**
     * Hands the tenant over: from now on, the other installation may serve it. False, without a change, when the tenant
     * is not fenced, the hold has expired, or changes are left to copy.
     */
    const handOver = (tenantId: TenantId, driver: string) =>
      sql`
        update tenant_moves set state = 'away', handovers = handovers + 1, held_until = null, updated_at = now()
        where tenant = ${tenantId} and driver = ${driver} and state = 'fenced' and held_until > clock_timestamp()
          and not exists (select from tenant_moves_changes where tenant = ${tenantId})
        returning tenant`.pipe(notifyAfter, Rows.any)

    /** Serves the tenant here, once the caller's transaction commits. `handovers`: their number at the other side. */
    const serve = (tenantId: TenantId, driver: string, handovers: number) =>
      sql`
        update tenant_moves set state = 'serving', handovers = ${handovers}, updated_at = now()
        where tenant = ${tenantId} and driver = ${driver} and state = 'away' and handovers < ${handovers}
        returning tenant`.pipe(
        notifyAfter,
        Effect.map((found) => found.length === 1)
      )

    /** Serves the tenant again, instead of handing it over. */
    const release = (tenantId: TenantId, driver: string) =>
      sql`
        update tenant_moves set state = 'serving', held_until = null, updated_at = now()
        where tenant = ${tenantId} and driver = ${driver} and state in ('draining', 'pausing', 'fenced')
        returning tenant`.pipe(
        notifyAfter,
        Effect.map((found) => found.length === 1)
      )

    /** {@link release} for tenants whose command has not continued in time. Returns them. */
    const releaseExpired = sql<{ readonly tenantId: TenantId }>`
      update tenant_moves set state = 'serving', held_until = null, updated_at = now()
      where state in ('draining', 'pausing', 'fenced') and held_until < clock_timestamp()
      returning tenant as "tenantId"`.pipe(
      // Not notified without need, because every notified process looks for expired moves again.
      Effect.tap((released) => (released.length > 0 ? notify : Effect.void))
    )

    /** Deletes the move. False, without a change, while jobs wait to be transferred. */
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
        .pipe(notifyAfter, Effect.orDie)

    return {
      all,
      changed,
      find,
      begin,
      lockWhileAway,
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
