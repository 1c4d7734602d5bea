/** In which words a request is told what it should have been. */
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { described } from "../../../src/domain/Text.ts"
import { toError } from "../../../src/http/server/Issues.ts"

const Text = Schema.Trim.pipe(Schema.minLength(1), Schema.maxLength(20))

const given = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

const Body = Schema.Struct({
  name: given(Text),
  on: given(Schema.Boolean),
  list: given(Schema.Array(Text)),
  inner: given(Schema.Struct({ name: Text })),
  slots: given(Schema.Record({ key: Schema.String, value: Schema.String })),
  kind: given(Schema.Literal("URL", "FILE")),
  from: given(Schema.DateTimeUtc),
  count: given(described(Schema.Int.pipe(Schema.between(1, 20)), "How many; 5 by default.")),
  rights: given(Schema.Array(Schema.Literal("chat", "retrieve", "*")))
})

const told = (body: unknown) =>
  Schema.decodeUnknown(Body, { errors: "all" })(body).pipe(
    Effect.flip,
    Effect.flatMap(HttpApiDecodeError.fromParseError),
    Effect.map((error) => toError(error).details)
  )

it.effect(
  "Details say what was expected in terms of JSON, one issue per field, and never what was sent",
  () =>
    Effect.gen(function* () {
      const canary = "canary"
      const expected = {
        name: [
          "Expected a string",
          "Expected a string of at least 1 character",
          "Expected a string of at most 20 characters"
        ],
        on: ["Expected a boolean"],
        list: ["Expected an array"],
        inner: ["Expected a JSON object"],
        slots: ["Expected a JSON object"],
        kind: ['Expected "URL" | "FILE"'],
        from: ["Expected an ISO 8601 timestamp"],
        count: ["Expected a number between 1 and 20"]
      }
      const sent = {
        name: [1, " ", canary.repeat(9)],
        on: [canary],
        list: [canary],
        inner: [[canary]],
        slots: [canary],
        kind: [canary],
        from: [canary],
        count: [21]
      }
      for (const [field, messages] of Object.entries(expected))
        for (const [place, message] of messages.entries())
          expect(yield* told({ [field]: sent[field as keyof typeof sent][place] })).toEqual({
            issues: [{ path: [field], message }]
          })
      for (const body of [null, [], canary, 3])
        expect(yield* told(body)).toEqual({ issues: [{ path: [], message: "Expected a JSON object" }] })
      expect(yield* told({ rights: ["chat", canary] })).toEqual({
        issues: [{ path: ["rights", 1], message: 'Expected "chat" | "retrieve" | "*"' }]
      })
      expect(yield* told({ name: 1, on: 1 })).toMatchObject({
        issues: [{ path: ["name"] }, { path: ["on"] }]
      })
    })
)
