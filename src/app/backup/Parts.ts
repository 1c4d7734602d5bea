/**
 * Writes the rows of tables to parts of an archive, several at a time, each a range of keys of one table. An interrupted
 * export keeps the finished parts whose rows have not changed since: the database compares their hash.
 */
import * as path from "node:path"
import * as Effect from "effect/Effect"
import type { RowKey } from "../../domain/accounts/TenantMove.ts"
import * as RowTexts from "../../store/archive/RowTexts.ts"
import { type Table, withoutSealed } from "../../store/archive/Tables.ts"
import * as Manifest from "./Manifest.ts"
import * as PartFile from "./PartFile.ts"

/** Rows of a part. Smaller parts make more files; of larger ones more rows are repeated after an interruption. */
export const rowsPerPart = 20_000

/** A part to be written, and the finished part of an earlier try, if there is one. */
interface PlannedPart {
  readonly table: Table
  readonly range: RowTexts.Range
  readonly finished: Manifest.Part | undefined
}

export interface Work {
  readonly folder: string
  readonly tables: ReadonlyArray<Table>
  readonly tenantId: string | null
  readonly finished: Manifest.Finished
  readonly add: (part: Manifest.Part) => Effect.Effect<void, PartFile.ArchiveError>
  /** Changes rows before they are written. Their hash is that of the rows without what it changes. */
  readonly reseal:
    ((table: Table, rows: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>>) | null
  readonly rowsPerPart: number
}

/** Makes file names by table: `chunks-000001`. */
const makeNames = (finished: Manifest.Finished) => {
  const last = new Map<string, number>()
  for (const { file, table } of finished.values()) {
    const number = Number(/-(\d+)\.jsonl\.gz$/u.exec(file)?.[1] ?? 0)
    last.set(table, Math.max(last.get(table) ?? 0, number))
  }
  return (table: string) => {
    const number = (last.get(table) ?? 0) + 1
    last.set(table, number)
    return path.posix.join("rows", `${table}-${String(number).padStart(6, "0")}.jsonl.gz`)
  }
}

/**
 * The next part each time it runs, in the transaction of the caller; null at the end. Callers take turns. A finished
 * part keeps its range, so that parts never overlap.
 */
const makePlan = ({ finished, rowsPerPart: rows, tables, tenantId }: Work) =>
  Effect.map(Effect.makeSemaphore(1), (oneAtATime) => {
    let place = 0
    let after: RowKey | null = null
    const next = Effect.gen(function* () {
      const table = tables[place]
      if (table === undefined) return null
      const finishedPart = finished.get(Manifest.partKey({ table: table.table, after }))
      const rest: RowTexts.Range = { tenantId, after, upTo: null }
      const upTo =
        finishedPart === undefined ? yield* RowTexts.boundary(table, rest, rows) : finishedPart.upTo
      const planned: PlannedPart = { table, range: { ...rest, upTo }, finished: finishedPart }
      after = upTo
      if (upTo === null) place += 1
      return planned
    })
    return oneAtATime.withPermits(1)(next)
  })

/** Writes parts until there are no more. Run it once for each stream, each time in a transaction of its own. */
export const make = (work: Work) =>
  Effect.gen(function* () {
    const next = yield* makePlan(work)
    const nameOf = makeNames(work.finished)
    const journalLock = yield* Effect.makeSemaphore(1)
    const parts = new Map<string, Manifest.Part>()

    const isSealed = ({ sealed }: Table) => work.reseal !== null && sealed.some((purpose) => purpose !== null)
    /** The table as its rows are hashed. */
    const asHashed = (table: Table) => (isSealed(table) ? withoutSealed(table) : table)

    const isCurrent = ({ finished, range, table }: PlannedPart) =>
      Effect.gen(function* () {
        // A secret may have changed in a row that is the same without it.
        if (finished === undefined || isSealed(table)) return false
        const { hash, rows } = yield* RowTexts.digestOfRange(asHashed(table), range)
        // An interrupted export may have replaced the file before it recorded the part.
        return (
          rows === finished.rows &&
          hash === finished.hash &&
          (yield* PartFile.isWhole(path.join(work.folder, finished.file), finished))
        )
      })

    const writePart = ({ finished, range, table }: PlannedPart) =>
      Effect.gen(function* () {
        const file = finished?.file ?? nameOf(table.table)
        const digester = RowTexts.makeDigester()
        const { bytes, sha256 } = yield* PartFile.write(path.join(work.folder, file), (take) =>
          RowTexts.readRange(table, range, (rows) =>
            Effect.gen(function* () {
              if (!isSealed(table)) digester.add(rows)
              yield* take(work.reseal === null ? rows : yield* work.reseal(table, rows))
            })
          )
        )
        // Tables with sealed columns are small.
        const digest = isSealed(table)
          ? yield* RowTexts.digestOfRange(asHashed(table), range)
          : digester.digest()
        const { after, upTo } = range
        const part: Manifest.Part = { table: table.table, after, upTo, ...digest, file, bytes, sha256 }
        yield* journalLock.withPermits(1)(work.add(part))
        return part
      })

    const writeParts = Effect.gen(function* () {
      for (;;) {
        const planned = yield* next
        if (planned === null) return
        const part =
          (yield* isCurrent(planned)) && planned.finished !== undefined
            ? planned.finished
            : yield* writePart(planned)
        parts.set(Manifest.partKey(part), part)
      }
    })
    return { writeParts, parts }
  })
