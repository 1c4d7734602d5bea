/** The headers that every response carries, and the answer to a CORS preflight. */
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Context from "effect/Context"
import * as FiberRef from "effect/FiberRef"
import { globalValue } from "effect/GlobalValue"
import * as RequestId from "./RequestId.ts"

/** Headers in the form of Node and of the platform: by lower-case name. */
export type HeaderValues = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** The header with that name. Repeated headers are joined. */
export const get = (headers: HeaderValues, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === "string" ? value : value?.join(", ")
}

/** Additional headers of the response to the current request, also for errors. Each request has its own fiber. */
export const extra: FiberRef.FiberRef<Readonly<Record<string, string>>> = globalValue(
  "spoke/http/Headers/extra",
  () => FiberRef.unsafeMake({})
)

/** Headers that pages of other origins may read. */
const exposed = [
  RequestId.header,
  "x-end-user-id",
  "x-run-id",
  "retry-after",
  "www-authenticate",
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
  "ratelimit-policy",
  "x-spoke-warning"
].join(", ")

/** True when `{app_url}` is https. Browsers are then told to use https only, for two years. */
export class OverHttps extends Context.Reference<OverHttps>()("http/OverHttps", {
  defaultValue: (): boolean => false
}) {}

const strictTransport = { "strict-transport-security": "max-age=63072000" } as const

/** Defaults of every response: it is private to its caller and is not a page. */
const defaults = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer"
} as const

/**
 * Any origin may call without credentials: keys are sent in a header, and the dashboard is same-origin. A key's own
 * list of origins is checked at authentication.
 */
export const complete = (
  response: HttpServerResponse.HttpServerResponse,
  requestId: string,
  overHttps: boolean,
  others: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.setHeaders(response, {
    ...defaults,
    ...response.headers,
    ...others,
    ...(overHttps ? strictTransport : {}),
    "access-control-allow-origin": "*",
    "access-control-expose-headers": exposed,
    "x-content-type-options": "nosniff",
    [RequestId.header]: requestId
  })

/** The header that proves a dashboard request is same-origin must never be granted to another origin. */
const sameOriginOnly = "x-spoke-csrf"

const grantableHeaders = (requested: string | undefined) =>
  (requested ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => /^[a-z0-9-]{1,64}$/.test(name) && name !== sameOriginOnly)
    .slice(0, 50)
    .join(", ")

export const isPreflight = (request: HttpServerRequest.HttpServerRequest): boolean =>
  request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined

export const preflight = (request: HttpServerRequest.HttpServerRequest) =>
  HttpServerResponse.empty({
    status: 204,
    headers: {
      "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
      "access-control-allow-headers": grantableHeaders(request.headers["access-control-request-headers"]),
      "access-control-max-age": "86400",
      vary: "access-control-request-headers"
    }
  })
