/**
 * Parameters of MCP tools that protocol version 2026-07-28 repeats in headers, as `x-mcp-header` in their schemas says.
 */
import { isObject, isList } from "../../domain/JsonValue.ts"
import type { JsonObject, JsonValue } from "../../domain/Text.ts"

const annotation = "x-mcp-header"
/** Keywords whose values are not schemas. */
const values: ReadonlySet<string> = new Set(["default", "examples", "enum", "const"])
const types: ReadonlySet<JsonValue | undefined> = new Set(["integer", "string", "boolean"])

interface Mirrored {
  readonly header: string
  /** Names of members, from the arguments inwards. */
  readonly path: ReadonlyArray<string>
}

/** Calls `found` for each annotation; `path` is null where annotations are not allowed. */
const walk = (
  schema: JsonValue,
  path: ReadonlyArray<string> | null,
  found: (schema: JsonObject, path: ReadonlyArray<string> | null) => void
): void => {
  if (typeof schema !== "object" || schema === null) return
  if (isList(schema)) {
    for (const member of schema) walk(member, null, found)
    return
  }
  if (Object.hasOwn(schema, annotation)) found(schema, path)
  for (const [keyword, inner] of Object.entries(schema)) {
    if (values.has(keyword)) continue
    if (keyword === "properties" && isObject(inner)) {
      for (const [name, member] of Object.entries(inner)) walk(member, path && [...path, name], found)
    } else walk(inner, null, found)
  }
}

/** Null for an unusable tool: an annotation is malformed, duplicate, or at a place without a single value. */
const parametersOf = (inputSchema: JsonObject): ReadonlyArray<Mirrored> | null => {
  const all: Array<Mirrored> = []
  const usedNames = new Set<string>()
  let isValid = true
  walk(inputSchema, [], (schema, path) => {
    const name = schema[annotation]
    const fits = typeof name === "string" && /^[!#$%&'*+.^_`|~\w-]{1,200}$/.test(name)
    if (!fits || path === null || path.length === 0 || !types.has(schema["type"])) isValid = false
    else if (usedNames.has(name.toLowerCase())) isValid = false
    else {
      usedNames.add(name.toLowerCase())
      all.push({ header: `mcp-param-${name.toLowerCase()}`, path })
    }
  })
  return isValid ? all : null
}

export const isValid = ({ inputSchema }: { readonly inputSchema: JsonObject }): boolean =>
  parametersOf(inputSchema) !== null

/** Encodes a header value. Text that is not plain ASCII, or looks encoded, becomes base64. */
export const encoded = (text: string): string =>
  /^(?:[!-~](?:[\t -~]*[!-~])?)?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)
    ? text
    : `=?base64?${Buffer.from(text).toString("base64")}?=`

const at = (input: JsonObject, path: ReadonlyArray<string>): JsonValue | undefined =>
  path.reduce<JsonValue | undefined>(
    (value, name) => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined),
    input
  )

/** The headers of a call with `input`. */
export const mirrored = (inputSchema: JsonObject, input: JsonObject): Readonly<Record<string, string>> =>
  Object.fromEntries(
    (parametersOf(inputSchema) ?? []).flatMap(({ header, path }) => {
      const value = at(input, path)
      return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
        ? [[header, encoded(String(value))] as const]
        : []
    })
  )
