/**
 * One page of a site: checked against robots.txt, fetched at the site's rate, parsed, and identified by its canonical
 * address.
 */
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "../domain/MonotonicClock.ts"
import { DocumentParser, mayParseLater, type ParsedDocument } from "../capabilities/DocumentParser.ts"
import type { OutboundResponse } from "../capabilities/OutboundHttp.ts"
import { agent, fetchChanged, request } from "./Fetch.ts"
import type { JournalEntry } from "./Journal.ts"
import { ReaderError, permanentError } from "../capabilities/SourceReaders.ts"
import type { ReadDocument } from "./Reader.ts"
import {
  allowAll,
  crawlDelay,
  mayFetch,
  type PageRules,
  pageRules,
  parseRobots,
  type Robots
} from "./Robots.ts"
import { MiB } from "../domain/Bytes.ts"

/** Maximum crawl delay. Longer ones are shortened, because a thousand pages must fit the time of a job. */
const maxCrawlDelaySeconds = 5
const maxUriLength = 2_048
/** Maximum pause requested by a site. With a longer one, the rest is left to the next sync. */
const maxRetryDelay = Duration.seconds(30)
/** Number of retries of a page, and of one whose site requested a pause. */
const maxRetries = 1
const maxRetriesAfterPause = 3

/** The pause that a site requested, if it is short enough to wait for. */
const pauseOf = ({ retryAfter }: ReaderError): Duration.Duration | undefined =>
  retryAfter !== undefined && Duration.lessThanOrEqualTo(retryAfter, maxRetryDelay) ? retryAfter : undefined

export interface Page {
  readonly document: ReadDocument
  /** The page's address after redirects, without fragment. */
  readonly url: string
  readonly links: ReadonlyArray<string>
  readonly rules: PageRules
  readonly status: number
}

/** Converts the error of a parser, or of the recognition of text. */
export const parserError = (error: { readonly code: string; readonly message: string }) =>
  new ReaderError({ code: error.code, message: error.message, retryable: mayParseLater(error) })

/** The document of a response, with the data that a later sync compares. */
export const documentOf = (
  uri: string,
  { title, format, content, incomplete }: ParsedDocument,
  headers: OutboundResponse["headers"]
): ReadDocument => ({
  uri,
  title,
  format,
  content,
  ...(incomplete === undefined ? {} : { incomplete }),
  ...(headers["etag"] === undefined ? {} : { etag: headers["etag"] }),
  ...(headers["last-modified"] === undefined ? {} : { lastModified: headers["last-modified"] })
})

/** A missing robots.txt allows everything. If the server fails, the page is retried later (RFC 9309, 2.3.1). */
export const loadRobots = (origin: string) =>
  request(`${origin}/robots.txt`, { maxBytes: 5 * MiB }).pipe(
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
    const delay = Math.min(crawlDelay(robots, agent), maxCrawlDelaySeconds)
    const oneAtATime = yield* Effect.makeSemaphore(1)
    let pausedUntil = 0
    /** Waits for a pause that the site requested on any of its pages. */
    const afterRequestedPause = <A, R>(
      fetch: Effect.Effect<A, ReaderError, R>
    ): Effect.Effect<A, ReaderError, R> =>
      Effect.flatMap(monotonicMillis, (now) =>
        pausedUntil > now ? Effect.zipRight(Effect.sleep(pausedUntil - now), fetch) : fetch
      ).pipe(
        Effect.tapError((error) =>
          Effect.map(monotonicMillis, (now) => {
            const pause = pauseOf(error)
            if (pause !== undefined) pausedUntil = Math.max(pausedUntil, now + Duration.toMillis(pause))
          })
        )
      )
    /** Runs requests one at a time with the site's crawl delay, if it has one. */
    const atSiteRate = <A, R>(fetch: Effect.Effect<A, ReaderError, R>): Effect.Effect<A, ReaderError, R> =>
      delay === 0
        ? afterRequestedPause(fetch)
        : oneAtATime.withPermits(1)(
            Effect.zipRight(
              Effect.when(Effect.sleep(delay * 1_000), isFurtherRequest),
              afterRequestedPause(fetch)
            )
          )
    let started = false
    const isFurtherRequest = () => {
      const before = started
      started = true
      return before
    }
    return { robots, atSiteRate } as const
  })

/** Each origin's robots.txt, read once per run. */
export const makeSites = Effect.cachedFunction(makeSite)
export type Sites = Effect.Effect.Success<typeof makeSites>

const sameOrigin = (a: string, b: string): boolean => new URL(a).origin === new URL(b).origin

/** The page exists, but does not belong to the source. */
const redirectedAway = permanentError(
  "redirected_away",
  "The page redirects to an address outside the source."
)

const disallowed = permanentError(
  "robots_disallowed",
  `The site's robots.txt does not allow ${agent} to read this page.`
)

const scriptType = /^(?:text|application)\/(?:x-)?(?:java|ecma)script\b/i

const isScript = permanentError("asset", "The address answers with a script, which has no text to read.")

/** The result of visiting an address: a page, or that the known one is unchanged, with the `reason`. */
export type Visit =
  | { readonly _tag: "Page"; readonly page: Page }
  | {
      readonly _tag: "Unchanged"
      readonly known: JournalEntry
      readonly reason: "not_modified" | "not_listed_as_modified"
    }

export interface VisitOptions {
  /** The state of the address at the last sync. */
  readonly known?: JournalEntry | undefined
  /** The sitemap's `lastmod` of the address. */
  readonly listedAt?: string | null
  /** False for an address that redirects must not lead to. Its robots.txt is not requested then. */
  readonly mayRedirectTo?: (url: string) => boolean
  /** Maximum size of the body in bytes, and of the text in characters. A larger page fails with {@link isTooLarge}. */
  readonly maxSize?: number
}

/** A date without a time may mean any hour of that day in any time zone; clocks differ by minutes. */
const dateToleranceMs = 40 * 60 * 60 * 1_000
const clockSkewMs = 10 * 60 * 1_000

/** True when the sitemap lists the same `lastmod` as before, and the page was fetched after that time. */
const isListedAsBefore = (known: JournalEntry, listedAt: string | null): boolean => {
  if (listedAt === null || known.listedAt !== listedAt) return false
  const slack = /^\d{4}-\d{2}-\d{2}$/.test(listedAt) ? dateToleranceMs : clockSkewMs
  return Option.match(DateTime.make(listedAt), {
    onNone: () => false,
    onSome: (at) => DateTime.toEpochMillis(at) + slack < known.fetchedAt
  })
}

const timedOut = new ReaderError({
  code: "page_timed_out",
  message: "The page was not to be had within two minutes, waiting for its turn included.",
  retryable: true
})

const tooLarge = permanentError("fetch_too_large", "The page is larger than allowed.")

export const isTooLarge = ({ code }: ReaderError): boolean => code === tooLarge.code

/** Reads the page, unless the site says that the known one is unchanged. */
export const readPage = Effect.fn("Page.read")(function* (
  sites: Sites,
  address: string,
  { known, listedAt = null, maxSize, mayRedirectTo = () => true }: VisitOptions = {}
) {
  const parser = yield* DocumentParser
  const { robots, atSiteRate } = yield* sites(new URL(address).origin)
  if (!mayFetch(robots, agent, address)) return yield* disallowed
  if (known !== undefined && known.links !== null && isListedAsBefore(known, listedAt)) {
    const visit: Visit = { _tag: "Unchanged", known, reason: "not_listed_as_modified" }
    return visit
  }
  const response = yield* atSiteRate(fetchChanged(address, known, maxSize)).pipe(
    Effect.timeoutFail({ duration: "2 minutes", onTimeout: () => timedOut })
  )
  if (Option.isNone(response)) {
    if (known === undefined) return yield* Effect.dieMessage("A page that is not known cannot be unchanged.")
    const visit: Visit = { _tag: "Unchanged", known, reason: "not_modified" }
    return visit
  }
  const { url, body, headers, status } = response.value
  if (url.length > maxUriLength) return yield* redirectedAway
  if (sameOrigin(url, address) || mayRedirectTo(url)) {
    const targetRobots = sameOrigin(url, address) ? robots : (yield* sites(new URL(url).origin)).robots
    if (!mayFetch(targetRobots, agent, url)) return yield* disallowed
  }
  const contentType = headers["content-type"]
  if (contentType !== undefined && scriptType.test(contentType)) return yield* isScript
  const parsed = yield* parser
    .parse({ bytes: body, url, ...(contentType === undefined ? {} : { contentType }) })
    .pipe(Effect.mapError(parserError))
  if (maxSize !== undefined && parsed.content.length > maxSize) return yield* tooLarge
  const { canonicalUrl, links = [] } = parsed
  const uri = canonicalUrl !== undefined && sameOrigin(canonicalUrl, url) ? canonicalUrl : url
  const rules = pageRules(agent, [headers["x-robots-tag"] ?? "", parsed.robots ?? ""])
  const page: Page = { document: documentOf(uri, parsed, headers), url, links, rules, status }
  const visit: Visit = { _tag: "Page", page }
  return visit
})

/** Delay before a retry: one second, unless the site requested another. */
const retrySchedule = Schedule.identity<ReaderError>().pipe(
  Schedule.intersect(Schedule.recurs(maxRetriesAfterPause)),
  Schedule.whileOutput(([error, times]) =>
    error.retryAfter === undefined ? error.retryable && times < maxRetries : pauseOf(error) !== undefined
  ),
  Schedule.addDelay(([error]) => pauseOf(error) ?? Duration.seconds(1))
)

/** The visit, or why it failed. Transient errors are retried. */
export const tryPage = (sites: Sites, address: string, options?: VisitOptions) =>
  readPage(sites, address, options).pipe(
    Effect.retry(retrySchedule),
    Effect.tapError(({ code }) => Effect.logDebug("A page was not read", code)),
    Effect.either
  )
