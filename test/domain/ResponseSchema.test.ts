import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import { resolved } from "../../src/domain/chat/ResponseSchema.ts"
import type { JsonObject } from "../../src/domain/Text.ts"

const problem = (schema: JsonObject) =>
  Either.match(resolved(schema), {
    onLeft: ({ message, path }) => `${path.join("/")}: ${message}`,
    onRight: () => null
  })

const object = (properties: JsonObject) => ({ type: "object", properties })

const nested = (levels: number): JsonObject =>
  levels === 0 ? { type: "string" } : { type: "array", items: nested(levels - 1) }

describe("A schema that replies are held to", () => {
  it("may use every keyword that is checked, and annotations", () => {
    const schema = object({
      city: { type: "string", minLength: 1, maxLength: 80, description: "Where", examples: ["Oslo"] },
      kind: { enum: ["a", "b"], default: "a" },
      count: { type: ["integer", "null"], minimum: 0, exclusiveMaximum: 10 },
      tags: { type: "array", items: { type: "string", format: "email" }, minItems: 1, maxItems: 3 },
      either: { anyOf: [{ const: 1 }, { oneOf: [{ type: "boolean" }] }] }
    })
    expect(problem({ ...schema, required: ["city"], additionalProperties: false, $schema: "…" })).toBeNull()
  })

  it("is told without its references", () => {
    const schema = {
      ...object({ at: { $ref: "#/$defs/Place" }, far: { $ref: "#/$defs/Place", type: "object" } }),
      $defs: { Place: { $id: "x", ...object({ city: { $ref: "#/definitions/Name" } }) } },
      definitions: { Name: { type: "string" } }
    }
    const place = object({ city: { type: "string" } })
    expect(Either.getOrThrow(resolved(schema))).toEqual(
      object({ at: place, far: { allOf: [place, { type: "object" }] } })
    )
  })

  it("may be a reference to an object, as of schemas with a name", () => {
    const place = object({ city: { type: "string" } })
    const refers = (schema: JsonObject) => ({ $ref: "#/definitions/Place", definitions: { Place: schema } })
    expect(Either.getOrThrow(resolved(refers(place)))).toEqual(place)
    expect(problem(refers({ type: "string" }))).toBe('type: Expected "object": a reply is an object')
    expect(problem(refers({ $ref: "#/definitions/Place" }))).toContain("contains itself")
  })

  it.each([
    ["another type", { type: "array" }, 'type: Expected "object": a reply is an object'],
    [
      "a keyword that is not checked",
      object({ mail: { type: "string", pattern: "^a" } }),
      "properties/mail/pattern: The keyword pattern is not supported"
    ],
    [
      "a word that is no keyword, which is not repeated",
      object({ mail: { "sk-secret": true } }),
      "properties/mail: It has a keyword that is not one of JSON Schema"
    ],
    [
      "a type that is none",
      object({ mail: { type: "text" } }),
      "properties/mail/type: Expected a type of JSON Schema, or a list of them"
    ],
    [
      "a bound that is none",
      object({ mail: { minLength: -1 } }),
      "properties/mail/minLength: Expected an integer from 0"
    ],
    ["a schema that is none", object({ mail: true }), "properties/mail: Expected a JSON Schema as an object"],
    [
      "a reference to nothing",
      object({ mail: { $ref: "https://example.com/schema" } }),
      "properties/mail/$ref: Expected the reference of a schema in $defs"
    ],
    [
      "a schema that contains itself",
      {
        ...object({ next: { $ref: "#/$defs/Node" } }),
        $defs: { Node: object({ next: { $ref: "#/$defs/Node" } }) }
      },
      "properties/next/$ref/properties/next/$ref: A schema that contains itself is not supported"
    ]
  ])("may not be %s", (_, schema: JsonObject, told) => {
    expect(problem(schema)).toBe(told)
  })

  it("is bounded in depth", () => {
    expect(problem(object({ deep: nested(14) }))).toBeNull()
    expect(problem(object({ deep: nested(15) }))).toContain("Expected at most 16 schemas")
  })

  it("is bounded in length, and what its references come to is part of it", () => {
    expect(problem(object({ long: { enum: ["x".repeat(32 * 1024)] } }))).toContain("too long")
    const doubled = Object.fromEntries(
      Array.from({ length: 14 }, (_, level) => [
        `D${level}`,
        { anyOf: [{ $ref: `#/$defs/D${level + 1}` }, { $ref: `#/$defs/D${level + 1}` }] }
      ])
    )
    expect(
      problem({ ...object({ many: { $ref: "#/$defs/D0" } }), $defs: { ...doubled, D14: { type: "null" } } })
    ).toMatch(/too long|schemas within each other/u)
  })
})
