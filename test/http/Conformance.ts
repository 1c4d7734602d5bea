/** Checks answers against `/openapi.json`, with a small validator for the parts of JSON Schema that the document uses. */
import { publicDescription } from "../../src/http/Description.ts"

type Json = ReturnType<typeof JSON.parse>

const document: Json = JSON.parse(JSON.stringify(publicDescription()))

/** Keywords that the validator supports. A document with another keyword is an error. */
const supportedKeywords = new Set([
  "$ref",
  "additionalProperties",
  "allOf",
  "anyOf",
  "description",
  "enum",
  "example",
  "examples",
  "exclusiveMinimum",
  "format",
  "items",
  "maxItems",
  "maxLength",
  "maximum",
  "minItems",
  "minLength",
  "minimum",
  "oneOf",
  "pattern",
  "properties",
  "required",
  "title",
  "type",
  "default",
  "const",
  "uniqueItems",
  "propertyNames"
])

const typeOf = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : typeof value

const fits = (type: string, value: unknown) =>
  type === "integer" ? Number.isInteger(value) : type === typeOf(value)

const named = (ref: string): Json =>
  ref
    .slice(2)
    .split("/")
    .reduce((node: Json, name) => node[name], document)

/** The problems of `value`, each with its path; empty if it matches the schema. */
export const schemaProblems = (schema: Json, value: Json, at = "$"): ReadonlyArray<string> => {
  if (schema === true || schema === undefined) return []
  const unsupported = Object.keys(schema).filter((keyword) => !supportedKeywords.has(keyword))
  if (unsupported.length > 0) return [`${at}: unsupported keywords ${unsupported.join(", ")}`]
  if (schema.$ref !== undefined) return schemaProblems(named(schema.$ref), value, at)
  const wrong: Array<string> = []
  for (const member of schema.allOf ?? []) wrong.push(...schemaProblems(member, value, at))
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) {
    const all = choices.map((choice: Json) => schemaProblems(choice, value, at))
    if (all.every((each: ReadonlyArray<string>) => each.length > 0))
      wrong.push(`${at} fits no member: ${all.flat().join("; ")}`)
  }
  if (schema.enum !== undefined && !schema.enum.includes(value)) wrong.push(`${at} is none of ${schema.enum}`)
  if (schema.const !== undefined && schema.const !== value) wrong.push(`${at} is not ${schema.const}`)
  const types = schema.type === undefined ? [] : [schema.type].flat()
  if (types.length > 0 && !types.some((type: string) => fits(type, value)))
    return [...wrong, `${at} is no ${types.join(" or ")}`]
  if (typeof value === "string") {
    if (schema.pattern !== undefined && !new RegExp(schema.pattern, "u").test(value))
      wrong.push(`${at} does not match`)
    if (schema.format === "date-time" && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value))
      wrong.push(`${at} is no ISO 8601 time in UTC with milliseconds`)
    if (value.length < (schema.minLength ?? 0) || value.length > (schema.maxLength ?? Infinity))
      wrong.push(`${at} is too short or long`)
  }
  if (
    typeof value === "number" &&
    (value < (schema.minimum ?? -Infinity) || value > (schema.maximum ?? Infinity))
  ) {
    wrong.push(`${at} is out of range`)
  }
  if (Array.isArray(value) && schema.items !== undefined) {
    value.forEach((item, place) => wrong.push(...schemaProblems(schema.items, item, `${at}[${place}]`)))
  }
  if (typeOf(value) === "object") {
    for (const name of schema.required ?? []) if (!(name in value)) wrong.push(`${at}.${name} is missing`)
    for (const [name, member] of Object.entries(value)) {
      const known = schema.properties?.[name]
      if (known !== undefined) wrong.push(...schemaProblems(known, member, `${at}.${name}`))
      else if (schema.additionalProperties === false) wrong.push(`${at}.${name} is not documented`)
      else if (typeof schema.additionalProperties === "object")
        wrong.push(...schemaProblems(schema.additionalProperties, member, `${at}.${name}`))
    }
  }
  return wrong
}

/** Every operation of the document. */
export const operations: ReadonlyArray<{
  readonly method: string
  readonly path: string
  readonly operation: Json
}> = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
  Object.entries<Json>(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation }))
)

/** `/v1/sources/upload` before `/v1/sources/{id}`. */
const matchers = operations
  .toSorted((one, other) => one.path.split("{").length - other.path.split("{").length)
  .map(({ method, operation, path }) => ({
    method,
    operation,
    pattern: new RegExp(`^${path.replace(/\{[^}]+\}/g, "[^/]+")}/*$`)
  }))

const operationOf = (method: string, pathname: string) =>
  matchers.find((one) => one.method === method && one.pattern.test(pathname))?.operation

/** The problems of an answer; empty for a path that is not documented. */
export const conformanceProblems = (
  method: string,
  url: string,
  answer: { readonly status: number; readonly headers: Headers; readonly json: Json }
): ReadonlyArray<string> => {
  const operation = operationOf(method, new URL(url, "http://localhost").pathname)
  if (operation === undefined) return []
  const response = operation.responses[answer.status]
  if (response === undefined) return [`${method} ${url} answered the undocumented status ${answer.status}`]
  const [type = ""] = (answer.headers.get("content-type") ?? "").split(";")
  // An answer that is documented without a body has none.
  if (response.content === undefined && answer.status === 204 && type === "") return []
  const media = response.content?.[type]
  if (media === undefined)
    return [`${method} ${url} answered ${answer.status} with the undocumented type ${type}`]
  if (type !== "application/json") return []
  return schemaProblems(media.schema, answer.json).map((each) => `${method} ${url} ${answer.status}: ${each}`)
}
