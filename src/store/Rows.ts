/**
 * Reads the rows of a statement by a schema. A statement that fails and a row that does not fit are defects, because no
 * caller can answer to them.
 */
import type { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { type Page, pageOf } from "../domain/Page.ts"

type Rows = Effect.Effect<ReadonlyArray<unknown>, SqlError>

/** All rows, in the order of the statement. */
export const all = <A, I>(Row: Schema.Schema<A, I>) => {
  // The schema of the rows' array would be compiled for each call.
  const decode = Schema.decodeUnknown(Row)
  return (statement: Rows): Effect.Effect<ReadonlyArray<A>> =>
    Effect.orDie(Effect.flatMap(statement, (rows) => Effect.forEach(rows, (row) => decode(row))))
}

/** The page of `limit` rows, in the order of ids. The statement returns one more row if there is a next page. */
export const page = <A extends { readonly id: string }, I>(Row: Schema.Schema<A, I>, limit: number) => {
  const read = all(Row)
  return (statement: Rows): Effect.Effect<Page<A>> =>
    Effect.map(read(statement), (found) => pageOf(found, limit))
}

/** The first row, if there is one. */
export const first = <A, I>(Row: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknown(Row)
  return (statement: Rows): Effect.Effect<Option.Option<A>> =>
    Effect.orDie(
      Effect.flatMap(statement, (rows) =>
        rows.length === 0 ? Effect.succeedNone : Effect.map(decode(rows[0]), Option.some)
      )
    )
}

/** The first row. A statement without rows is a defect. */
export const one = <A, I>(Row: Schema.Schema<A, I>) => {
  const decode = Schema.decodeUnknown(Row)
  return (statement: Rows): Effect.Effect<A> =>
    Effect.orDie(Effect.flatMap(statement, (rows) => decode(rows[0])))
}

/** True if the statement returned a row. */
export const any = (statement: Rows): Effect.Effect<boolean> =>
  Effect.orDie(Effect.map(statement, (rows) => rows.length > 0))

/** Runs the statement. */
export const none = (statement: Rows): Effect.Effect<void> => Effect.orDie(Effect.asVoid(statement))
