/** Requests a page or a file of a source, and converts failures to readable errors. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { OutboundHttp, type OutboundHttpError, type OutboundResponse } from "../capabilities/OutboundHttp.ts"
import { retryAfter } from "../domain/RetryAfter.ts"
import { HostLimiter } from "./HostLimiter.ts"
import type { JournalEntry } from "./Journal.ts"
import { ReaderError } from "../capabilities/SourceReaders.ts"

/** Our product token in robots.txt. */
export const agent = "SpokeBot"

const headers = {
  "user-agent": `Mozilla/5.0 (compatible; ${agent}/1.0)`,
  accept:
    "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.9,application/pdf;q=0.9,application/xml;q=0.8,*/*;q=0.5",
  "accept-language": "en;q=0.8,*;q=0.5"
} as const

const transient: ReadonlySet<OutboundHttpError["reason"]> = new Set(["Unresolved", "Unreachable", "TimedOut"])

export const fetchError = ({ reason, message }: OutboundHttpError): ReaderError =>
  new ReaderError({
    code: `fetch_${reason.replace(/(?<=.)[A-Z]/g, "_$&").toLowerCase()}`,
    message,
    retryable: transient.has(reason)
  })

/** The normalized absolute URL without fragment. */
export const withoutFragment = (href: string): string => {
  const url = new URL(href)
  url.hash = ""
  return url.href
}

/** Returns any status. The `url` of the response is the address after redirects, without fragment. */
export const request = Effect.fn("Fetch.request")(function* (
  url: string,
  limits: { readonly maxBytes?: number } = {},
  conditions: Readonly<Record<string, string>> = {}
) {
  const http = yield* OutboundHttp
  const hosts = yield* HostLimiter
  const response = yield* hosts
    .withHostPermit(new URL(url).host, http.fetch({ url, headers: { ...headers, ...conditions }, ...limits }))
    .pipe(Effect.mapError(fetchError))
  const final: OutboundResponse = { ...response, url: withoutFragment(response.url) }
  return final
})

const advice: Readonly<Record<number, string>> = {
  401: " It asks for a login, and only public pages are read.",
  403: " It refuses access to Spoke.",
  404: " Check the address.",
  410: " It is gone for good.",
  429: " It asks for fewer requests."
}

/** The error of a status outside 2xx; `what` is "page", "file" or "sitemap". */
const refusal = (what: string, { headers: given, status }: OutboundResponse) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const retryable = status === 408 || status === 425 || status === 429 || status >= 500
    const pause = retryable ? Option.getOrUndefined(retryAfter(given, now)) : undefined
    return new ReaderError({
      code: `status_${status}`,
      message: `The ${what} answered ${status}.${advice[status] ?? ""}`,
      retryable,
      ...(pause === undefined ? {} : { retryAfter: pause })
    })
  })

/** A response with status 2xx; otherwise fails with {@link refusal}. */
export const fetchOk = Effect.fn("Fetch.fetchOk")(function* (
  what: string,
  url: string,
  limits: { readonly maxBytes?: number } = {}
) {
  const response = yield* request(url, limits)
  if (response.status < 200 || response.status > 299) return yield* refusal(what, response)
  return response
})

/** Headers that make the answer 304 when the page has not changed. */
const conditionsOf = ({ etag, lastModified }: JournalEntry): Readonly<Record<string, string>> => ({
  ...(etag === null ? {} : { "if-none-match": etag }),
  ...(lastModified === null ? {} : { "if-modified-since": lastModified })
})

/** {@link fetchOk} of a page, or none when it has not changed. */
export const fetchChanged = Effect.fn("Fetch.fetchChanged")(function* (
  url: string,
  known: JournalEntry | undefined,
  maxBytes: number | undefined
) {
  const limits = maxBytes === undefined ? {} : { maxBytes }
  const fullPage = fetchOk("page", url, limits)
  if (known === undefined || known.links === null) return Option.some(yield* fullPage)
  const response = yield* request(url, limits, conditionsOf(known))
  if (response.status === 304) {
    return response.url === known.url ? Option.none() : Option.some(yield* fullPage)
  }
  if (response.status < 200 || response.status > 299) return yield* refusal("page", response)
  return Option.some(response)
})
