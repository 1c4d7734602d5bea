/** One page of a site: permitted by robots.txt, fetched at the site's pace, parsed, and named by its canonical address. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { DocumentParser, type ParseError, type ParsedDocument } from "../capabilities/DocumentParser.ts"
import type { OutboundResponse } from "../capabilities/OutboundHttp.ts"
import { agent, fetchOk, request } from "./Fetch.ts"
import { type ReadDocument, ReaderError } from "./Reader.ts"
import { allowAll, crawlDelay, mayFetch, parseRobots, type Robots } from "./Robots.ts"

/** A host that asks for longer pauses gets these: a thousand pages must fit the time of a job. */
const longestDelay = 5
const maxUri = 2_048

export interface Page {
  readonly document: ReadDocument
  /** Where it was found after redirects, without fragment. */
  readonly url: string
  readonly links: ReadonlyArray<string>
}

/** A parser's failure as the reader's: the same document would fail again. */
export const unreadable = ({ code, message }: ParseError): ReaderError =>
  new ReaderError({ code, message, retryable: false })

/** The document of a response, with what a later sync can compare. */
export const documentOf = (
  uri: string,
  { title, format, content }: ParsedDocument,
  headers: OutboundResponse["headers"]
): ReadDocument => ({
  uri,
  title,
  format,
  content,
  ...(headers["etag"] === undefined ? {} : { etag: headers["etag"] }),
  ...(headers["last-modified"] === undefined ? {} : { lastModified: headers["last-modified"] })
})

/** A missing robots.txt allows everything; a host that cannot say is asked again later (RFC 9309, 2.3.1). */
const loadRobots = (origin: string) =>
  request(`${origin}/robots.txt`, { maxBytes: 5 * 1024 * 1024 }).pipe(
    Effect.flatMap(({ status, body }): Effect.Effect<Robots, ReaderError> => {
      if (status >= 200 && status < 300) return Effect.succeed(parseRobots(new TextDecoder().decode(body)))
      if (status < 500 && status !== 429) return Effect.succeed(allowAll)
      return new ReaderError({
        code: "robots_unavailable",
        message: `The site's robots.txt answered ${status}, so that nothing may be read now.`,
        retryable: true
      })
    }),
    Effect.catchIf(
      ({ code, retryable }) => !retryable && code !== "fetch_invalid_url",
      () => Effect.succeed(allowAll)
    )
  )

const makeSite = (origin: string) =>
  Effect.gen(function* () {
    const robots = yield* loadRobots(origin)
    const delay = Math.min(crawlDelay(robots, agent), longestDelay)
    const turn = yield* Effect.makeSemaphore(1)
    /** One request after another with the site's pause between them, where it asks for one. */
    const paced = <A, E, R>(fetch: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
      delay === 0
        ? fetch
        : turn.withPermits(1)(Effect.zipRight(Effect.when(Effect.sleep(delay * 1_000), takeStarted), fetch))
    let started = false
    const takeStarted = () => {
      const before = started
      started = true
      return before
    }
    return { robots, paced } as const
  })

/** Each origin's robots.txt, read once a run. */
export const makeSites = Effect.cachedFunction(makeSite)
export type Sites = Effect.Effect.Success<typeof makeSites>

const sameOrigin = (a: string, b: string): boolean => new URL(a).origin === new URL(b).origin

const disallowed = new ReaderError({
  code: "robots_disallowed",
  message: `The site's robots.txt does not allow ${agent} to read this page.`,
  retryable: false
})

/** `within` says whether the address that redirects led to still belongs to the source. */
export const readPage = Effect.fn("Page.read")(function* (
  sites: Sites,
  address: string,
  within: (url: string) => boolean = () => true
) {
  const parser = yield* DocumentParser
  const { robots, paced } = yield* sites(new URL(address).origin)
  if (!mayFetch(robots, agent, address)) return yield* disallowed
  const { url, body, headers } = yield* paced(fetchOk("page", address))
  if (url.length > maxUri || !within(url)) {
    return yield* new ReaderError({
      code: "redirected_away",
      message: "The page redirects to an address outside the source.",
      retryable: false
    })
  }
  if (sameOrigin(url, address) && !mayFetch(robots, agent, url)) return yield* disallowed
  const contentType = headers["content-type"]
  const parsed = yield* parser
    .parse({ bytes: body, url, ...(contentType === undefined ? {} : { contentType }) })
    .pipe(Effect.mapError(unreadable))
  const { canonicalUrl, links = [] } = parsed
  const uri = canonicalUrl !== undefined && sameOrigin(canonicalUrl, url) ? canonicalUrl : url
  const page: Page = { document: documentOf(uri, parsed, headers), url, links }
  return page
})

/** The page, or none and why; what may have been a moment's trouble is tried once more. */
export const tryPage = (sites: Sites, address: string, within?: (url: string) => boolean) =>
  readPage(sites, address, within).pipe(
    Effect.retry({ times: 1, while: ({ retryable }) => retryable, schedule: Schedule.spaced("1 second") }),
    Effect.tapError(({ code }) => Effect.logDebug("A page was left out", code)),
    Effect.either
  )
