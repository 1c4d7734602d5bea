import { describe, expect, it } from "vitest"
import {
  type Argument,
  argumentsOf,
  argumentTypes,
  choicesOf,
  schemaOf
} from "../../src/ui/dashboard/pages/agents/tools/parameters.ts"

const row = (fields: Partial<Argument>): Argument => ({
  name: "number",
  type: "string",
  description: "",
  isRequired: false,
  choices: "",
  ...fields
})

describe("A tool's arguments as rows", () => {
  it("are the same after they were written as a schema and read again", () => {
    const rows = argumentTypes.flatMap((type) =>
      [true, false].map((isRequired) =>
        row({
          name: `${type}_${isRequired}`,
          type,
          isRequired,
          description: isRequired ? "What it is" : "",
          choices: type === "choice" ? "red, light blue" : ""
        })
      )
    )
    expect(argumentsOf(schemaOf(rows))).toEqual(rows)
    expect(argumentsOf(schemaOf([]))).toEqual([])
  })

  it("are left out while they have no name, and trimmed", () => {
    expect(schemaOf([row({ name: " " }), row({ name: " id ", isRequired: true })])).toEqual({
      type: "object",
      properties: { id: { type: "string" } },
      required: ["id"]
    })
    expect(choicesOf({ choices: " red,, blue ,red" })).toEqual(["red", "blue"])
  })

  it.each([
    [{ type: "object", properties: { a: { type: "array", items: { type: "string" } } } }],
    [{ type: "object", properties: { a: { type: "string", minLength: 3 } } }],
    [{ type: "object", properties: { a: { type: ["string", "null"] } } }],
    [{ type: "object", properties: { a: { enum: [1, 2] } } }],
    [{ type: "object", properties: { a: { enum: ["one, two", "three"] } } }],
    [{ type: "object", properties: { a: true } }],
    [{ type: "object", properties: {}, additionalProperties: false }],
    [{ type: "object", properties: {}, required: ["missing"] }],
    [{ type: "object", properties: { a: { type: "string" } }, required: "a" }],
    [{ type: "string" }]
  ])("do not show %j, of which a form would lose something", (schema) => {
    expect(argumentsOf(schema)).toBeNull()
  })
})
