/**
 * Parameters of MCP tools that protocol version 2026-07-28 repeats in headers, as `x-mcp-header` in their schemas says.
 */
import { isObject, isList } from "../../domain/JsonValue.ts"
import type { JsonObject, JsonValue } from "../../domain/Text.ts"

const annotation = "x-mcp-header"
/** Keywords whose values are not schemas. */
const valueKeywords: ReadonlySet<string> = new Set(["default", "examples", "enum", "const"])
const allowedTypes: ReadonlySet<JsonValue | undefined> = new Set(["integer", "string", "boolean"])

interface HeaderParameter {
  readonly header: string
  /** Names of members, from the arguments inwards. */
  readonly path: ReadonlyArray<string>
}

/** Calls `visit` for each annotation; `path` is null where annotations are not allowed. */
const visitAnnotations = (
  schema: JsonValue,
  path: ReadonlyArray<string> | null,
  visit: (schema: JsonObject, path: ReadonlyArray<string> | null) => void
): void => {
  if (typeof schema !== "object" || schema === null) return
  if (isList(schema)) {
    for (const member of schema) visitAnnotations(member, null, visit)
    return
  }
  if (Object.hasOwn(schema, annotation)) visit(schema, path)
  for (const [keyword, inner] of Object.entries(schema)) {
    if (valueKeywords.has(keyword)) continue
    if (keyword === "properties" && isObject(inner)) {
      for (const [name, member] of Object.entries(inner))
        visitAnnotations(member, path && [...path, name], visit)
    } else visitAnnotations(inner, null, visit)
  }
}

/** Null for an unusable tool: an annotation is malformed, duplicate, or at a place without a single value. */
const parametersOf = (inputSchema: JsonObject): ReadonlyArray<HeaderParameter> | null => {
  const all: Array<HeaderParameter> = []
  const usedNames = new Set<string>()
  let isValid = true
  visitAnnotations(inputSchema, [], (schema, path) => {
    const name = schema[annotation]
    const fits = typeof name === "string" && /^[!#$%&'*+.^_`|~\w-]{1,200}$/.test(name)
    if (!fits || path === null || path.length === 0 || !allowedTypes.has(schema["type"])) isValid = false
    else if (usedNames.has(name.toLowerCase())) isValid = false
    else {
      usedNames.add(name.toLowerCase())
      all.push({ header: `mcp-param-${name.toLowerCase()}`, path })
    }
  })
  return isValid ? all : null
}

export const hasValidAnnotations = ({ inputSchema }: { readonly inputSchema: JsonObject }): boolean =>
  parametersOf(inputSchema) !== null

/** Encodes a header value. Text that is not plain ASCII, or looks encoded, becomes base64. */
export const encodeHeaderValue = (text: string): string =>
  /^(?:[!-~](?:[\t -~]*[!-~])?)?$/.test(text) && !/^=\?base64\?.*\?=$/.test(text)
    ? text
    : `=?base64?${Buffer.from(text).toString("base64")}?=`

const valueAt = (input: JsonObject, path: ReadonlyArray<string>): JsonValue | undefined =>
  path.reduce<JsonValue | undefined>(
    (value, name) => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined),
    input
  )

/** The headers of a call with `input`. */
export const headersFor = (inputSchema: JsonObject, input: JsonObject): Readonly<Record<string, string>> =>
  Object.fromEntries(
    (parametersOf(inputSchema) ?? []).flatMap(({ header, path }) => {
      const value = valueAt(input, path)
      return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
        ? [[header, encodeHeaderValue(String(value))] as const]
        : []
    })
  )
