import * as SqlClient from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { IncomingHttpHeaders } from "node:http"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { type Answer, layerReaders, serveSite } from "../../readers/Site.ts"
import * as Fixtures from "../../Fixtures.ts"
import { reset, TestDatabase } from "../../TestDatabase.ts"
import { addSource, embedAll, layerIngest, report, sync, told } from "./IngestHarness.ts"

const live = Layer.merge(layerIngest, layerReaders)

const sections = 10
const inSection = 50

const words = (seed: number, count: number): string =>
  Array.from({ length: count }, (_, at) => `w${(seed * 7_919 + at * 104_729) % 99_991}`).join(" ")

const article = (title: string, text: string, links: ReadonlyArray<string> = [], head = ""): Answer => ({
  headers: { "content-type": "text/html" },
  body: `<html><head><title>${title}</title>${head}</head><body><main><h1>${title}</h1><p>${text}</p>
    ${links.map((href) => `<a href="${href}">more</a>`).join(" ")}</main></body></html>`
})

const upTo = (count: number) => Array.from({ length: count }, (_, at) => at)

/** A site with everything that crawlers meet: more than five hundred pages and traps without end. */
const bigSite =
  (changed: { value: number }) =>
  (path: string): Answer | undefined => {
    const [, kind, first = "0", second = "0"] = /^\/([a-z]+)\/?(\d+)?-?(\d+)?/.exec(path) ?? []
    const section = Number(first)
    const number = Number(second)
    const name = `${first}-${second}`
    const text = (n: number) => words(section * 1_000 + n, 90)
    switch (kind) {
      case undefined:
        return path === "/"
          ? article("Home", words(1, 40), [
              ...upTo(sections).map((n) => `/section/${n}`),
              "/old",
              "/loop",
              "/calendar/0",
              "/private/0",
              "/broken",
              "/gone",
              "/slow",
              "/bad.pdf",
              "/logo.png",
              "/draft/1",
              "https://elsewhere.example/",
              "mailto:a@b.example"
            ])
          : undefined
      case "robots":
        return { body: "User-agent: *\nDisallow: /private/\n" }
      case "section":
        return article(`Section ${first}`, text(900), [
          ...upTo(inSection).map((n) => `/page/${first}-${n}`),
          `/page/${first}-0?utm_source=x`,
          `/copy/${first}-1`,
          `/near/${first}-2`,
          `/moved/${first}-3`,
          "/",
          "/section/0"
        ])
      case "page": {
        const canonical = `<link rel="canonical" href="/page/${name}">`
        const edition = path === "/page/3-7" ? changed.value : 0
        return article(`Page ${name}`, `${text(number)} edition${edition}`, ["/"], canonical)
      }
      case "copy":
        return article(`Page ${name}`, `${text(number)} edition0`, ["/"])
      case "near":
        return article(`Page ${name}`, `${text(number)} ${text(number)} ${text(number)} edition0 printed`, [
          "/"
        ])
      case "moved":
        return { status: 301, headers: { location: `/target/${name}` } }
      case "target":
        return article(`Target ${name}`, words(section + 77_000, 80))
      case "old":
        return { status: 302, headers: { location: "/" } }
      case "loop":
        return { status: 302, headers: { location: "/loop" } }
      case "calendar":
        return article(`Calendar ${first}`, words(section + 50_000, 70), [`/calendar/${section + 1}`])
      case "private":
        return article("Private", words(60_000, 70))
      case "draft":
        return article("Draft", words(61_000, 70))
      case "broken":
        return { status: 500 }
      case "slow":
        return { ...article("Slow", words(62_000, 70)), delay: 500 }
      case "bad":
        return { body: "%PDF-1.4 broken" }
      default:
        return undefined
    }
  }

/** The same with validators: an answer that is as it was is 304 and has no body. */
const withTags =
  (site: (path: string) => Answer | undefined) =>
  (path: string, headers: IncomingHttpHeaders): Answer | undefined => {
    const answer = site(path)
    if (answer?.body === undefined || path === "/robots.txt") return answer
    const etag = `"${Buffer.from(answer.body).length}-${path}-${/edition(\d+)/.exec(String(answer.body))?.[1] ?? ""}"`
    if (headers["if-none-match"] === etag) return { status: 304, headers: { etag } }
    return { ...answer, headers: { ...answer.headers, etag } }
  }

const count = (table: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ readonly n: number }>`select count(*)::int as n from ${sql(table)}`
    return row?.n ?? 0
  })

const expected: ReadonlyArray<readonly [string, string]> = [
  ["/", "indexed"],
  ["/section/4", "indexed"],
  ["/page/4-49", "indexed"],
  ["/page/4-0?utm_source=x", "skipped:same_address"],
  ["/copy/4-1", "skipped:same_content"],
  ["/moved/4-3", "redirected:redirected"],
  ["/target/4-3", "indexed"],
  ["/old", "redirected:redirected"],
  ["/loop", "failed:fetch_too_many_redirects"],
  ["/calendar/0", "indexed"],
  ["/calendar/4", "indexed"],
  ["/calendar/5", "skipped:beyond_max_depth"],
  ["/private/0", "skipped:robots_disallowed"],
  ["/draft/1", "skipped:excluded"],
  ["/broken", "failed:status_500"],
  ["/gone", "failed:status_404"],
  ["/slow", "indexed"],
  ["/bad.pdf", "failed:malformed"],
  ["/logo.png", "skipped:asset"],
  ["https://elsewhere.example/", "skipped:other_origin"]
]

layer(TestDatabase, { timeout: "60 seconds", excludeTestServices: true })("A crawl of a large site", (it) => {
  it.scoped(
    "reports the result for every address; a second sync reads and embeds nothing; force reads everything",
    () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const edition = { value: 0 }
        const site = yield* serveSite(() => withTags(bigSite(edition)))
        const config = { url: `${site.origin}/`, maxDepth: 5, excludePatterns: ["*/draft/*"] }
        const source = yield* addSource(scope, "URL", config)

        yield* sync(scope, source)
        const sources = yield* SourceStore
        expect(yield* sources.find(scope, source)).toMatchObject({ status: "READY", lastError: null })
        const first = yield* report(scope, source, site.origin)
        expect(expected.map(([path]) => [path, told(first.get(path))])).toEqual(expected)
        for (const s of upTo(sections))
          for (const n of upTo(inSection)) expect(told(first.get(`/page/${s}-${n}`))).toBe("indexed")
        expect(first.get("/page/4-49")).toMatchObject({
          depth: 2,
          parent: `${site.origin}/section/4`,
          httpStatus: 200
        })
        expect(first.get("/gone")).toMatchObject({
          httpStatus: 404,
          message: "The page answered 404. Check the address."
        })
        expect(first.get("/moved/4-3")?.target).toBe(`${site.origin}/target/4-3`)
        expect(first.get("/copy/4-1")?.target).toBe(`${site.origin}/page/4-1`)
        const documents = yield* count("documents")
        expect(documents).toBe([...first.values()].filter(({ outcome }) => outcome === "indexed").length)
        expect(documents).toBeGreaterThan(520)
        const chunks = yield* embedAll
        const ids = yield* chunkIds

        const sent = site.sent()
        const again = yield* sync(scope, source)
        expect(site.sent() - sent).toBeLessThan(200)
        const second = yield* report(scope, source, site.origin)
        expect(yield* embedAll).toBe(0)
        expect(yield* chunkIds).toEqual(ids)
        expect(yield* count("documents")).toBe(documents)
        expect(told(second.get("/page/4-49"))).toBe("unchanged:not_modified")
        expect(told(second.get("/copy/4-1"))).toBe("skipped:same_content")
        expect(told(second.get("/target/4-3"))).toBe("unchanged:not_modified")
        expect([...second.keys()].toSorted()).toEqual([...first.keys()].toSorted())
        const jobs = yield* IngestionJobStore
        expect(yield* Effect.flatten(jobs.find(scope, again))).toMatchObject({
          status: "SUCCEEDED",
          progress: 100,
          chunksCreated: chunks
        })

        edition.value = 1
        yield* sync(scope, source)
        const third = yield* report(scope, source, site.origin)
        expect([...third].filter(([, { outcome }]) => outcome === "indexed").map(([path]) => path)).toEqual([
          "/page/3-7"
        ])
        expect(yield* embedAll).toBe(1)
        expect(yield* count("documents")).toBe(documents)

        yield* sync(scope, source, { force: true })
        const fourth = yield* report(scope, source, site.origin)
        expect([...fourth.values()].filter(({ outcome }) => outcome === "unchanged")).toEqual([])
        expect(yield* embedAll).toBe(chunks)
      }).pipe(Effect.provide(live)),
    300_000
  )
})

const chunkIds = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly id: string }>`
    select c.id from chunks c join sources s on s.id = c.source_id and s.live_generation = c.generation
    where c.version is not null order by c.id`
  return rows.map(({ id }) => id)
})
