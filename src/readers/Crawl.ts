/** Reads a site from one page on: breadth first, within its origin, within the limits of contract 7. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import { makeFolding } from "./Folding.ts"
import { type Patterns, selector } from "./Glob.ts"
import { makeSites, type Page, readPage, type Sites, tryPage } from "./Page.ts"
import { type ReadDocument, ReaderError, type ReaderServices, type ReadOptions } from "./Reader.ts"

/** Most pages that one run asks for. */
export const maxPages = 1_000
/** Pages at a time; a host gives its own places to all of them. */
export const concurrency = 4

export interface CrawlPlan extends Patterns {
  readonly url: string
  /** 0 reads the page alone. */
  readonly maxDepth: number
}

/** What no reader can read, told by the address: not worth a request. */
const assets =
  /\.(?:avif|bmp|css|dmg|eot|exe|gif|gz|ico|iso|jpe?g|js|mjs|mov|mp[34]|ogg|otf|png|rar|rss|svg|tar|tgz|tiff?|ttf|wav|web[mp]|woff2?|xml|zip|7z)$/i

const leftOut = new ReaderError({
  code: "nothing_selected",
  message:
    "No readable page is left by includePatterns and excludePatterns. Both are compared with the whole URL.",
  retryable: false
})

type Documents = Stream.Stream<ReadDocument, ReaderError, ReaderServices>

const makeCrawl = (sites: Sites, { maxDepth, ...patterns }: Omit<CrawlPlan, "url">, start: Page) => {
  const { origin } = new URL(start.url)
  const within = (url: string) => new URL(url).origin === origin
  const selected = selector(patterns)
  const folding = makeFolding()
  let asked = 1
  let emitted = 0

  /** Addresses worth a visit among the links of a level. */
  const follow = (links: ReadonlyArray<string>): ReadonlyArray<string> =>
    links.filter(
      (url) => within(url) && !assets.test(new URL(url).pathname) && selected(url) && folding.isNew(url)
    )

  const keep = (document: ReadDocument): ReadonlyArray<ReadDocument> => {
    if (!folding.isFirst(document)) return []
    emitted++
    return [document]
  }

  const level = (depth: number, addresses: ReadonlyArray<string>): Documents => {
    const frontier = addresses.slice(0, maxPages - asked)
    asked += frontier.length
    if (frontier.length === 0) return Stream.empty
    const found: Array<string> = []
    return Stream.fromIterable(frontier).pipe(
      Stream.mapEffect((url) => tryPage(sites, url, within), { concurrency }),
      Stream.mapConcat((page) => {
        if (Either.isLeft(page)) return []
        if (depth < maxDepth) for (const link of follow(page.right.links)) found.push(link)
        return keep(page.right.document)
      }),
      Stream.concat(Stream.suspend(() => level(depth + 1, found)))
    )
  }

  folding.isNew(start.url)
  const first = selected(start.url) ? keep(start.document) : []
  return Stream.fromIterable(first).pipe(
    Stream.concat(Stream.suspend(() => (maxDepth > 0 ? level(1, follow(start.links)) : Stream.empty))),
    Stream.concat(Stream.suspend(() => (emitted === 0 ? Stream.fail(leftOut) : Stream.empty)))
  )
}

/**
 * The documents of the site. The start page must be readable; it is followed even where the patterns leave it out. Any
 * other page that fails is left out.
 */
export const crawl = ({ url, ...plan }: CrawlPlan, { maxDocuments }: ReadOptions): Documents =>
  Stream.unwrap(
    Effect.gen(function* () {
      const sites = yield* makeSites
      const start = yield* readPage(sites, url)
      return makeCrawl(sites, plan, start)
    })
  ).pipe(Stream.take(maxDocuments))
