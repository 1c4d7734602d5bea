import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SourceId } from "../../../src/domain/Ids.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { Crawls } from "../../../src/usecases/knowledge/Crawls.ts"
import { type Answer, layerReaders, page, serveSite } from "../../readers/Site.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { addSource, embedAll, layerIngest, report, sync, told } from "./IngestHarness.ts"

const live = Crawls.Default.pipe(Layer.provideMerge(Layer.merge(layerIngest, layerReaders)))

/** Home and five pages, each with an ETag of its own. */
const smallSite = (path: string, etag?: string): Answer | undefined => {
  const name = /^\/([a-e]?)$/.exec(path)?.[1]
  if (name === undefined) return path === "/private" ? page("Private") : undefined
  if (etag === `"${path}"`) return { status: 304 }
  const links = path === "/" ? ["/a", "/b", "/c", "/d", "/e", "/gone", "/private", "/skip/1"] : []
  const answer = page(`Page ${name}`, links)
  return { ...answer, headers: { ...answer.headers, etag: `"${path}"` } }
}
const serve = serveSite(
  () => (path, headers) =>
    path === "/robots.txt"
      ? { body: "User-agent: *\nDisallow: /private" }
      : smallSite(path, headers["if-none-match"])
)

eachEngineLive("The crawl report", (it) => {
  it.scoped(
    "is read page by page in the order of the crawl, by outcome, for the tenant's own sources only",
    () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const site = yield* serve
        const config = { url: `${site.origin}/`, maxDepth: 1, excludePatterns: ["*/skip/*"] }
        const source = yield* addSource(scope, "URL", config)
        const crawls = yield* Crawls
        expect(yield* crawls.report(scope, source, { limit: 5 })).toEqual({
          job: null,
          entries: [],
          next: null
        })
        yield* sync(scope, source)
        const first = yield* crawls.report(scope, source, { limit: 4 })
        const second = yield* crawls.report(scope, source, { limit: 4, after: first.next ?? "" })
        const third = yield* crawls.report(scope, source, { limit: 4, after: second.next ?? "" })
        const paths = [first, second, third].flatMap(({ entries }) =>
          entries.map(({ url }) => new URL(url).pathname)
        )
        expect(paths).toEqual(["/", "/a", "/b", "/c", "/d", "/e", "/gone", "/private", "/skip/1"])
        expect(third.next).toBeNull()
        expect(first.job).toMatchObject({ type: "INGEST", status: "SUCCEEDED", attemptErrors: [] })
        const failed = yield* crawls.report({ tenantId: scope.tenantId }, source, {
          limit: 4,
          outcome: "failed"
        })
        expect(failed.entries.map(({ url }) => url)).toEqual([`${site.origin}/gone`])
        const stranger = yield* Fixtures.agent()
        for (const [who, id] of [
          [stranger, source],
          [{ tenantId: stranger.tenantId }, source],
          [scope, SourceId.make("src_nothing")]
        ] as const)
          expect((yield* Effect.flip(crawls.report(who, id, { limit: 1 })))._tag).toBe("NOT_FOUND")
      }).pipe(Effect.provide(live))
  )

  it.scoped("is kept for the latest job and for the live documents, and is deleted with its source", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const site = yield* serve
      const source = yield* addSource(scope, "URL", { url: `${site.origin}/`, maxDepth: 1 })
      const generations = Effect.map(
        sql<{ readonly n: number }>`select count(distinct generation)::int as n from crawl_entries`,
        ([row]) => row?.n
      )
      yield* sync(scope, source)
      yield* embedAll
      yield* sync(scope, source)
      expect(yield* generations).toBe(1)
      yield* sql`update sources set config = ${JSON.stringify({ url: `${site.origin}/gone` })}::jsonb`
      yield* sync(scope, source)
      expect(yield* generations).toBe(2)
      yield* sync(scope, source)
      expect(yield* generations).toBe(2)
      expect(told((yield* report(scope, source, site.origin)).get("/gone"))).toBe("failed:status_404")
      yield* sql`update sources set config = ${JSON.stringify({ url: `${site.origin}/`, maxDepth: 1 })}::jsonb`
      yield* sync(scope, source)
      expect(told((yield* report(scope, source, site.origin)).get("/a"))).toBe("unchanged:not_modified")
      expect(yield* embedAll).toBe(0)
      yield* sql`delete from sources`
      expect(yield* generations).toBe(0)
    }).pipe(Effect.provide(live))
  )

  it.scoped("contains the error of each attempt with its code; the last one is the source's", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      let asked = 0
      const site = yield* serveSite(
        () => (path) => (path === "/robots.txt" ? undefined : { status: asked++ === 0 ? 503 : 500 })
      )
      const source = yield* addSource(scope, "URL", { url: `${site.origin}/` })
      yield* sync(scope, source, { attempts: 3 })
      const crawls = yield* Crawls
      const { job, entries } = yield* crawls.report(scope, source, { limit: 9 })
      expect(job?.attemptErrors.map(({ error }) => error)).toEqual([
        "status_503: The page answered 503.",
        "status_500: The page answered 500.",
        "status_500: The page answered 500."
      ])
      expect(entries.map(told)).toEqual(["failed:status_500"])
      const sources = yield* SourceStore
      expect(yield* sources.find(scope, source)).toMatchObject({
        status: "FAILED",
        lastError: "status_500: The page answered 500."
      })
    }).pipe(Effect.provide(live))
  )
})

eachEngineLive("The dry run", (it) => {
  it.scoped("with urls applies only the patterns, names the pattern, and fetches nothing", () =>
    Effect.gen(function* () {
      const crawls = yield* Crawls
      const config = {
        url: "https://a.example/",
        includePatterns: ["*/docs/*", "/blog/*"],
        excludePatterns: ["*/old/*"]
      }
      const table: ReadonlyArray<readonly [string, string | null, string | null]> = [
        ["https://a.example/docs/x", null, "*/docs/*"],
        ["https://a.example/blog/x#part", null, "/blog/*"],
        ["https://a.example/docs/old/x", "excluded", "*/old/*"],
        ["https://a.example/shop", "not_included", null],
        ["https://b.example/docs/x", "other_origin", null],
        ["http://a.example/docs/x", "other_origin", null],
        ["https://a.example/docs/x.png", "asset", null],
        ["ftp://a.example/docs/x", "invalid_url", null],
        ["docs/x", "invalid_url", null]
      ]
      const answer = yield* crawls.dryRun({ type: "URL", config, urls: table.map(([url]) => url) })
      expect(answer.urls.map(({ url, reason, pattern }) => [url, reason, pattern])).toEqual(table)
      expect(answer.urls.map(({ included }) => included)).toEqual(table.map(([, reason]) => reason === null))
    }).pipe(Effect.provide(live))
  )

  it.scoped(
    "does not block other requests while it compares, and lists addresses that were not compared",
    () =>
      Effect.gen(function* () {
        const crawls = yield* Crawls
        const excludePatterns = Array.from({ length: 100 }, () => `*${"a".repeat(1_015)}?b1*`)
        const urls = Array.from({ length: 20 }, (_, at) => `https://a.example/${at}/${"a".repeat(1_925)}`)
        let served = 0
        const serve = () => setImmediate(() => void (served++ < 1_000_000 && serve()))
        serve()
        const answer = yield* crawls.dryRun({
          type: "URL",
          config: { url: "https://a.example/", excludePatterns },
          urls
        })
        const turns = served
        served = 1_000_000
        expect(answer.urls.map(({ url }) => url)).toEqual(urls)
        const reasons = answer.urls.map(({ reason }) => reason)
        expect(turns).toBeGreaterThanOrEqual(reasons.filter((reason) => reason === null).length)
        expect(reasons.slice(0, 5)).toEqual([null, null, null, null, null])
        expect(reasons.at(-1)).toBe("match_limit")
        expect(answer.complete).toBe(false)
      }).pipe(Effect.provide(live))
  )

  it.scoped("compares a hundred ordinary patterns with a thousand addresses", () =>
    Effect.gen(function* () {
      const crawls = yield* Crawls
      const excludePatterns = Array.from(
        { length: 100 },
        (_, at) => `*/${"section-of-the-shop/".repeat(7)}?${at}/*`
      )
      const urls = Array.from({ length: 1_000 }, (_, at) => `https://a.example/section-of-the-shop/${at}`)
      const { complete, urls: lines } = yield* crawls.dryRun({
        type: "URL",
        config: { url: "https://a.example/", excludePatterns },
        urls
      })
      expect({ complete, included: lines.filter(({ included }) => included).length }).toEqual({
        complete: true,
        included: 1_000
      })
    }).pipe(Effect.provide(live))
  )

  it.scoped("without urls crawls a few pages, gives the reason for each, and stores nothing", () =>
    Effect.gen(function* () {
      yield* reset
      const site = yield* serve
      const crawls = yield* Crawls
      const config = {
        url: `${site.origin}/`,
        maxDepth: 1,
        excludePatterns: ["*/skip/*"],
        includePatterns: ["*"]
      }
      const { urls, complete, error } = yield* crawls.dryRun({ type: "URL", config })
      expect({ complete, error }).toEqual({ complete: true, error: null })
      const lines = new Map(urls.map((line) => [new URL(line.url).pathname, line]))
      expect(lines.get("/a")).toMatchObject({
        included: true,
        depth: 1,
        robots: "allowed",
        pattern: "*",
        httpStatus: 200
      })
      expect(lines.get("/gone")).toMatchObject({ included: false, reason: "status_404", httpStatus: 404 })
      expect(lines.get("/private")).toMatchObject({ included: false, robots: "disallowed" })
      expect(lines.get("/skip/1")).toMatchObject({
        included: false,
        reason: "excluded",
        pattern: "*/skip/*",
        robots: null
      })
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select 1 from crawl_entries union all select 1 from documents`).toEqual([])
    }).pipe(Effect.provide(live))
  )

  it.scoped("gives the reason for a page that asks not to be indexed", () =>
    Effect.gen(function* () {
      const unlisted = page("Unlisted", [], '<meta name="robots" content="noindex">')
      const site = yield* serveSite(() => ({ "/": page("Home", ["/unlisted"]), "/unlisted": unlisted }))
      const crawls = yield* Crawls
      const { urls } = yield* crawls.dryRun({ type: "URL", config: { url: `${site.origin}/`, maxDepth: 1 } })
      expect(urls.find(({ url }) => url.endsWith("/unlisted"))).toMatchObject({
        included: false,
        reason: "noindex",
        message: "The page asks not to be indexed (noindex). A URL source that names it reads it.",
        robots: "allowed",
        httpStatus: 200
      })
    }).pipe(Effect.provide(live))
  )

  it.scoped("fetches at most fifty pages, and reports that there are more", () =>
    Effect.gen(function* () {
      const links = Array.from({ length: 80 }, (_, at) => `/p${at}`)
      const site = yield* serveSite(() => (path) => (path === "/robots.txt" ? undefined : page(path, links)))
      const crawls = yield* Crawls
      const { urls, complete } = yield* crawls.dryRun({
        type: "URL",
        config: { url: `${site.origin}/`, maxDepth: 5 }
      })
      expect(complete).toBe(false)
      expect(urls.filter(({ included }) => included).length).toBe(50)
      expect(urls.filter(({ reason }) => reason === "page_limit").length).toBe(31)
      expect(site.asked.length).toBe(51)
    }).pipe(Effect.provide(live))
  )

  it.scoped("of an unreadable source gives the reason", () =>
    Effect.gen(function* () {
      const site = yield* serveSite(() => ({}))
      const crawls = yield* Crawls
      const { error } = yield* crawls.dryRun({
        type: "SITEMAP",
        config: { sitemapUrl: `${site.origin}/sitemap.xml` }
      })
      expect(error).toBe("status_404: The sitemap answered 404. Check the address.")
    }).pipe(Effect.provide(live))
  )
})
