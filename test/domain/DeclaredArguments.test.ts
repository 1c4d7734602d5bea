import { expect, test } from "vitest"
import { declaredArguments } from "../../src/domain/agents/DeclaredArguments.ts"
import type { JsonObject } from "../../src/domain/JsonValue.ts"

const input = { id: "1", page: 2, admin: true, constructor: "x" }

const declaredIn = (parameters: JsonObject, url = "https://shop.example/orders") =>
  Object.keys(declaredArguments({ parameters, http: { method: "GET", url, headers: {}, query: {} } }, input))

test("Members that the parameters do not name are not declared", () => {
  expect(declaredIn({ type: "object", properties: { id: {} } })).toEqual(["id"])
  expect(declaredIn({ type: "object", properties: { id: {} }, additionalProperties: false })).toEqual(["id"])
})

test("Placeholders, required names and the properties of combined schemas are declared", () => {
  const [some, url] = [{ type: "object", properties: { page: {} } }, "https://shop.example/{id}?page={page}"]
  expect(declaredIn(some, url)).toEqual(["id", "page"])
  expect(declaredIn({ type: "object", required: ["page"] })).toEqual(["page"])
  const [one, other] = [{ properties: { id: {} } }, { anyOf: [{ required: ["page"] }] }]
  for (const combined of [{ allOf: [one, other] }, { oneOf: [one, other] }, { if: one, else: other }])
    expect(declaredIn({ type: "object", ...combined })).toEqual(["id", "page"])
  expect(declaredIn({ type: "object", dependentSchemas: { other: one }, else: other })).toEqual([
    "id",
    "page"
  ])
})

test("Parameters that name nothing declare every member", () => {
  for (const parameters of [{}, { type: "object" }, { type: "object", properties: {} }])
    expect(declaredIn(parameters)).toEqual(Object.keys(input))
})

test("Properties of members are not those of the arguments", () => {
  expect(declaredIn({ type: "object", properties: { id: { properties: { admin: {} } } } })).toEqual(["id"])
})

test("Parameters that allow others explicitly, or name them elsewhere, declare every member", () => {
  for (const open of [
    { additionalProperties: true },
    { additionalProperties: { type: "string" } },
    { anyOf: [{ additionalProperties: {} }] },
    { patternProperties: { "^x-": {} } },
    { $ref: "#/$defs/order" }
  ])
    expect(declaredIn({ type: "object", properties: { id: {} }, ...open })).toEqual(Object.keys(input))
})
