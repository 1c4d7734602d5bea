/**
 * Brings the rows, originals and jobs of a tenant from the side that serves it to the other one, while it is served.
 * docs/design/placement.md says why nothing is lost or doubled.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Redacted from "effect/Redacted"
import type * as Schema from "effect/Schema"
import * as Wire from "../../domain/accounts/TenantMove.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
import type { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { MoveFailed, type Side } from "./Side.ts"

/** Rows of a part. Smaller parts repeat fewer rows after an interruption; larger ones need fewer requests. */
const rowsPerPart = 20_000
/** Keys of rows that are compared at a time. */
const rowsPerSample = 1_000
/** Changes of a round, and the maximum if some of them depend on later ones. */
const changesPerRound = 500
const maxChangesPerRound = 32_000
/** Changes are copied this often while rows are compared. */
const compareInterval = Duration.seconds(1)
/** Originals in transfer at a time. */
const maxConcurrentOriginals = 4

export interface Transfer {
  readonly from: Side
  readonly to: Side
  readonly driver: string
  /** The key that secrets are sealed under in transfer. */
  readonly sealKey: Redacted.Redacted
  /** Pages in transfer at a time. */
  readonly streams: number
  readonly tables: ReadonlyArray<string>
  readonly report: (text: string) => Effect.Effect<void>
  /** Counts secrets that could not be opened. */
  readonly unreadable: (count: number) => void
}

const isOutOfOrder = ({ reason }: MoveFailed) => reason === "order"

const copyOriginal = ({ from, to }: Transfer, ref: ArtifactRef) =>
  Effect.flatMap(
    from.original(ref),
    // It was removed, so its rows are gone too, or will be.
    Option.match({ onNone: () => Effect.void, onSome: (bytes) => to.putOriginal(ref, bytes) })
  )

const copyMissingOriginals = (transfer: Transfer, refs: ReadonlyArray<ArtifactRef>) =>
  Effect.gen(function* () {
    if (refs.length === 0) return
    const missing = yield* transfer.to.ask(new Wire.MissingOriginals({ refs }))
    yield* Effect.forEach(missing.refs, (ref) => copyOriginal(transfer, ref), {
      concurrency: maxConcurrentOriginals,
      discard: true
    })
  })

/** Copies the originals that the destination does not have. */
export const copyOriginals = (transfer: Transfer) =>
  Effect.gen(function* () {
    let count = 0
    for (let after = ""; ;) {
      const { refs } = yield* transfer.from.ask(new Wire.Originals({ after }))
      const last = refs.at(-1)
      if (last === undefined) break
      yield* copyMissingOriginals(transfer, refs)
      count += refs.length
      after = last
    }
    if (count > 0) yield* transfer.report(`${"originals".padEnd(24)} ${count}`)
  })

const storeChanges = (transfer: Transfer, { changes, refs, seqs }: Wire.ChangeSet) =>
  Effect.gen(function* () {
    if (seqs.length === 0) return
    const { driver, from, sealKey, to } = transfer
    yield* copyMissingOriginals(transfer, refs)
    const { unreadable } = yield* to.ask(new Wire.WriteChanges({ driver, changes, sealKey }))
    transfer.unreadable(unreadable)
    yield* from.ask(new Wire.Acknowledge({ seqs }))
  })

/**
 * Copies the oldest changes. Returns how many, and whether there are `more` for sure. Pages must not be in transfer
 * meanwhile: one that was read before a change and written after it would bring the old row back.
 */
const copyChanges = (
  transfer: Transfer,
  limit = changesPerRound
): Effect.Effect<{ readonly count: number; readonly more: boolean }, MoveFailed> =>
  Effect.gen(function* () {
    const { from, sealKey, tables } = transfer
    const found = yield* from.ask(new Wire.ReadChanges({ tables, limit, sealKey }))
    yield* storeChanges(transfer, found)
    return { count: found.seqs.length, more: found.more }
  }).pipe(
    // The rows on which these depend are among later changes.
    Effect.catchIf(
      (error) => isOutOfOrder(error) && limit < maxChangesPerRound,
      () => copyChanges(transfer, limit * 4)
    )
  )

/** Copies changes until at most `maxLeft` are left. Others are made meanwhile. */
export const catchUp = (transfer: Transfer, maxLeft = changesPerRound - 1) =>
  copyChanges(transfer).pipe(
    Effect.repeat({ until: ({ count, more }) => !more && count <= maxLeft }),
    Effect.asVoid
  )

/** Copies all changes of a tenant that is fenced. */
export const copyLastChanges = (transfer: Transfer) => catchUp(transfer, 0)

/** Pages are copied at the same time; changes are copied while no page is in transfer. */
const makeLocks = (streams: number) =>
  Effect.map(Effect.makeSemaphore(streams), (places) => ({
    page: places.withPermits(1),
    changes: places.withPermits(streams)
  }))
type Locks = Effect.Effect.Success<ReturnType<typeof makeLocks>>

const writePage = (transfer: Transfer, table: string, rows: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    if (rows.length === 0) return
    const { driver, sealKey, to } = transfer
    const { unreadable } = yield* to.ask(new Wire.WritePage({ driver, table, rows, sealKey }))
    transfer.unreadable(unreadable)
  })

const copyPage = (transfer: Transfer, part: Wire.TablePart, locks: Locks) => {
  const { from, sealKey, tables } = transfer
  const { table } = part
  const copyOnly = Effect.gen(function* () {
    const { next, rows } = yield* from.ask(new Wire.ReadPage({ ...part, sealKey }))
    yield* writePage(transfer, table, rows)
    return { next, count: rows.length }
  })
  // For a page with a row that depends on one that has changed since the table of that one was copied.
  const copyWithChanges = Effect.gen(function* () {
    yield* catchUp(transfer)
    const limit = maxChangesPerRound
    const { page, ...changes } = yield* from.ask(
      new Wire.ReadPageWithChanges({ ...part, sealKey, tables, limit })
    )
    yield* storeChanges(transfer, changes)
    yield* writePage(transfer, table, page.rows)
    return { next: page.next, count: page.rows.length }
  })
  return Effect.catchIf(locks.page(copyOnly), isOutOfOrder, () => locks.changes(copyWithChanges))
}

const copyPart = (transfer: Transfer, part: Wire.TablePart, locks: Locks) =>
  Effect.gen(function* () {
    let count = 0
    for (let { after } = part; ;) {
      const page = yield* copyPage(transfer, { ...part, after }, locks)
      count += page.count
      if (page.next === null) break
      after = page.next
    }
    yield* transfer.to.ask(new Wire.Arrived(part))
    // Keeps the list of changes short.
    if (part.upTo !== null) yield* locks.changes(copyChanges(transfer))
    return count
  })

/** Parts that have arrived, by where they begin. */
type Arrived = ReadonlyMap<string, Wire.TablePart>

const partKey = ({ after, table }: Pick<Wire.TablePart, "table" | "after">) => JSON.stringify([table, after])

/** Copies the parts of a table that have not arrived, several at a time. */
const copyTable = (transfer: Transfer, table: string, arrived: Arrived, locks: Locks) =>
  Effect.gen(function* () {
    const { from, streams } = transfer
    const waiting = yield* Queue.bounded<Wire.TablePart | null>(streams)
    let count = 0
    const plan = Effect.gen(function* () {
      for (let after: Wire.RowKey | null = null; ;) {
        const transferred = arrived.get(partKey({ table, after }))
        const upTo: Wire.RowKey | null =
          transferred === undefined
            ? (yield* from.ask(new Wire.Split({ table, after, rows: rowsPerPart }))).upTo
            : transferred.upTo
        if (transferred === undefined) yield* Queue.offer(waiting, { table, after, upTo })
        if (upTo === null) break
        after = upTo
      }
      yield* Queue.offerAll(
        waiting,
        Array.from({ length: streams }, () => null)
      )
    })
    const work = Effect.gen(function* () {
      for (;;) {
        const part = yield* Queue.take(waiting)
        if (part === null) return
        const copied = yield* copyPart(transfer, part, locks)
        count += copied
        if (part.upTo !== null) yield* transfer.report(`${table.padEnd(24)} ${count} …`)
      }
    })
    yield* Effect.all([plan, ...Array.from({ length: streams }, () => work)], {
      concurrency: "unbounded",
      discard: true
    })
    if (count > 0) yield* transfer.report(`${table.padEnd(24)} ${count}`)
  })

/** Copies everything that has not arrived yet, and then the changes that were made meanwhile. */
export const copy = (transfer: Transfer) =>
  Effect.gen(function* () {
    const { from, tables, to } = transfer
    yield* copyOriginals(transfer)
    const locks = yield* makeLocks(transfer.streams)
    const filled = new Set((yield* from.ask(new Wire.Filled())).tables)
    const { parts } = yield* to.ask(new Wire.Parts())
    const arrived = new Map(parts.map((part) => [partKey(part), part]))
    for (const [place, table] of tables.entries()) {
      // If a table is empty now, its later rows are copied as changes.
      if (!filled.has(table)) continue
      // Changes of later tables may depend on rows that have not arrived.
      yield* copyTable({ ...transfer, tables: tables.slice(0, place + 1) }, table, arrived, locks)
    }
    yield* catchUp(transfer)
  })

const differs = (table: string, what: string) =>
  new MoveFailed({
    reason: "differs",
    message:
      `The copy of ${table} differs: ${what}. Nothing was cut over. Something else has written to the destination's ` +
      `tables; undo the move with --rollback and begin again.`
  })

/** The result of comparing a table. Rows that had changes then were compared when the changes were copied. */
export interface TableComparison {
  readonly table: string
  readonly rows: number
  readonly hash: string
}

const compareTable = (transfer: Transfer, table: string, afterSample: Effect.Effect<void, MoveFailed>) =>
  Effect.gen(function* () {
    const { from, to } = transfer
    let rows = 0
    let hash = 0n
    for (let after: Wire.RowKey | null = null; ;) {
      const sample: Schema.WithResult.Success<Wire.Sample> = yield* from.ask(
        new Wire.Sample({ table, after, rows: rowsPerSample })
      )
      const { digest, keys, next } = sample
      if (keys.length > 0) {
        const other = yield* to.ask(new Wire.Compare({ table, keys }))
        if (other.rows !== digest.rows)
          return yield* differs(table, `${digest.rows - other.rows} of ${digest.rows} rows are missing`)
        if (other.hash !== digest.hash)
          return yield* differs(table, `some of ${digest.rows} rows are not the same`)
      }
      rows += digest.rows
      hash += BigInt(digest.hash)
      yield* afterSample
      if (next === null) break
      after = next
    }
    const counted = yield* from.ask(new Wire.Count({ table, changing: null }))
    const copied = yield* to.ask(new Wire.Count({ table, changing: counted.changing }))
    if (counted.rows !== copied.rows)
      return yield* differs(table, `it has ${copied.rows} rows instead of ${counted.rows}`)
    const compared: TableComparison = { table, rows, hash: hash.toString() }
    return compared
  })

/** Compares tables that have rows in the copy but none at the side that serves the tenant. */
const compareEmpty = (transfer: Transfer) =>
  Effect.gen(function* () {
    yield* catchUp(transfer)
    const copied = (yield* transfer.to.ask(new Wire.Filled())).tables
    const filled = new Set((yield* transfer.from.ask(new Wire.Filled())).tables)
    for (const table of copied.filter((name) => !filled.has(name))) {
      yield* compareTable(transfer, table, Effect.void)
    }
  })

/** Compares the rows and their number on both sides, table by table. Fails when they differ. */
export const compare = (transfer: Transfer): Effect.Effect<ReadonlyArray<TableComparison>, MoveFailed> =>
  Effect.gen(function* () {
    let caughtUp = yield* monotonicMillis
    /** Keeps the list of changes short. */
    const catchUpIfDue = Effect.gen(function* () {
      if ((yield* monotonicMillis) - caughtUp < Duration.toMillis(compareInterval)) return
      yield* catchUp(transfer)
      caughtUp = yield* monotonicMillis
    })
    const filled = new Set((yield* transfer.from.ask(new Wire.Filled())).tables)
    const compared = yield* Effect.forEach(
      transfer.tables.filter((table) => filled.has(table)),
      (table) => compareTable(transfer, table, catchUpIfDue)
    )
    yield* compareEmpty(transfer)
    yield* catchUp(transfer)
    return compared
  })

/** Carries over jobs that wait at a side that does not serve the tenant: all, or as many as `maxTime` allows. */
export const carryJobs = ({ driver, from, to }: Transfer, maxTime: Duration.Duration = Duration.infinity) =>
  Effect.gen(function* () {
    const end = (yield* monotonicMillis) + Duration.toMillis(maxTime)
    do {
      const { jobs } = yield* from.ask(new Wire.ReadJobs())
      if (jobs.length === 0) return
      yield* to.ask(new Wire.WriteJobs({ driver, jobs }))
      yield* from.ask(new Wire.AcknowledgeJobs({ ids: jobs.map(({ id }) => id) }))
    } while ((yield* monotonicMillis) < end)
  })

/** Copies the events of channels that were processed. No reply depends on them any more. */
export const copyEvents = ({ driver, from, to }: Transfer) =>
  Effect.gen(function* () {
    for (let after: string | null = ""; after !== null;) {
      const page: Schema.WithResult.Success<Wire.ReadEvents> = yield* from.ask(new Wire.ReadEvents({ after }))
      if (page.events.length > 0) yield* to.ask(new Wire.WriteEvents({ driver, events: page.events }))
      after = page.next
    }
  })
