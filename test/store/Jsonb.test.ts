import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import { toJsonb } from "../../src/store/Jsonb.ts"
import { sanitize } from "../../src/domain/Text.ts"
import { eachEngine } from "../TestDatabase.ts"

/** Any UTF-16, including lone surrogates and NUL. */
const text = FastCheck.array(
  FastCheck.oneof(
    FastCheck.constantFrom("\u0000", "\ud800", "\udc00", "\\", "\\u0000", '"', "\n", "😀", "a"),
    FastCheck.nat(0xffff).map((code) => String.fromCharCode(code))
  ),
  { maxLength: 12 }
).map((parts) => parts.join(""))

eachEngine("Values for jsonb", (it) => {
  it.effect.prop(
    "may have any texts, which lose only characters that jsonb refuses",
    [FastCheck.array(text, { maxLength: 5 })],
    ([texts]) =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [row] = yield* sql<{ readonly value: unknown }>`select ${toJsonb({ texts })}::jsonb as value`
        expect(row?.value).toEqual({ texts: texts.map(sanitize) })
      }),
    { fastCheck: { seed: 7, numRuns: 200 } }
  )

  it.effect("may have members of any name", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [row] = yield* sql<{ readonly value: unknown }>`
        select ${toJsonb({ "a\u0000": { "\ud800": 1 } })}::jsonb as value`
      expect(row?.value).toEqual({ a: { "\ufffd": 1 } })
    })
  )
})
