/** The request of an HTTP tool: the tool's own parts, the model's arguments, then the values of `toolContext`. */
import * as Either from "effect/Either"
import type { JsonObject, JsonValue } from "../../../domain/Text.ts"
import { type Binding, type HttpTarget, placeholdersOf } from "../../../domain/agents/Tool.ts"

export interface Bound {
  readonly to: Binding["to"]
  readonly value: JsonValue
}

/** A tool's failure as the model is told of it; `code` is documented. */
export interface ToolFailure {
  readonly code:
    | "SESSION_CREDENTIAL_REQUIRED"
    | "BINDING_REQUIRED"
    | "INVALID_ARGUMENTS"
    | "UNKNOWN_TOOL"
    | "TOOL_FAILED"
    | "TOOL_TIMEOUT"
  readonly message: string
}

export const toolFailure = (code: ToolFailure["code"], message: string): ToolFailure => ({ code, message })

const isList = (value: JsonValue): value is ReadonlyArray<JsonValue> => Array.isArray(value)

const segmentsOf = (pointer: string): ReadonlyArray<string> =>
  pointer
    .slice(1)
    .split("/")
    .map((segment) => segment.replaceAll("~1", "/").replaceAll("~0", "~"))

const member = (value: JsonValue | undefined, name: string): JsonValue | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  if (isList(value)) return /^\d{1,6}$/.test(name) ? value[Number(name)] : undefined
  return Object.hasOwn(value, name) ? value[name] : undefined
}

/** The values that the bindings ask for; what is absent or null is missing. */
export const resolve = (
  bindings: ReadonlyArray<Binding>,
  context: JsonObject | undefined
): Either.Either<ReadonlyArray<Bound>, ToolFailure> =>
  Either.all(
    bindings.map(({ from, to }) => {
      const value = segmentsOf(from).reduce<JsonValue | undefined>(member, context)
      return value === undefined || value === null
        ? Either.left(toolFailure("BINDING_REQUIRED", `BINDING_REQUIRED: ${from}`))
        : Either.right({ to, value })
    })
  )

/** A value as text: what is no text is written as JSON. */
export const written = (value: JsonValue): string =>
  typeof value === "string" ? value : JSON.stringify(value)

/** Every text and number that stands in `value`. */
export const leaves = (value: JsonValue): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (typeof value === "number") return [String(value)]
  if (typeof value !== "object" || value === null) return []
  return Object.values(value).flatMap(leaves)
}

/** The object with `value` at the pointer; what is in the way and no object is replaced. */
const put = (
  object: JsonObject,
  [name = "", ...rest]: ReadonlyArray<string>,
  value: JsonValue
): JsonObject => {
  if (rest.length === 0) return { ...object, [name]: value }
  const inner = Object.hasOwn(object, name) ? object[name] : undefined
  const within = typeof inner === "object" && inner !== null && !isList(inner) ? inner : {}
  return { ...object, [name]: put(within, rest, value) }
}

/** Puts values into the query of `url`, once each and in the place of what has their name; one by one would take its square. */
const putQuery = (url: URL, values: ReadonlyMap<string, string>): void => {
  if (values.size === 0) return
  const left = new Map<string, string>(values)
  const entries: Array<[string, string]> = []
  for (const [name, value] of url.searchParams) {
    const given = left.get(name)
    if (given !== undefined) entries.push([name, given])
    else if (!values.has(name)) entries.push([name, value])
    left.delete(name)
  }
  url.search = new URLSearchParams([...entries, ...left]).toString()
}

export interface ToolRequest {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** Values come encoded, so that only dots could still climb out of the path that the tool's owner wrote. */
const climbs = (url: string): boolean => {
  const [path = ""] = url.split(/[?]/)
  return path.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))
}

/** The last word is the binding's, the one before it the tool's own, and the model has the rest. */
export const requestOf = (
  target: HttpTarget,
  input: JsonObject,
  bound: ReadonlyArray<Bound>
): Either.Either<ToolRequest, ToolFailure> => {
  const at = (place: string) =>
    bound.flatMap(({ to, value }) => (to.startsWith(place) ? [[to.slice(place.length), value] as const] : []))
  const inPath = new Set(placeholdersOf(target.url))
  const values: JsonObject = { ...input, ...Object.fromEntries(at("path:")) }
  const absent = [...inPath].find((name) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    return value === undefined || value === null || value === ""
  })
  if (absent !== undefined)
    return Either.left(toolFailure("INVALID_ARGUMENTS", `INVALID_ARGUMENTS: /${absent} is missing`))
  const filled = target.url.replaceAll(/\{([A-Za-z_][\w-]*)\}/g, (_, name: string) =>
    encodeURIComponent(written(values[name] ?? "").toWellFormed())
  )
  if (climbs(filled))
    return Either.left(toolFailure("INVALID_ARGUMENTS", "INVALID_ARGUMENTS: no part of the path may be dots"))
  const given = Object.entries(input).filter(([name]) => !inPath.has(name))
  const bodiless = target.method === "GET" || target.method === "DELETE"
  const url = new URL(filled)
  const query = [...(bodiless ? given : []), ...Object.entries(target.query), ...at("query:")]
  putQuery(url, new Map(query.flatMap(([name, value]) => (value === null ? [] : [[name, written(value)]]))))
  const headers = { ...lowered(target.headers), ...headersOf(at("header:")) }
  if (bodiless) return Either.right({ url: url.href, method: target.method, headers })
  const body = at("body:").reduce<JsonObject>(
    (object, [pointer, value]) => put(object, segmentsOf(pointer), value),
    { ...Object.fromEntries(given), ...target.body }
  )
  return Either.right({
    url: url.href,
    method: target.method,
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body)
  })
}

const headersOf = (bound: ReadonlyArray<readonly [string, JsonValue]>): Record<string, string> =>
  Object.fromEntries(bound.map(([name, value]) => [name.toLowerCase(), written(value)]))

/** A binding must not stand beside the tool's own header of the same name. */
const lowered = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
