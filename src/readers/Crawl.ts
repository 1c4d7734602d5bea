/** Reads a site from a start page: breadth first, within its origin, with limits on depth and pages. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import { WorkBudget } from "../concurrency/WorkBudget.ts"
import { makeDuplicateDetector } from "./DuplicateDetector.ts"
import { makeUrlFilter, type Patterns, type Verdict } from "./Glob.ts"
import { noJournal } from "./Journal.ts"
import { makeSites, readPage } from "./Page.ts"
import { ReaderError, permanentError } from "../capabilities/SourceReaders.ts"
import type { ReadDocument, ReaderServices, ReadOptions } from "./Reader.ts"
import { type Address, makeVisits, type Settled, type SkipReason, type Visits } from "./Visits.ts"

/** Maximum number of pages that one run requests. */
export const maxPages = 1_000
/** Maximum number of skipped addresses that are reported. */
export const maxSkips = 4_000

export interface CrawlPlan extends Patterns {
  readonly url: string
  /** 0 reads only the start page. */
  readonly maxDepth: number
}

/** Extensions of files that no reader supports. They are not requested. Pages may be named like scripts. */
const assets =
  /\.(?:avif|bmp|css|dmg|eot|exe|gif|gz|ico|iso|jpe?g|mov|mp[34]|ogg|otf|png|rar|rss|svg|tar|tgz|tiff?|ttf|wav|web[mp]|woff2?|xml|zip|7z)$/i

const nothingSelected = permanentError(
  "nothing_selected",
  "No readable page is left by includePatterns and excludePatterns. Both are compared with the whole URL."
)

type Documents = Stream.Stream<ReadDocument, ReaderError, ReaderServices>

/** Why a crawl of `origin` skips a link; null when it does not. */
export const linkSkipReason =
  (origin: string, verdict: (url: string) => Verdict) =>
  (url: string): { readonly reason: SkipReason | null; readonly pattern: string | null } => {
    const { origin: linkOrigin, pathname } = new URL(url)
    if (linkOrigin !== origin) return { reason: "other_origin", pattern: null }
    if (assets.test(pathname)) return { reason: "asset", pattern: null }
    return verdict(url)
  }

interface Run {
  readonly visits: Visits
  readonly plan: CrawlPlan
  readonly reasonOf: ReturnType<typeof linkSkipReason>
  readonly budget: WorkBudget
  readonly detector: ReturnType<typeof makeDuplicateDetector>
  readonly options: ReadOptions
}

const makeCrawl = ({ visits, plan, reasonOf, budget, detector, options }: Run, first: Settled) => {
  const { journal = noJournal, maxPages: limit = maxPages } = options
  const skipped = new Map<string, readonly [Address, SkipReason]>()
  let requestedPages = 1
  let settled = 1

  const skipLater = (address: Address, reason: SkipReason) => {
    if (skipped.size < maxSkips) skipped.set(address.url, [address, reason])
  }

  /** The links of a page that are to be visited. */
  const linksToVisit = (links: ReadonlyArray<string>, parent: string, depth: number) =>
    Effect.gen(function* () {
      const found: Array<Address> = []
      for (const url of links) {
        if (budget.isYieldDue) yield* budget.yieldIfDue
        if (!detector.markSeen(url)) continue
        const address: Address = { url, depth, parent }
        const reason = reasonOf(url).reason ?? (depth > plan.maxDepth ? "beyond_max_depth" : null)
        if (reason === null) found.push(address)
        else skipLater(address, reason)
      }
      return found
    })

  const crawlLevel = (addresses: ReadonlyArray<Address>): Documents => {
    const frontier = addresses.slice(0, limit - requestedPages)
    for (const address of addresses.slice(frontier.length)) skipLater(address, "page_limit")
    requestedPages += frontier.length
    if (frontier.length === 0) return Stream.empty
    const found: Array<Address> = []
    return visits.visitAll(frontier).pipe(
      Stream.mapEffect(({ address, result }) =>
        Effect.gen(function* () {
          const { document, links } = yield* visits.settle(address, result)
          for (const next of yield* linksToVisit(links, address.url, address.depth + 1)) found.push(next)
          settled++
          yield* journal.progress(settled, Math.min(limit, requestedPages + found.length))
          return document
        })
      ),
      Stream.filter((document) => document !== null),
      Stream.concat(Stream.suspend(() => crawlLevel(found)))
    )
  }

  /** Reported last, because a skipped address may still be the target of a redirect. */
  const recordSkipped = Effect.suspend(() =>
    Effect.forEach(skipped.values(), ([address, reason]) => visits.skip(address, reason), { discard: true })
  )

  return (first.document === null ? Stream.empty : Stream.make(first.document)).pipe(
    Stream.concat(Stream.unwrap(Effect.map(linksToVisit(first.links, plan.url, 1), crawlLevel))),
    Stream.ensuring(recordSkipped)
  )
}

/** Counts the documents of a run, including unchanged ones. */
const withKeptCount = (options: ReadOptions) => {
  const { journal = noJournal } = options
  let kept = 0
  const counting: ReadOptions = {
    ...options,
    journal: {
      ...journal,
      keep: (uri) => {
        kept++
        return journal.keep(uri)
      }
    }
  }
  return { options: counting, kept: () => kept }
}

/** Fails a stream that ends without a document, unless some are unchanged. */
export const failIfEmpty = (
  given: ReadOptions,
  read: (options: ReadOptions) => Documents,
  reason: () => ReaderError
): Documents => {
  const { options, kept } = withKeptCount(given)
  let emitted = 0
  return read(options).pipe(
    Stream.tap(() => Effect.sync(() => emitted++)),
    Stream.concat(Stream.suspend(() => (emitted + kept() === 0 ? Stream.fail(reason()) : Stream.empty))),
    Stream.take(given.maxDocuments)
  )
}

const start = (plan: CrawlPlan, options: ReadOptions) =>
  Effect.gen(function* () {
    const { journal = noJournal } = options
    const sites = yield* makeSites
    const detector = makeDuplicateDetector()
    detector.markSeen(plan.url)
    const address: Address = { url: plan.url, depth: 0, parent: null }
    const result = yield* Effect.either(readPage(sites, plan.url, { known: journal.known(plan.url) }))
    const found = Either.map(result, (visit) => (visit._tag === "Page" ? visit.page.url : visit.known.url))
    // If the start page redirects to another origin, that origin is crawled.
    const { origin } = new URL(Either.getOrElse(found, () => plan.url))
    const mayRedirectTo = (url: string) => new URL(url).origin === origin
    const budget = new WorkBudget()
    const verdict = makeUrlFilter(plan, budget)
    const visits = makeVisits({ sites, journal, detector, verdict, mayRedirectTo })
    const first = yield* visits.settle(address, result, true)
    if (Either.isLeft(result)) return Stream.fail(result.left)
    detector.markSeen(Either.getOrElse(found, () => plan.url))
    const reasonOf = linkSkipReason(origin, verdict)
    return makeCrawl({ visits, plan, reasonOf, budget, detector, options }, first)
  })

/**
 * The documents of the site. The start page must be readable; its links are followed even if the patterns exclude it.
 * Any other page that fails is skipped.
 */
export const crawl = (plan: CrawlPlan, options: ReadOptions): Documents =>
  failIfEmpty(
    options,
    (counting) => Stream.unwrap(start(plan, counting)),
    () => nothingSelected
  )
