/** Source type SITEMAP: sitemaps, indexes of sitemaps and their compressed forms, then their pages (contract 7). */
import { gunzip } from "node:zlib"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Stream from "effect/Stream"
import type { SitemapConfig } from "../domain/Source.ts"
import { concurrency, maxPages } from "./Crawl.ts"
import { fetchOk, request } from "./Fetch.ts"
import { makeFolding } from "./Folding.ts"
import { selector } from "./Glob.ts"
import { makeSites, tryPage } from "./Page.ts"
import { type Reader, ReaderError } from "./Reader.ts"
import { parseRobots } from "./Robots.ts"
import { parseSitemap, type Sitemap } from "./SitemapXml.ts"

/** The protocol allows 50 MB a file. */
const maxBytes = 50 * 1024 * 1024
const maxFiles = 200
const maxDepth = 3

const notASitemap = new ReaderError({
  code: "no_sitemap",
  message:
    "The address holds no sitemap. Give the address of a sitemap.xml, or use a URL source to crawl the site.",
  retryable: false
})
const tooLarge = new ReaderError({
  code: "too_large",
  message: "The compressed sitemap is damaged or unpacks to more than 50 MB.",
  retryable: false
})

/** Compressed files are named `.gz` or not, and served as such or not: their first bytes tell. */
const unpacked = (bytes: Uint8Array): Effect.Effect<Uint8Array, ReaderError> =>
  bytes[0] === 0x1f && bytes[1] === 0x8b
    ? Effect.async((resume) =>
        gunzip(bytes, { maxOutputLength: maxBytes }, (error, result) =>
          resume(error === null ? Effect.succeed(result) : Effect.fail(tooLarge))
        )
      )
    : Effect.succeed(bytes)

const load = (url: string) =>
  fetchOk("sitemap", url, { maxBytes }).pipe(
    Effect.flatMap(({ body }) => unpacked(body)),
    Effect.map((bytes) => parseSitemap(new TextDecoder().decode(bytes)))
  )

const loadExisting = (url: string) =>
  Effect.flatMap(load(url), (sitemap) =>
    sitemap === undefined ? Effect.fail(notASitemap) : Effect.succeed(sitemap)
  )

/** The sitemaps that a site names in robots.txt, else the customary place. */
const sitemapsOf = (url: string) =>
  request(new URL("/robots.txt", url).href, { maxBytes: 5 * 1024 * 1024 }).pipe(
    Effect.map(({ status, body }) =>
      status === 200 ? parseRobots(new TextDecoder().decode(body)).sitemaps : []
    ),
    Effect.orElseSucceed(() => []),
    Effect.map((named) =>
      named.filter((address) => URL.canParse(address)).map((address) => new URL(address).href)
    ),
    Effect.map((named) => (named.length > 0 ? named : [new URL("/sitemap.xml", url).href]))
  )

/** `url` may be the sitemap itself, or a page of the site that has one. */
const firstSitemap = ({ sitemapUrl, url }: typeof SitemapConfig.Type) => {
  if (sitemapUrl !== undefined || url === undefined) return loadExisting(sitemapUrl ?? "")
  return Effect.gen(function* () {
    const sitemap = yield* load(url)
    if (sitemap !== undefined) return sitemap
    const index: Sitemap = { kind: "index", locations: yield* sitemapsOf(url) }
    return index
  })
}

/** Pages of the sitemap and of those it lists, in order; a listed sitemap that fails is left out while others can be read. */
const pagesOf = (root: Sitemap, wanted: (url: string) => boolean) =>
  Effect.gen(function* () {
    const pages: Array<string> = []
    const seen = makeFolding()
    let files = 0
    let failure: ReaderError | undefined
    const take = (
      sitemap: Sitemap,
      depth: number
    ): Effect.Effect<void, never, Effect.Effect.Context<ReturnType<typeof loadExisting>>> =>
      Effect.gen(function* () {
        if (sitemap.kind === "pages") {
          for (const url of sitemap.locations) if (wanted(url) && seen.isNew(url)) pages.push(url)
          return
        }
        for (const url of sitemap.locations) {
          if (pages.length >= maxPages || files >= maxFiles || depth > maxDepth) return
          if (!seen.isNew(url)) continue
          files++
          const listed = yield* Effect.either(loadExisting(url))
          if (Either.isLeft(listed)) failure ??= listed.left
          else yield* take(listed.right, depth + 1)
        }
      })
    yield* take(root, 1)
    if (pages.length > 0) return pages.slice(0, maxPages)
    return yield* (
      failure ??
      new ReaderError({
        code: "nothing_selected",
        message: "The sitemap lists no page, or none that includePatterns and excludePatterns let in.",
        retryable: false
      })
    )
  })

const noneOf = (pages: number, { code, message, retryable }: ReaderError): ReaderError =>
  new ReaderError({
    code,
    message: `None of the sitemap's ${pages} pages could be read. The first: ${message}`,
    retryable
  })

export const reader: Reader<typeof SitemapConfig.Type> = {
  read: (config, { maxDocuments }) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const sites = yield* makeSites
        const pages = yield* pagesOf(yield* firstSitemap(config), selector(config))
        const folding = makeFolding()
        let emitted = 0
        let failure: ReaderError | undefined
        return Stream.fromIterable(pages).pipe(
          Stream.mapEffect((url) => tryPage(sites, url), { concurrency }),
          Stream.mapConcat((page) => {
            if (Either.isLeft(page)) {
              failure ??= page.left
              return []
            }
            emitted++
            return folding.isFirst(page.right.document) ? [page.right.document] : []
          }),
          Stream.concat(
            Stream.suspend(() =>
              emitted === 0 && failure !== undefined
                ? Stream.fail(noneOf(pages.length, failure))
                : Stream.empty
            )
          )
        )
      })
    ).pipe(Stream.take(maxDocuments))
}
