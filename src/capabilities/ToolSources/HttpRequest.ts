/**
 * Builds the request of an HTTP tool from the tool's own parts, the model's arguments and the values of `toolContext`.
 */
import * as Either from "effect/Either"
import { isList } from "../../domain/JsonValue.ts"
import { type HttpTarget, placeholdersOf } from "../../domain/agents/Tool.ts"
import { type ToolFailure, toolFailure } from "../../domain/agents/ToolFailure.ts"
import { segmentsOf, toText } from "../../domain/Json.ts"
import type { JsonObject, JsonValue } from "../../domain/Text.ts"
import type { BoundValue } from "../ToolSources.ts"

/** The object with `value` at the pointer. Values on the path that are not objects are replaced. */
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

/**
 * Sets query parameters of `url`, replacing those of the same name. All at once, because one by one would take
 * quadratic time.
 */
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

/** Values are encoded, so only dots could leave the path that the tool's owner wrote. */
const leavesPath = (url: string): boolean => {
  const [path = ""] = url.split(/[?]/)
  return path.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))
}

/** Bindings take precedence over the tool's own values, and those over the model's arguments. */
export const requestOf = (
  target: HttpTarget,
  input: JsonObject,
  bound: ReadonlyArray<BoundValue>
): Either.Either<ToolRequest, ToolFailure> => {
  const at = (place: string) =>
    bound.flatMap(({ to, value }) => (to.startsWith(place) ? [[to.slice(place.length), value] as const] : []))
  const inPath = new Set(placeholdersOf(target.url))
  const values: JsonObject = { ...input, ...Object.fromEntries(at("path:")) }
  const absent = [...inPath].find((name) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    return value === undefined || value === null || value === ""
  })
  if (absent !== undefined) return Either.left(toolFailure("INVALID_ARGUMENTS", `/${absent} is missing`))
  const filled = target.url.replaceAll(/\{([A-Za-z_][\w-]*)\}/g, (_, name: string) =>
    encodeURIComponent(toText(values[name] ?? "").toWellFormed())
  )
  if (leavesPath(filled))
    return Either.left(toolFailure("INVALID_ARGUMENTS", "no part of the path may be dots"))
  const given = Object.entries(input).filter(([name]) => !inPath.has(name))
  const bodiless = target.method === "GET" || target.method === "DELETE"
  const url = new URL(filled)
  const query = [...(bodiless ? given : []), ...Object.entries(target.query), ...at("query:")]
  putQuery(url, new Map(query.flatMap(([name, value]) => (value === null ? [] : [[name, toText(value)]]))))
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
  Object.fromEntries(bound.map(([name, value]) => [name.toLowerCase(), toText(value)]))

/** A binding replaces the tool's own header of the same name, regardless of case. */
const lowered = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
