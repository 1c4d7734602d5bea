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

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** The only headers of the caller that are sent to another origin. Any other may be a credential. */
const harmless: ReadonlySet<string> = new Set(["accept", "accept-language", "user-agent"])

const keep = (headers: Hop["headers"], wanted: (name: string) => boolean) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => wanted(name)))

/**
 * The same origin, or the same host moved from port 80 to TLS, because that server has received the request already.
 */
const isSameParty = (from: URL, to: URL): boolean =>
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
  redirects.has(status) && location !== undefined

/** Servers send paths as UTF-8, which the client decodes as Latin-1. */
const decoded = (location: string): string => {
  const bytes = Buffer.from(location, "latin1")
  return isUtf8(bytes) ? bytes.toString("utf8") : location
}

/** The request that follows a redirect to `location`. */
export const next = (hop: Hop, status: number, location: string): Effect.Effect<Hop, OutboundHttpError> =>
  Effect.gen(function* () {
    const url = yield* parseUrl(decoded(location), hop.url)
    const bodiless = becomesGet(status, hop.method)
    const body = bodiless ? null : hop.body
    const sameParty = isSameParty(hop.url, url)
    if (body !== null && !sameParty)
      return yield* new OutboundHttpError({
        reason: "Refused",
        message: `Refused to follow the redirect from ${hop.url.origin}: it would hand the request's body to ${url.origin}. Use the new address.`
      })
    const visible = sameParty ? hop.headers : keep(hop.headers, (name) => harmless.has(name))
    return {
      url,
      method: bodiless ? "GET" : hop.method,
      headers: bodiless ? keep(visible, (name) => !name.startsWith("content-")) : visible,
      body
    }
  })
