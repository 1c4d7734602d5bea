/** Source type SITEMAP: reads sitemaps, sitemap indexes and their compressed forms, then their pages. */
import { gunzip } from "node:zlib"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import { urlOf } from "../domain/Address.ts"
import { inSlices } from "../concurrency/InSlices.ts"
import type { SitemapConfig } from "../domain/knowledge/Source.ts"
import { WorkBudget } from "../concurrency/WorkBudget.ts"
import { failIfEmpty, maxPages, maxSkips } from "./Crawl.ts"
import { fetchOk } from "./Fetch.ts"
import { makeDuplicateDetector } from "./DuplicateDetector.ts"
import { makeUrlFilter, type Verdict } from "./Glob.ts"
import { type Journal, noJournal } from "./Journal.ts"
import { loadRobots, makeSites } from "./Page.ts"
import { ReaderError, permanentError } from "../capabilities/SourceReaders.ts"
import type { Reader, ReadOptions } from "./Reader.ts"
import { sitemapSteps, type Sitemap } from "./SitemapXml.ts"
import { type Address, makeVisits, type SkipReason } from "./Visits.ts"
import { MiB } from "../domain/Bytes.ts"

/** The protocol's limit of 50 MB per file. */
const maxBytes = 50 * MiB
const maxFiles = 200
const maxDepth = 3

const notASitemap = permanentError(
  "no_sitemap",
  "The address holds no sitemap. Give the address of a sitemap.xml, or use a URL source to crawl the site."
)
const tooLarge = permanentError(
  "too_large",
  "The compressed sitemap is damaged or unpacks to more than 50 MB."
)

/** Compressed files may lack the extension `.gz` or the content type, so the first bytes decide. */
const unpacked = (bytes: Uint8Array): Effect.Effect<Uint8Array, ReaderError> =>
  bytes[0] === 0x1f && bytes[1] === 0x8b
    ? Effect.async((resume) =>
        gunzip(bytes, { maxOutputLength: maxBytes }, (error, result) =>
          resume(error === null || error === undefined ? Effect.succeed(result) : Effect.fail(tooLarge))
        )
      )
    : Effect.succeed(bytes)

const parse = (bytes: Uint8Array): Effect.Effect<Sitemap | undefined> =>
  Effect.suspend(() => inSlices(sitemapSteps(new TextDecoder().decode(bytes))))

const load = (url: string) =>
  fetchOk("sitemap", url, { maxBytes }).pipe(
    Effect.flatMap(({ body }) => unpacked(body)),
    Effect.flatMap(parse)
  )

const loadSitemap = (url: string) =>
  Effect.flatMap(load(url), (sitemap) =>
    sitemap === undefined ? Effect.fail(notASitemap) : Effect.succeed(sitemap)
  )

/** The sitemaps named in a site's robots.txt, else the default path. Fails while robots.txt is unavailable. */
const sitemapsOf = (url: string) =>
  loadRobots(new URL(url).origin).pipe(
    Effect.map(({ sitemaps }) => sitemaps.flatMap((address) => urlOf(address)?.href ?? [])),
    Effect.map((named) => (named.length > 0 ? named : [new URL("/sitemap.xml", url).href]))
  )

/** `url` may be the sitemap itself, or a page of the site. */
const firstSitemap = ({ sitemapUrl, url }: typeof SitemapConfig.Type) => {
  if (sitemapUrl !== undefined || url === undefined) return loadSitemap(sitemapUrl ?? "")
  return Effect.gen(function* () {
    const sitemap = yield* load(url)
    if (sitemap !== undefined) return sitemap
    const index: Sitemap = { kind: "index", locations: yield* sitemapsOf(url), modified: new Map() }
    return index
  })
}

/** The contents of the sitemaps: pages to read in order, and skipped ones. */
interface Listed {
  readonly pages: Array<Address>
  readonly skipped: Array<readonly [Address, SkipReason]>
}

/**
 * Pages of the sitemap and of those it lists, in order. A listed sitemap that fails is skipped if others can be read.
 */
const pagesOf = (
  root: Sitemap,
  name: string,
  {
    budget,
    journal,
    limit,
    verdict
  }: { budget: WorkBudget; journal: Journal; limit: number; verdict: (url: string) => Verdict }
) =>
  Effect.gen(function* () {
    const listed: Listed = { pages: [], skipped: [] }
    const failures: Array<readonly [Address, ReaderError]> = []
    const seen = makeDuplicateDetector()
    let files = 0
    const offer = (address: Address) => {
      const { reason } = verdict(address.url)
      const skipReason = reason ?? (listed.pages.length >= limit ? "page_limit" : null)
      if (skipReason === null) listed.pages.push(address)
      else if (listed.skipped.length < maxSkips) listed.skipped.push([address, skipReason])
    }
    const offerAll = (
      urls: ReadonlyArray<string>,
      parent: string,
      listedAt: (url: string) => string | null
    ) =>
      Effect.gen(function* () {
        for (const url of urls) {
          if (budget.isYieldDue) yield* budget.yieldIfDue
          if (seen.markSeen(url)) offer({ url, depth: 0, parent, listedAt: listedAt(url) })
        }
      })
    /** If a sitemap is temporarily unavailable, its previous list is used. */
    const offerLastList = (parent: string) =>
      offerAll(journal.foundThrough(parent), parent, (url) => journal.known(url)?.listedAt ?? null)
    const readPages = (
      sitemap: Sitemap,
      parent: string,
      depth: number
    ): Effect.Effect<void, never, Effect.Effect.Context<ReturnType<typeof loadSitemap>>> =>
      Effect.gen(function* () {
        if (sitemap.kind === "pages") {
          return yield* offerAll(sitemap.locations, parent, (url) => sitemap.modified.get(url) ?? null)
        }
        for (const url of sitemap.locations) {
          if (listed.pages.length >= limit || files >= maxFiles || depth > maxDepth) return
          if (!seen.markSeen(url)) continue
          files++
          const file = yield* Effect.either(loadSitemap(url))
          if (Either.isRight(file)) yield* readPages(file.right, url, depth + 1)
          else {
            failures.push([{ url, depth: 0, parent }, file.left])
            if (file.left.retryable) yield* offerLastList(url)
          }
        }
      })
    yield* readPages(root, name, 1)
    return { ...listed, failures }
  })

const nothingSelected = permanentError(
  "nothing_selected",
  "The sitemap lists no page, or none that includePatterns, excludePatterns and noindex let in."
)

const noPageRead = (pages: number, { code, message, retryable }: ReaderError): ReaderError =>
  new ReaderError({
    code,
    message: `None of the sitemap's ${pages} pages could be read. The first: ${message}`,
    retryable
  })

const readSitemap = (config: typeof SitemapConfig.Type, options: ReadOptions) => {
  const { journal = noJournal, maxPages: limit = maxPages } = options
  const budget = new WorkBudget()
  const verdict = makeUrlFilter(config, budget)
  let failure = nothingSelected
  const documents = Effect.gen(function* () {
    const sites = yield* makeSites
    const detector = makeDuplicateDetector()
    const visits = makeVisits({ sites, journal, detector, verdict, mayRedirectTo: () => true })
    const name = config.sitemapUrl ?? config.url ?? ""
    const root = yield* firstSitemap(config).pipe(
      Effect.tapError((error) => visits.recordFailure({ url: name, depth: 0, parent: null }, error))
    )
    const { pages, skipped, failures } = yield* pagesOf(root, name, { budget, journal, limit, verdict })
    for (const [address, error] of failures) yield* visits.recordFailure(address, error)
    if (pages.length === 0) failure = failures[0]?.[1] ?? nothingSelected
    let settled = 0
    const recordSkipped = Effect.suspend(() =>
      Effect.forEach(skipped, ([address, reason]) => visits.skip(address, reason), { discard: true })
    )
    return visits.visitAll(pages).pipe(
      Stream.mapEffect(({ address, result }) =>
        Effect.gen(function* () {
          if (Either.isLeft(result) && failure === nothingSelected)
            failure = noPageRead(pages.length, result.left)
          const { document } = yield* visits.settle(address, result)
          yield* journal.progress(++settled, pages.length)
          return document
        })
      ),
      Stream.filter((document) => document !== null),
      Stream.ensuring(recordSkipped)
    )
  })
  return { documents: Stream.unwrap(documents), failure: () => failure } as const
}

export const reader: Reader<typeof SitemapConfig.Type> = {
  read: (config, options) => {
    let failure = () => nothingSelected
    return failIfEmpty(
      options,
      (counting) => {
        const run = readSitemap(config, counting)
        failure = run.failure
        return run.documents
      },
      () => failure()
    )
  }
}
