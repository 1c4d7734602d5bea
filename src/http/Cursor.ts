/**
 * Opaque, authenticated page cursors. A cursor is valid for the list that it came from: the same agent, route and
 * filter. Any other is 400.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { SecretBox } from "../capabilities/SecretBox.ts"
import { invalidField } from "../domain/Errors.ts"

/** The list that a cursor belongs to: scope, route and filter. */
export interface List {
  readonly scope: string
  readonly route: string
  readonly filter?: Readonly<Record<string, string | undefined>>
}

const listKey = ({ scope, route, filter = {} }: List) =>
  JSON.stringify([scope, route, Object.entries(filter).filter(([, value]) => value !== undefined)])

/** A cursor that continues `list` after the row `after`; null stays null. */
const encodeCursor = Effect.fn("Cursor.encodeCursor")(function* (list: List, after: string | number | null) {
  if (after === null) return null
  const box = yield* SecretBox
  return yield* box.sign("cursor", `${after}\n${listKey(list)}`)
})

/** The row after which `list` continues; undefined without a cursor. */
const decodeCursor = Effect.fn("Cursor.decodeCursor")(function* (list: List, cursor: string | undefined) {
  if (cursor === undefined) return undefined
  const box = yield* SecretBox
  const text = yield* box.verify("cursor", cursor)
  const suffix = `\n${listKey(list)}`
  if (Option.isNone(text) || !text.value.endsWith(suffix)) {
    return yield* invalidField(
      ["cursor"],
      "Expected a nextCursor of this list",
      "The cursor does not belong to this list. Start again without one."
    )
  }
  return text.value.slice(0, -suffix.length)
})

/** The page of `list` that `read` finds behind the row of `cursor`. Its `next` becomes the cursor of the next page. */
export const page = <A extends { readonly next: string | number | null }, E, R>(
  list: List,
  cursor: string | undefined,
  read: (after: string | undefined) => Effect.Effect<A, E, R>
) =>
  Effect.gen(function* () {
    const { next, ...found } = yield* read(yield* decodeCursor(list, cursor))
    return { ...found, nextCursor: yield* encodeCursor(list, next) }
  })
