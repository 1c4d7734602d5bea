/** {@link OutboundHttp} on Node with undici's connection pools, without proxies and cookies. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type { Dispatcher, Pool } from "undici"
import { codeOf } from "../../domain/ThrownErrors.ts"
import {
  OutboundHttp,
  OutboundHttpError,
  type OutboundRequest,
  type OutboundResponse
} from "../OutboundHttp.ts"
import { withSharedPermit } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import type { AllowList } from "./AddressRules.ts"
import { acceptEncoding, BodyTooLarge, BodyUnreadable, collect, decode } from "./Body.ts"
import { makeConnections } from "./Connections.ts"
import { makeSystemResolver, parseUrl, resolve, type Resolver } from "./Destination.ts"
import { type Hop, isRedirect, followingHop } from "./Redirects.ts"

export interface UndiciOptions {
  /** Allowed addresses that are not routed globally. */
  readonly allow: AllowList
  /** Default: the operating system's resolver. */
  readonly resolver?: Resolver
}

const defaults = { maxBytes: 50 * 1_024 * 1_024, timeout: "30 seconds", maxRedirects: 5 } as const

/**
 * Maximum number of concurrent exchanges of this process. Further ones wait within their own time-out. An owner may use
 * a quarter.
 */
const exchangeLimits = { permits: 256, maxPermitsPerOwner: 64, maxWaiting: 4_096 } as const
const redirectBodyBytes = 16 * 1_024

/** Methods that can be repeated without an effect. */
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])
const methods: ReadonlySet<string> = new Set([...safeMethods, "POST", "PUT", "PATCH", "DELETE"])

/** Headers that the connection sets itself. A caller's value could be used for request smuggling. */
const connectionHeaders: ReadonlySet<string> = new Set([
  "accept-encoding",
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])
const isConnectionHeader = (name: string) => connectionHeaders.has(name) || name.startsWith("proxy-")

const headersOf = ({ headers = {} }: OutboundRequest): Record<string, string> => ({
  accept: "*/*",
  "user-agent": "Spoke",
  ...Object.fromEntries(
    Object.entries(headers)
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => !isConnectionHeader(name))
  )
})

const isHeaderValue = (text: string): boolean => /^[\t\x20-\x7e\x80-\xff]*$/.test(text)
const isHeaderName = (text: string): boolean => /^[!#$%&'*+.^_`|~\w-]+$/.test(text)

const firstHop = (request: OutboundRequest) =>
  Effect.gen(function* () {
    const url = yield* parseUrl(request.url)
    const method = (request.method ?? "GET").toUpperCase()
    const headers = headersOf(request)
    const refused = (why: string) =>
      new OutboundHttpError({ reason: "Refused", message: `Refused to call ${url.origin}: ${why}` })
    if (!methods.has(method)) return yield* refused("use GET, HEAD, OPTIONS, POST, PUT, PATCH or DELETE.")
    if (!Object.entries(headers).every(([name, value]) => isHeaderName(name) && isHeaderValue(value)))
      return yield* refused("a header has a character that HTTP does not allow.")
    return { url, method, headers, body: request.body ?? null } satisfies Hop
  })

const reasons: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "does not accept connections"],
  ["ECONNRESET", "closed the connection before its answer was complete"],
  ["UND_ERR_SOCKET", "closed the connection before its answer was complete"],
  ["EPIPE", "closed the connection before its answer was complete"],
  ["UND_ERR_CONNECT_TIMEOUT", "does not answer"],
  ["ETIMEDOUT", "does not answer"],
  ["EHOSTUNREACH", "cannot be reached from here"],
  ["ENETUNREACH", "cannot be reached from here"],
  ["UND_ERR_HEADERS_OVERFLOW", "sends too many headers"],
  ["CERT_HAS_EXPIRED", "has a TLS certificate that has expired"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "has a TLS certificate for another name"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "has a TLS certificate that nobody vouches for"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "has a TLS certificate that nobody vouches for"],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "has a TLS certificate that nobody vouches for"],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "has a TLS certificate that nobody vouches for"]
])

const tooManyRequests = ({ origin }: URL) =>
  new OutboundHttpError({ reason: "TimedOut", message: `${origin} was not called: too many requests wait.` })

const requestFailure = ({ origin }: URL, cause: unknown, maxBytes: number): OutboundHttpError => {
  if (cause instanceof BodyTooLarge)
    return new OutboundHttpError({
      reason: "TooLarge",
      message: `${origin} answers with more than ${maxBytes.toLocaleString("en")} bytes.`
    })
  const code = codeOf(cause)
  const known =
    reasons.get(code) ?? (code === "" ? "does not speak proper HTTP" : `cannot be read from (${code})`)
  return new OutboundHttpError({
    reason: "Unreachable",
    message: `${origin} ${cause instanceof BodyUnreadable ? "sends a body that cannot be decompressed" : known}.`
  })
}

const joinHeaders = (headers: Dispatcher.ResponseData["headers"]): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name.toLowerCase(), typeof value === "string" ? value : value.join(", ")]]
    )
  )

/** How much of a body is read. */
interface BodyLimits {
  readonly maxBytes: number
  readonly isLast: OutboundRequest["isLast"]
}

/** Returns when the headers have arrived. The body must be read before `signal` is aborted. */
const send = (pool: Pool, hop: Hop, { isLast }: BodyLimits, signal: AbortSignal) =>
  Effect.tryPromise({
    try: () =>
      pool.request({
        path: `${hop.url.pathname}${hop.url.search}`,
        method: hop.method,
        headers: { ...hop.headers, "accept-encoding": isLast === undefined ? acceptEncoding : "identity" },
        body: hop.body,
        signal
      }),
    catch: (cause) => cause
  })

const staleCodes: ReadonlySet<string> = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"])
/** A kept-alive connection may be closed while the request is sent. Nothing of an answer has arrived then. */
const isStale = (cause: unknown) => staleCodes.has(codeOf(cause))

/** The whole response. Headers that describe compressed bytes are removed after decompression. */
const read = async (
  { method, url }: Hop,
  response: Dispatcher.ResponseData,
  { isLast, maxBytes }: BodyLimits
): Promise<OutboundResponse> => {
  const headers = joinHeaders(response.headers)
  const { statusCode: status } = response
  // A 304 may have the length of the unchanged body. undici reports that as an error.
  if (status === 304) {
    await response.body.dump().catch(() => {})
    return { url: url.href, status, headers, body: new Uint8Array() }
  }
  const { "content-encoding": encoding = "", "content-length": length = "", ...others } = headers
  if (method !== "HEAD" && Number(length) > maxBytes) throw new BodyTooLarge()
  const raw = await collect(response.body, maxBytes, encoding === "" ? isLast : undefined)
  const body = await decode(raw, encoding, maxBytes)
  return {
    url: url.href,
    status,
    headers: body === raw ? headers : others,
    body
  }
}

/** An unfinished exchange is aborted when the scope closes. */
const abortSignal = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => new AbortController()),
    (controller, exit) => (Exit.isSuccess(exit) ? Effect.void : Effect.sync(() => controller.abort()))
  ),
  ({ signal }) => signal
)

type Answer =
  | { readonly _tag: "Response"; readonly response: OutboundResponse }
  | { readonly _tag: "Redirect"; readonly hop: Hop }

const make = ({ allow, resolver: configuredResolver }: UndiciOptions) =>
  Effect.gen(function* () {
    const connections = yield* makeConnections
    const resolver = configuredResolver ?? (yield* makeSystemResolver)
    const limiter = new FairLimiter({ name: "outbound-requests", ...exchangeLimits })

    const exchange = (hop: Hop, limits: BodyLimits) =>
      Effect.gen(function* () {
        const destination = yield* resolve(resolver, allow, hop.url)
        const signal = yield* abortSignal
        const failed = (cause: unknown) => requestFailure(hop.url, cause, limits.maxBytes)
        const onNewConnection = Effect.flatMap(connections.fresh(destination), (pool) =>
          send(pool, hop, limits, signal)
        )
        const onSharedConnection = Effect.flatMap(connections.shared(destination), (pool) =>
          send(pool, hop, limits, signal)
        )
        const response = yield* (
          safeMethods.has(hop.method)
            ? Effect.catchIf(onSharedConnection, isStale, () => onNewConnection)
            : onNewConnection
        ).pipe(Effect.mapError(failed))
        const { location } = joinHeaders(response.headers)
        if (isRedirect(response.statusCode, location)) {
          yield* Effect.ignore(
            Effect.tryPromise(() => response.body.dump({ limit: redirectBodyBytes, signal }))
          )
          return {
            _tag: "Redirect",
            hop: yield* followingHop(hop, response.statusCode, location)
          } satisfies Answer
        }
        return {
          _tag: "Response",
          response: yield* Effect.tryPromise({
            try: () => read(hop, response, limits),
            catch: failed
          })
        } satisfies Answer
      }).pipe(Effect.scoped)

    const follow = (
      hop: Hop,
      limits: BodyLimits,
      redirectsLeft: number
    ): Effect.Effect<OutboundResponse, OutboundHttpError> =>
      Effect.flatMap(exchange(hop, limits), (answer) => {
        if (answer._tag === "Response") return Effect.succeed(answer.response)
        if (redirectsLeft > 0) return follow(answer.hop, limits, redirectsLeft - 1)
        return new OutboundHttpError({
          reason: "TooManyRedirects",
          message: `${hop.url.origin} redirects once too often.`
        })
      })

    const fetch = Effect.fn("OutboundHttp.fetch")(function* (request: OutboundRequest) {
      const hop = yield* firstHop(request)
      yield* Effect.annotateCurrentSpan({ "http.request.method": hop.method, "server.address": hop.url.host })
      const timeout = Duration.decode(request.timeout ?? defaults.timeout)
      return yield* follow(
        hop,
        { maxBytes: request.maxBytes ?? defaults.maxBytes, isLast: request.isLast },
        request.maxRedirects ?? defaults.maxRedirects
      ).pipe(
        withSharedPermit(limiter, () => tooManyRequests(hop.url)),
        Effect.timeoutFail({
          duration: timeout,
          onTimeout: () =>
            new OutboundHttpError({
              reason: "TimedOut",
              message: `${hop.url.origin} did not answer in full within ${Duration.format(timeout)}.`
            })
        })
      )
    })

    return { fetch }
  })

/** Sends requests to globally routed and allowed addresses. Connections close with the layer's scope. */
export const layerUndici = (options: UndiciOptions) => Layer.scoped(OutboundHttp, make(options))
