/** Sessions that hold a lock for which another one waits, described for the operator. Query texts are never read. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"

interface Holder {
  readonly pid: number
  /** Null if the role may not see it. */
  readonly application: string | null
  readonly state: string | null
  /** Seconds since its transaction began. */
  readonly age: number | null
}

/** The sessions that held the lock at the last check. */
export type LastHolders = Effect.Effect<ReadonlyArray<Holder>>

/** The waiting session, once it is known, and the sessions that blocked it at the last check. */
interface Watched {
  readonly pid: number | null
  readonly holders: ReadonlyArray<Holder>
}

const blockingSessions = (pid: number) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<Holder>`
      select pid, application_name as application, state, extract(epoch from clock_timestamp() - xact_start)::int as age
      from pg_stat_activity where pid = any(pg_blocking_pids(${pid})) order by xact_start limit 5`
  )

/**
 * Checks at intervals, on another connection, which sessions block the waiting one, until the scope ends. Must be
 * started outside the transaction that waits.
 */
export const watch = (every: Duration.DurationInput) =>
  Effect.gen(function* () {
    const watched = yield* Ref.make<Watched>({ pid: null, holders: [] })
    const check = Effect.gen(function* () {
      const { pid } = yield* Ref.get(watched)
      if (pid === null) return
      const holders = yield* blockingSessions(pid)
      if (holders.length > 0) yield* Ref.set(watched, { pid, holders })
    })
    yield* check.pipe(Effect.ignore, Effect.delay(every), Effect.forever, Effect.forkScoped)
    /** Registers the session that is going to wait. */
    const setWaiting = (pid: number) => Ref.set(watched, { pid, holders: [] })
    return { setWaiting, holders: Effect.map(Ref.get(watched), ({ holders }) => holders) }
  })

const describedHolder = ({ age, application, pid, state }: Holder) => {
  const named = application === null || application === "" ? "" : ` of "${application}"`
  const since = age === null ? "" : `, its transaction open for ${age} seconds`
  return `session ${pid}${named} (${state ?? "its state may not be seen by this role"}${since})`
}

/** A sentence that names the blocking sessions. */
export const describeHolders = (holders: ReadonlyArray<Holder>): string =>
  holders.length === 0
    ? "Who holds the lock could not be seen: look at pg_locks and pg_stat_activity."
    : `The lock is held by ${holders.map(describedHolder).join(" and ")}.`

/** Advice to the operator: how to end the wait. */
export const remedyFor = (holders: ReadonlyArray<Holder>): string =>
  holders.length === 0
    ? "End the transaction that holds it"
    : `End that transaction, or its session with ${holders.map(({ pid }) => `select pg_terminate_backend(${pid})`).join(", ")}`
