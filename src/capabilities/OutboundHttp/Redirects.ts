/**
 * The request after a redirect, without headers that must not reach another origin (Fetch standard, HTTP-redirect
 * fetch).
 */
import * as Effect from "effect/Effect"
import { isUtf8 } from "node:buffer"
import { OutboundHttpError } from "../OutboundHttp.ts"
import { parseUrl } from "./Destination.ts"

/** One request of an exchange. Header names are lower-case. */
export interface Hop {
  readonly url: URL
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | string | null
}

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** The only headers of the caller that are sent to another origin. Any other may be a credential. */
const safeHeaders: ReadonlySet<string> = new Set(["accept", "accept-language", "user-agent"])

const filterHeaders = (headers: Hop["headers"], isKept: (name: string) => boolean) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => isKept(name)))

/**
 * The same origin, or the same host moved from port 80 to TLS, because that server has received the request already.
 */
const isSameServer = (from: URL, to: URL): boolean =>
  from.origin === to.origin ||
  (from.hostname === to.hostname &&
    from.protocol === "http:" &&
    from.port === "" &&
    to.protocol === "https:" &&
    to.port === "")

const becomesGet = (status: number, method: string): boolean =>
  status === 303 ? method !== "GET" && method !== "HEAD" : status < 303 && method === "POST"

/** True when the response is a redirect. */
export const isRedirect = (status: number, location: string | undefined): location is string =>
  redirectStatuses.has(status) && location !== undefined

/** Servers send paths as UTF-8, which the client decodes as Latin-1. */
const decodeLocation = (location: string): string => {
  const bytes = Buffer.from(location, "latin1")
  return isUtf8(bytes) ? bytes.toString("utf8") : location
}

/** The request that follows a redirect to `location`. */
export const followingHop = (
  hop: Hop,
  status: number,
  location: string
): Effect.Effect<Hop, OutboundHttpError> =>
  Effect.gen(function* () {
    const url = yield* parseUrl(decodeLocation(location), hop.url)
    const dropsBody = becomesGet(status, hop.method)
    const body = dropsBody ? null : hop.body
    const toSameServer = isSameServer(hop.url, url)
    if (body !== null && !toSameServer)
      return yield* new OutboundHttpError({
        reason: "Refused",
        message: `Refused to follow the redirect from ${hop.url.origin}: it would hand the request's body to ${url.origin}. Use the new address.`
      })
    const sentHeaders = toSameServer
      ? hop.headers
      : filterHeaders(hop.headers, (name) => safeHeaders.has(name))
    return {
      url,
      method: dropsBody ? "GET" : hop.method,
      headers: dropsBody ? filterHeaders(sentHeaders, (name) => !name.startsWith("content-")) : sentHeaders,
      body
    }
  })
