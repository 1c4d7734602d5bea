/**
 * One installation's side of moves of tenants. Answers the requests of the command that drives a move, or that imports
 * a tenant from an archive. docs/design/placement.md has the states and the order of the requests.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { forEveryTenant } from "../../../concurrency/TenantSession.ts"
import type * as Wire from "../../../domain/accounts/TenantMove.ts"
import { Conflict, ServiceUnavailable, ValidationError, noSuch } from "../../../domain/Errors.ts"
import type { TenantId } from "../../../domain/Ids.ts"
import { sqlStateOf } from "../../../store/Database.ts"
import * as Tables from "../../../store/archive/Tables.ts"
import { ProcessLeases } from "../../../store/chat/ProcessLeases.ts"
import { MoveGuards } from "../../../store/moves/Guards.ts"
import { HeldJobs } from "../../../store/moves/HeldJobs.ts"
import { MoveStore } from "../../../store/moves/Moves.ts"
import { AuditTrail } from "../../accounts/AuditTrail.ts"
import { TenantRows } from "./TenantRows.ts"

/** Time between two reads of the moves by a process. It is also notified of changes, but a notification can be lost. */
export const pollInterval = Duration.seconds(1)

/** True for values that do not fit their columns (class 22), or a constraint of the table (class 23). */
const isInvalidValue = (sqlState: string | null) => /^2[23]/u.test(sqlState ?? "")
const invalidValues = () => new ValidationError({ message: "The database does not take these values." })

/** False for errors that a retry does not change: missing privileges, unsupported features. */
const isRetryable = (sqlState: string | null) => !/^(?:42|0A)/u.test(sqlState ?? "")

/** True for an import whose tenant is served. Its command was killed before it ended the move. */
const isServedImport = ({ servedAt, state }: Wire.Move) => servedAt === null && state === "serving"

export class TenantMoves extends Effect.Service<TenantMoves>()("usecases/operations/TenantMoves", {
  dependencies: [TenantRows.Default, HeldJobs.Default, MoveGuards.Default, MoveStore.Default],
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const moves = yield* MoveStore
    const guards = yield* MoveGuards
    const jobs = yield* HeldJobs
    const rows = yield* TenantRows
    const leases = yield* ProcessLeases
    const audit = yield* AuditTrail

    const withSql = Effect.provideService(SqlClient.SqlClient, sql)

    const nameOf = (tenantId: TenantId) =>
      sql<{ readonly name: string }>`select name from tenants where id = ${tenantId}`.pipe(
        Effect.orDie,
        Effect.map(([row]) => row?.name ?? null)
      )

    const facts = (tenantId: TenantId) =>
      Effect.gen(function* () {
        const all = yield* rows.tables
        const move = yield* moves.find(tenantId)
        return {
          migrations: yield* Effect.orDie(withSql(Tables.migrationsApplied)),
          tables: all.map(({ columns, table, types }) => ({ table, columns, types })),
          name: yield* nameOf(tenantId),
          // Another command has no other side of an import to end it with. Its move ends the import.
          move: Option.getOrNull(Option.filter(move, (found) => !isServedImport(found)))
        }
      })

    /** Deletes the move, with its triggers and what it holds. */
    const end = (tenantId: TenantId) =>
      Effect.gen(function* () {
        // No job is held from here on.
        yield* Effect.orDie(guards.remove(tenantId))
        yield* rows.release(tenantId)
        return yield* moves.forget(tenantId)
      })

    /** Begins a move, or continues it. Both sides note who drives it before anything is copied. */
    const begin = Effect.fn("TenantMoves.begin")(function* (tenantId: TenantId, request: Wire.Begin) {
      const found = yield* moves.find(tenantId)
      const isOver = Option.exists(found, (known) => isServedImport(known) && known.move !== request.move)
      if (isOver) yield* end(tenantId)
      const existing = isOver ? Option.none() : found
      const isThere = (yield* nameOf(tenantId)) !== null
      if (Option.isNone(existing) && request.role === "origin" && !isThere) return yield* noSuch("tenant")
      if (Option.isNone(existing) && request.role === "destination" && isThere)
        return yield* new Conflict({ message: "The destination has a tenant with this id already." })
      if (!(yield* moves.begin(tenantId, request)))
        return yield* new Conflict({
          message: "The tenant has another move. End it with --confirm or --rollback first."
        })
      yield* guards.install(tenantId).pipe(
        Effect.tapErrorCause((cause) => Effect.logWarning("A move could not prepare a table", cause)),
        Effect.mapError((error) =>
          isRetryable(sqlStateOf(error))
            ? new ServiceUnavailable({
                message:
                  "The triggers of a move could not be created: a long transaction holds one of the tables."
              })
            : new Conflict({
                message:
                  "The triggers of a move could not be created. The role of DATABASE_URL must own the tables, and these must not be distributed over several servers. Export and import the tenant instead."
              })
        )
      )
      // Every process knows of the move before the tenant's first row arrives: none may serve a part of the tenant.
      if (request.role === "destination" && !isThere) yield* Effect.sleep(Duration.times(pollInterval, 2))
      return Option.getOrThrow(yield* moves.find(tenantId))
    })

    const hold = (tenantId: TenantId, { driver, millis, to }: Wire.Hold) =>
      Effect.gen(function* () {
        const from =
          to === "draining"
            ? (["serving", "draining"] as const)
            : (["serving", "draining", "pausing"] as const)
        const changed = yield* moves.hold(tenantId, driver, from, to, millis)
        if (changed) yield* jobs.take(tenantId, { running: false })
        return { changed }
      })

    const progress = (tenantId: TenantId) =>
      Effect.all({
        move: Effect.map(moves.find(tenantId), Option.getOrNull),
        turns: leases.countRunning({ tenantId }),
        jobs: jobs.countRunning(tenantId),
        held: jobs.countHeld(tenantId)
      })

    const requireDriver = <A, E>(tenantId: TenantId, driver: string, work: Effect.Effect<A, E>) =>
      Effect.filterOrFail(
        moves.isDrivenBy(tenantId, driver),
        (mine) => mine,
        () =>
          new Conflict({ message: "Another command has taken over the move.", details: { reason: "taken" } })
      ).pipe(Effect.zipRight(work))

    /** Turns end as failed, and jobs wait to be run at the other side. */
    const endRunning = (tenantId: TenantId, { driver, jobs: ofJobs, turns }: Wire.EndRunning) =>
      requireDriver(
        tenantId,
        driver,
        Effect.gen(function* () {
          if (turns) yield* Effect.orDie(leases.endAll({ tenantId }))
          if (ofJobs) yield* jobs.take(tenantId, { running: true })
          return {}
        })
      )

    const fence = (tenantId: TenantId, { awaitsTurns, driver, millis }: Wire.Fence) =>
      // Also takes jobs from transactions that had begun before the pause.
      Effect.map(
        moves.fence(tenantId, driver, millis, {
          awaitsTurns,
          beforeCommit: jobs.take(tenantId, { running: true })
        }),
        (changed) => ({
          changed
        })
      )

    const handOver = (tenantId: TenantId, { driver }: Wire.HandOver) =>
      Effect.map(moves.handOver(tenantId, driver), (changed) => ({ changed }))

    const requeueAfter = (tenantId: TenantId, change: Effect.Effect<boolean, unknown>) =>
      sql
        .withTransaction(Effect.tap(change, (changed) => (changed ? jobs.requeue(tenantId) : Effect.void)))
        .pipe(
          Effect.orDie,
          Effect.map((changed) => ({ changed }))
        )

    /** Serves the tenant here, and queues the jobs that have arrived. */
    const serve = (tenantId: TenantId, { driver, handovers }: Wire.Serve) =>
      requeueAfter(tenantId, moves.serve(tenantId, driver, handovers))

    const release = (tenantId: TenantId, { driver }: Wire.Release) =>
      requeueAfter(tenantId, moves.release(tenantId, driver))

    /** {@link release} of tenants whose command did not come back in time. */
    const releaseExpired = sql
      .withTransaction(
        Effect.tap(moves.releaseExpired, (released) =>
          Effect.forEach(released, ({ tenantId }) => jobs.requeue(tenantId), { discard: true })
        )
      )
      .pipe(
        Effect.orDie,
        Effect.map((released) => released.length)
      )

    /** Stores jobs that were carried over; those of a tenant that is served here run at once. */
    const writeJobs = (tenantId: TenantId, { driver, jobs: given }: Wire.WriteJobs) =>
      requireDriver(
        tenantId,
        driver,
        Effect.gen(function* () {
          yield* jobs.store(tenantId, given)
          const move = yield* moves.find(tenantId)
          if (Option.exists(move, ({ state }) => state === "serving")) yield* jobs.requeue(tenantId)
          return {}
        }).pipe(sql.withTransaction, Effect.orDie)
      )

    const writeEvents = (tenantId: TenantId, { driver, events }: Wire.WriteEvents) =>
      requireDriver(tenantId, driver, Effect.as(jobs.storeEvents(events), {}))

    /** Removes some events and rows of a tenant that is not served here, and at the end its remaining jobs. */
    const removeSome = (tenantId: TenantId, { driver }: Wire.RemoveSome) =>
      Effect.gen(function* () {
        const removed = yield* rows.whileAway(tenantId, driver, jobs.removeEvents(tenantId))
        if (removed || (yield* rows.removeSome(tenantId, driver))) return { more: true }
        yield* rows.whileAway(tenantId, driver, jobs.removeEnded(tenantId))
        return { more: false }
      })

    /** False while jobs of a tenant that is served elsewhere run here, or wait to be carried over. */
    const forget = (tenantId: TenantId, { driver }: Wire.Forget) =>
      Effect.gen(function* () {
        const move = yield* moves.find(tenantId)
        // An earlier request has ended the move, and its answer was lost.
        if (Option.isNone(move)) return { changed: true }
        const isServed = move.value.state === "serving"
        // Otherwise rows of a tenant that is served elsewhere would be served here again.
        if (!isServed && (yield* nameOf(tenantId)) !== null)
          return yield* new Conflict({ message: "The move of the tenant is not over here." })
        // A running job fails and is then held, by the triggers that are removed below.
        if (!isServed && (yield* jobs.countRunning(tenantId)) > 0) return { changed: false }
        const ended = yield* requireDriver(tenantId, driver, end(tenantId))
        return { changed: ended }
      })

    /**
     * Writes the audit entry of an answered request where the tenant is served, because its trail moves with it. A
     * failure is only logged: the move cannot be undone.
     */
    const record = Effect.fn("TenantMoves.record")(function* (
      tenantId: TenantId,
      { _tag }: Wire.MoveRequest,
      before: Option.Option<Wire.Move>,
      requestId: string
    ) {
      const now = yield* moves.find(tenantId)
      const isImport = Option.exists(
        Option.orElse(now, () => before),
        ({ servedAt }) => servedAt === null
      )
      const isAway = Option.exists(now, ({ state }) => state !== "serving")
      if (isAway || (yield* nameOf(tenantId)) === null) return
      const by = { tenantId, actor: { type: "operator", id: "operator" }, requestId } as const
      const recordAction = (action: string) => Effect.ignore(audit.record(by, action, tenantId))
      const isSame = Option.exists(before, ({ move }) => Option.exists(now, (known) => known.move === move))
      if (_tag === "Begin" && !isSame) yield* recordAction("tenant.begin_move")
      if (_tag === "Serve") yield* isImport ? recordAction("tenant.import") : recordAction("tenant.move")
      if (_tag === "Forget" && !isImport) yield* recordAction("tenant.end_move")
    })

    const answer = Effect.fn("TenantMoves.answer")(function* (tenantId: TenantId, request: Wire.MoveRequest) {
      switch (request._tag) {
        case "Facts":
          return yield* facts(tenantId)
        case "Begin":
          return yield* begin(tenantId, request)
        case "Split":
          return yield* rows.split(tenantId, request)
        case "ReadPage":
          return yield* rows.readPage(tenantId, request)
        case "ReadPageWithChanges":
          return yield* rows.readPageWithChanges(tenantId, request)
        case "WritePage":
          return yield* rows.writePage(tenantId, request)
        case "Filled":
          return yield* rows.filledTables(tenantId)
        case "Parts":
          return yield* rows.parts(tenantId)
        case "Arrived":
          return yield* rows.recordArrival(tenantId, request)
        case "ReadChanges":
          return yield* rows.readChanges(tenantId, request)
        case "WriteChanges":
          return yield* rows.writeChanges(tenantId, request)
        case "Acknowledge":
          return yield* rows.acknowledge(tenantId, request)
        case "Sample":
          return yield* rows.sample(tenantId, request)
        case "Compare":
          return yield* rows.compare(tenantId, request)
        case "Count":
          return yield* rows.count(tenantId, request)
        case "Originals":
          return yield* rows.refs(tenantId, request)
        case "MissingOriginals":
          return yield* rows.missing(tenantId, request)
        case "Hold":
          return yield* hold(tenantId, request)
        case "Progress":
          return yield* progress(tenantId)
        case "EndRunning":
          return yield* endRunning(tenantId, request)
        case "Fence":
          return yield* fence(tenantId, request)
        case "HandOver":
          return yield* handOver(tenantId, request)
        case "Serve":
          return yield* serve(tenantId, request)
        case "Release":
          return yield* release(tenantId, request)
        case "ReadJobs":
          return { jobs: yield* jobs.read(tenantId) }
        case "WriteJobs":
          return yield* writeJobs(tenantId, request)
        case "AcknowledgeJobs":
          return yield* Effect.as(jobs.acknowledge(tenantId, request.ids), {})
        case "ReadEvents":
          return yield* jobs.readEvents(tenantId, request.after)
        case "WriteEvents":
          return yield* writeEvents(tenantId, request)
        case "RemoveSome":
          return yield* removeSome(tenantId, request)
        case "Forget":
          return yield* forget(tenantId, request)
      }
    }, forEveryTenant("archive"))

    /** Answers a request about the tenant. */
    const ask = (tenantId: TenantId, request: Wire.MoveRequest, requestId: string) =>
      Effect.gen(function* () {
        const before = yield* moves.find(tenantId)
        const answered = yield* answer(tenantId, request)
        if (["Begin", "Serve", "Forget"].includes(request._tag))
          yield* record(tenantId, request, before, requestId)
        return answered
      }).pipe(
        // Rows, keys and jobs are texts of the other side's database. This side's database is what checks them.
        Effect.catchSomeDefect((defect) =>
          isInvalidValue(sqlStateOf(defect)) ? Option.some(invalidValues()) : Option.none()
        ),
        forEveryTenant("archive")
      )

    return { ask, putOriginal: rows.putOriginal, getOriginal: rows.getOriginal, releaseExpired } as const
  })
}) {}
