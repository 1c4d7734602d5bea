import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import { sanitize } from "../../src/domain/Text.ts"
import { eachTerm, pieces, toTsvector } from "../../src/search/Tokenizer.ts"
import { eachEngine } from "../TestDatabase.ts"

/** Words, symbols and marks of all scripts, in any order. */
const text = FastCheck.array(
  FastCheck.oneof(
    FastCheck.constantFrom(
      "\u26a0\ufe0f",
      "\ufe0f",
      "\u0301",
      "'",
      "\\",
      ":",
      " ",
      "Größe ",
      "漢字",
      "words "
    ),
    FastCheck.string({ unit: "grapheme", maxLength: 4 }),
    FastCheck.nat(0xffff).map((code) => String.fromCharCode(code))
  ),
  { maxLength: 20 }
).map((parts) => sanitize(parts.join("")))

const termsOf = (tsv: string) => {
  const found = new Map<string, number>()
  eachTerm(tsv, (term, frequency) => found.set(term, frequency))
  return found
}

eachEngine("Index rows", (it) => {
  it.effect.prop(
    "are stored for any text of a chunk, with all its terms",
    [text, FastCheck.boolean()],
    ([content, english]) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { tsv } = toTsvector(pieces(content, { english }))
        const [row] = yield* sql<{ readonly tsv: string }>`select ${tsv}::tsvector::text as tsv`
        expect(termsOf(row?.tsv ?? "")).toEqual(termsOf(tsv))
      }),
    { fastCheck: { seed: 7, numRuns: 500 } }
  )
})
