/**
 * Secrets in rows that pass between installations: opened with the keys of one side, and sealed with those of the other.
 * They are never in plain text outside of this process.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Sealing } from "../../../capabilities/SecretBox.ts"
import { StoredPurpose } from "../../../domain/StoredPurpose.ts"
import type { Table } from "../../../store/archive/Tables.ts"

const isStoredPurpose = Schema.is(StoredPurpose)

const decode = Schema.decode(Schema.parseJson(Schema.Array(Schema.NullOr(Schema.String))))

/** The text of a row as the database writes it. */
const encode = (values: ReadonlyArray<string | null>): string =>
  `[${values.map((value) => JSON.stringify(value)).join(", ")}]`

/** The resealed rows, and the number of secrets that could not be opened: these are left as they are. */
export interface Resealed {
  readonly rows: ReadonlyArray<string>
  readonly unreadable: number
}

const resealValue = (from: Sealing, to: Sealing, purpose: string | null, value: string | null) =>
  value === null || purpose === null || !isStoredPurpose(purpose)
    ? Effect.succeed({ value, isUnreadable: false })
    : Effect.flatMap(
        from.open(purpose, value),
        Option.match({
          onNone: () => Effect.succeed({ value, isUnreadable: true }),
          onSome: (text) =>
            Effect.map(to.seal(purpose, text), (sealed) => ({ value: sealed, isUnreadable: false }))
        })
      )

/** Reseals the rows of a table. */
export const reseal = (
  { sealed }: Pick<Table, "sealed">,
  rows: ReadonlyArray<string>,
  from: Sealing,
  to: Sealing
): Effect.Effect<Resealed> =>
  sealed.every((purpose) => purpose === null)
    ? Effect.succeed({ rows, unreadable: 0 })
    : Effect.forEach(rows, (row) =>
        Effect.gen(function* () {
          const values = yield* Effect.orDie(decode(row))
          const changed = yield* Effect.forEach(values, (value, index) =>
            resealValue(from, to, sealed[index] ?? null, value)
          )
          return {
            row: encode(changed.map(({ value }) => value)),
            unreadable: changed.filter(({ isUnreadable }) => isUnreadable).length
          }
        })
      ).pipe(
        Effect.map((all) => ({
          rows: all.map(({ row }) => row),
          unreadable: all.reduce((total, { unreadable }) => total + unreadable, 0)
        }))
      )
