/**
 * Decides the result of each visited address: a new document, an unchanged one, a repeat of another, or none. Pages are
 * visited concurrently and settled in order, so that a run is deterministic.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import { MiB } from "../domain/Bytes.ts"
import type { CrawlOutcome } from "../domain/knowledge/Crawl.ts"
import { digestOf, fingerprintOf } from "./Fingerprint.ts"
import { type DuplicateDetector, repeatMessages } from "./DuplicateDetector.ts"
import type { Verdict } from "./Glob.ts"
import type { PageState, Journal, JournalEntry } from "./Journal.ts"
import { isTooLarge, type Page, type Sites, tryPage, type Visit, type VisitOptions } from "./Page.ts"
import type { ReaderError } from "../capabilities/SourceReaders.ts"
import { damageOf, type ReadDocument } from "./Reader.ts"

/** An address to visit. */
export interface Address {
  readonly url: string
  readonly depth: number
  readonly parent: string | null
  /** The sitemap's `lastmod`. */
  readonly listedAt?: string | null
}

export interface Settled {
  readonly document: ReadDocument | null
  readonly links: ReadonlyArray<string>
}

/** Messages for skipped addresses. */
export const skipMessages = {
  excluded: "One of excludePatterns matches the address.",
  not_included: "None of includePatterns matches the address.",
  other_origin: "The address is on another site; a crawl stays within the origin of its first page.",
  asset: "The address names a picture, a script or another file without text to read.",
  match_limit: "The patterns take too many comparisons for the address. Use fewer or shorter ones.",
  beyond_max_depth: "The page is more links away than maxDepth allows.",
  page_limit: "The source has more pages than one sync asks for."
} as const
export type SkipReason = keyof typeof skipMessages

const noindexMessage = "The page asks not to be indexed (noindex). A URL source that names it reads it."

/** Reasons that count as skipped, not as failed. */
const skippedCodes: ReadonlySet<string> = new Set(["robots_disallowed", "redirected_away", "asset"])

const statusOf = (code: string): number | null => {
  const found = /^status_(\d{3})$/.exec(code)
  return found === null ? null : Number(found[1])
}

/** Maximum number of concurrent pages: some are requested, at most four of one host, while others are parsed. */
const maxConcurrentPages = 8
/** Maximum size of a page that is read beside others: of its body in bytes, and of its text in characters. */
const maxConcurrentSize = 4 * MiB
/** Maximum number of links that are stored. A page with more is always fetched in full. */
const maxComparedLinks = 1_000

export interface VisitsOptions {
  readonly sites: Sites
  readonly journal: Journal
  readonly detector: DuplicateDetector
  readonly verdict: (url: string) => Verdict
  /** False for an address that redirects must not lead to. */
  readonly mayRedirectTo: (url: string) => boolean
}

const emptyResult: Settled = { document: null, links: [] }

/** Settles the visits of one run. */
export const makeVisits = ({ sites, journal, detector, verdict, mayRedirectTo }: VisitsOptions) => {
  const keptUris = new Set<string>()
  const recorded = new Set<string>()

  const record = (
    { url, depth, parent }: Address,
    outcome: CrawlOutcome,
    details: {
      readonly reason?: string
      readonly message?: string
      readonly status?: number | null
      readonly target?: string
    },
    state?: PageState
  ) =>
    Effect.suspend(() => {
      if (recorded.has(url)) return Effect.void
      recorded.add(url)
      const { reason = null, message = null, status = null, target = null } = details
      return journal.record(
        { url, depth, parent, outcome, reason, message, httpStatus: status, target },
        state
      )
    })

  const skip = (address: Address, reason: SkipReason) =>
    record(address, "skipped", { reason, message: skipMessages[reason] })

  const recordFailure = (address: Address, { code, message }: ReaderError) =>
    record(address, skippedCodes.has(code) ? "skipped" : "failed", {
      reason: code,
      message,
      status: statusOf(code)
    })

  const visit = ({ url, listedAt = null }: Address, options: Pick<VisitOptions, "maxSize"> = {}) =>
    tryPage(sites, url, { known: journal.known(url), listedAt, mayRedirectTo, ...options })

  /**
   * Visits the addresses concurrently, and returns the results in order. A large page is visited again when its turn
   * has come, so that a run has at most one of them in memory.
   */
  const visitAll = (addresses: Iterable<Address>) =>
    Stream.fromIterable(addresses).pipe(
      Stream.mapEffect(
        (address) =>
          Effect.map(visit(address, { maxSize: maxConcurrentSize }), (first) => ({ address, first })),
        { concurrency: maxConcurrentPages }
      ),
      Stream.mapEffect(({ address, first }) =>
        Effect.map(
          Either.isLeft(first) && isTooLarge(first.left) ? visit(address) : Effect.succeed(first),
          (result) => ({ address, result })
        )
      )
    )

  const stateOf = ({ document, links }: Pick<Page, "document" | "links">, { listedAt = null }: Address) =>
    Effect.map(Clock.currentTimeMillis, (fetchedAt): PageState => {
      const { etag = null, lastModified = null } = document
      // A document that was read in part is fetched at each sync, so that each report says what is missing.
      const comparable =
        document.incomplete === undefined && (etag !== null || lastModified !== null || listedAt !== null)
      return {
        etag,
        lastModified,
        listedAt,
        fetchedAt,
        links: comparable && links.length < maxComparedLinks ? links : null,
        digest: digestOf(document),
        fingerprint: fingerprintOf(document)
      }
    })

  /** Records the target of redirects, and returns the address of the result; none when it is not part of the source. */
  const recordRedirect = (address: Address, url: string) =>
    Effect.gen(function* () {
      if (url === address.url) return address
      yield* record(address, "redirected", { reason: "redirected", target: url })
      return { ...address, url, parent: address.url } satisfies Address
    })

  const settlePage = (address: Address, page: Page, isStart: boolean) =>
    Effect.gen(function* () {
      const { document, rules, url, status } = page
      // Whoever names a page wants it, whatever it tells those who find it.
      const links = rules.nofollow && !isStart ? [] : page.links
      if (!mayRedirectTo(url)) {
        yield* record(address, "skipped", {
          reason: "redirected_away",
          message: "The page redirects to an address outside the source.",
          target: url
        })
        return emptyResult
      }
      const place = yield* recordRedirect(address, url)
      const { included, reason } = verdict(url)
      if (!included) {
        yield* skip(place, reason ?? "excluded")
        return isStart ? { document: null, links } : emptyResult
      }
      if (rules.noindex && !isStart) {
        yield* record(place, "skipped", { reason: "noindex", message: noindexMessage, status })
        return { document: null, links }
      }
      const state = yield* stateOf({ document, links }, address)
      const repeat = detector.check({ uri: document.uri, ...state })
      if (repeat !== undefined) {
        const entry = { reason: repeat.reason, target: repeat.of, status }
        const message = repeatMessages[repeat.reason] ?? ""
        yield* record(place, "skipped", { ...entry, message }, state)
        return { document: null, links }
      }
      const known = journal.known(url)
      const target = document.uri
      const damage = damageOf(document)
      if (known?.repeats === null && known.uri === target && known.digest === state.digest) {
        yield* keep(target)
        yield* record(place, "unchanged", { reason: "same_content", target, status, ...damage }, state)
        return { document: null, links }
      }
      yield* record(place, "indexed", { target, status, ...damage }, state)
      return { document, links }
    })

  const keep = (uri: string) =>
    Effect.suspend(() => {
      keptUris.add(uri)
      return journal.keep(uri)
    })

  /** Merges the site's answer about a known page with the stored state. */
  const settleKnown = (address: Address, known: JournalEntry, reason: string, isStart: boolean) =>
    Effect.gen(function* () {
      const links = known.links ?? []
      const place = yield* recordRedirect(address, known.url)
      const now = yield* Clock.currentTimeMillis
      const { listedAt = null } = address
      const fetchedAt = reason === "not_modified" ? now : known.fetchedAt
      const state: PageState = { ...pageStateOf(known), listedAt, fetchedAt }
      const status = reason === "not_modified" ? 304 : null
      const judged = verdict(known.url)
      if (!judged.included) {
        yield* skip(place, judged.reason ?? "excluded")
        return isStart ? { document: null, links } : emptyResult
      }
      const repeat =
        known.repeats === null
          ? detector.check({ uri: known.uri, ...state })
          : { of: known.uri, reason: known.repeats }
      if (repeat !== undefined) {
        const message = repeatMessages[repeat.reason] ?? ""
        yield* record(place, "skipped", { reason: repeat.reason, message, target: repeat.of, status }, state)
        return { document: null, links }
      }
      yield* keep(known.uri)
      yield* record(place, "unchanged", { reason, target: known.uri, status }, state)
      return { document: null, links }
    })

  /**
   * A known page is temporarily unavailable. Its document stays, and its links are followed. Only a permanent error of
   * the site removes a page.
   */
  const settleMissed = (address: Address, known: JournalEntry, { code, message }: ReaderError) =>
    Effect.gen(function* () {
      const entry = { reason: code, message, status: statusOf(code) }
      if (known.url !== address.url) {
        // Only the redirect was unavailable. The target page may still be readable.
        yield* record(address, "failed", { ...entry, target: known.url })
        if (!detector.markSeen(known.url)) return emptyResult
        const result = yield* tryPage(sites, known.url, { known, mayRedirectTo })
        const place: Address = { ...address, url: known.url, parent: address.url }
        const { document, links } = yield* settle(place, result)
        return {
          document,
          links: Either.isLeft(result) ? [...links, ...journal.foundThrough(address.url)] : links
        }
      }
      const links = known.links ?? journal.foundThrough(address.url)
      const stays =
        verdict(address.url).included && known.repeats === null && detector.check(known) === undefined
      if (!stays) {
        yield* record(address, "failed", entry)
        return { document: null, links }
      }
      keptUris.add(known.uri)
      yield* journal.keepUnread(known.uri)
      yield* record(address, "failed", { ...entry, target: known.uri }, pageStateOf(known))
      return { document: null, links }
    })

  /** Settles a result of {@link visitAll}. `isStart`: links are followed even if the patterns exclude the page. */
  const settle = (
    address: Address,
    result: Either.Either<Visit, ReaderError>,
    isStart = false
  ): Effect.Effect<Settled, never, Effect.Effect.Context<ReturnType<typeof visit>>> =>
    Effect.gen(function* () {
      if (Either.isLeft(result)) {
        const before = journal.known(address.url)
        if (result.left.retryable && !isStart && before !== undefined && mayRedirectTo(before.url)) {
          return yield* settleMissed(address, before, result.left)
        }
        yield* recordFailure(address, result.left)
        return emptyResult
      }
      const found = result.right
      if (found._tag === "Page") return yield* settlePage(address, found.page, isStart)
      const { known, reason } = found
      if (!mayRedirectTo(known.url))
        return yield* settle(address, yield* tryPage(sites, address.url, { mayRedirectTo }), isStart)
      // If the repeated document has changed or was removed, this page may be the only one with the content.
      if (known.repeats !== null && !keptUris.has(known.uri)) {
        return yield* settle(address, yield* tryPage(sites, address.url, { mayRedirectTo }), isStart)
      }
      return yield* settleKnown(address, known, reason, isStart)
    })

  return { visitAll, settle, skip, recordFailure } as const
}
export type Visits = ReturnType<typeof makeVisits>

/** The stored state of a page. */
export const pageStateOf: (entry: JournalEntry) => PageState = Struct.pick(
  "etag",
  "lastModified",
  "listedAt",
  "fetchedAt",
  "links",
  "digest",
  "fingerprint"
)
