/**
 * Builds the request of an HTTP tool from the tool's own parts, the model's arguments and the values of `toolContext`.
 */
import * as Either from "effect/Either"
import { isList } from "../../domain/JsonValue.ts"
import * as LongIntegers from "../../domain/agents/LongIntegers.ts"
import { type HttpTarget, placeholdersOf } from "../../domain/agents/Tool.ts"
import { type ToolFailure, toolFailure } from "../../domain/agents/ToolFailure.ts"
import { segmentsOf, toText } from "../../domain/Json.ts"
import type { JsonObject, JsonValue } from "../../domain/Text.ts"
import type { BoundValue } from "../ToolSources.ts"

/** The object with `value` at the pointer. Values on the path that are not objects are replaced. */
const setAt = (
  object: JsonObject,
  [name = "", ...rest]: ReadonlyArray<string>,
  value: JsonValue
): JsonObject => {
  if (rest.length === 0) return { ...object, [name]: value }
  const inner = Object.hasOwn(object, name) ? object[name] : undefined
  const innerObject = typeof inner === "object" && inner !== null && !isList(inner) ? inner : {}
  return { ...object, [name]: setAt(innerObject, rest, value) }
}

/**
 * Sets query parameters of `url`, replacing those of the same name. All at once, because one by one would take
 * quadratic time.
 */
const setQuery = (url: URL, values: ReadonlyMap<string, string>): void => {
  if (values.size === 0) return
  const remaining = new Map<string, string>(values)
  const entries: Array<[string, string]> = []
  for (const [name, value] of url.searchParams) {
    const given = remaining.get(name)
    if (given !== undefined) entries.push([name, given])
    else if (!values.has(name)) entries.push([name, value])
    remaining.delete(name)
  }
  url.search = new URLSearchParams([...entries, ...remaining]).toString()
}

export interface ToolRequest {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** Values are encoded, so only dots could leave the path that the tool's owner wrote. */
const hasDotSegment = (url: string): boolean => {
  const [path = ""] = url.split(/[?]/)
  return path.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))
}

/**
 * `input` fits `parameters`. Bindings take precedence over the tool's own values, such as the query of its address, and
 * those over the model's arguments.
 */
export const requestOf = (
  target: HttpTarget,
  parameters: JsonObject,
  input: JsonObject,
  bound: ReadonlyArray<BoundValue>
): Either.Either<ToolRequest, ToolFailure> => {
  const boundValues = (place: string) =>
    bound.flatMap(({ to, value }) => (to.startsWith(place) ? [[to.slice(place.length), value] as const] : []))
  const pathNames = new Set(placeholdersOf(target.url))
  const values: JsonObject = { ...input, ...Object.fromEntries(boundValues("path:")) }
  const missing = [...pathNames].find((name) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    return value === undefined || value === null || value === ""
  })
  if (missing !== undefined) return Either.left(toolFailure("INVALID_ARGUMENTS", `/${missing} is missing`))
  const filled = target.url.replaceAll(/\{([A-Za-z_][\w-]*)\}/g, (_, name: string) =>
    encodeURIComponent(toText(values[name] ?? "").toWellFormed())
  )
  if (hasDotSegment(filled))
    return Either.left(toolFailure("INVALID_ARGUMENTS", "no part of the path may be dots"))
  const besidePath = (values: JsonObject) => Object.entries(values).filter(([name]) => !pathNames.has(name))
  const hasNoBody = target.method === "GET" || target.method === "DELETE"
  const url = new URL(filled)
  const query = [
    ...(hasNoBody ? besidePath(input).filter(([name]) => !url.searchParams.has(name)) : []),
    ...Object.entries(target.query),
    ...boundValues("query:")
  ]
  setQuery(url, new Map(query.flatMap(([name, value]) => (value === null ? [] : [[name, toText(value)]]))))
  const headers = { ...lowerCaseNames(target.headers), ...headersOf(boundValues("header:")) }
  if (hasNoBody) return Either.right({ url: url.href, method: target.method, headers })
  const body = boundValues("body:").reduce<JsonObject>(
    (object, [pointer, value]) => setAt(object, segmentsOf(pointer), value),
    { ...Object.fromEntries(besidePath(LongIntegers.withMarks(parameters, input))), ...target.body }
  )
  return Either.right({
    url: url.href,
    method: target.method,
    headers: { "content-type": "application/json", ...headers },
    body: LongIntegers.writeMarked(body)
  })
}

const headersOf = (bound: ReadonlyArray<readonly [string, JsonValue]>): Record<string, string> =>
  Object.fromEntries(bound.map(([name, value]) => [name.toLowerCase(), toText(value)]))

/** A binding replaces the tool's own header of the same name, regardless of case. */
const lowerCaseNames = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
