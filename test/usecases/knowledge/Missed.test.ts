import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { strToU8, zipSync } from "fflate"
import { DocumentParser, ParseError } from "../../../src/capabilities/DocumentParser.ts"
import { ArtifactStore } from "../../../src/capabilities/ArtifactStore.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import type { SourceId } from "../../../src/domain/Ids.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { type Answer, layerReaders, page, serveSite } from "../../readers/Site.ts"
import * as Fixtures from "../../Fixtures.ts"
import { writePdf } from "../../fixtures/documents/PdfWriter.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { addSource, embedAll, layerIngest, report, sync, told } from "./IngestHarness.ts"

const live = Layer.merge(layerIngest, layerReaders)

/** Documents that answer, each with what its chunks are called. */
const answering = (source: SourceId, origin: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{ readonly uri: string; readonly chunks: string }>`
      select d.uri, string_agg(c.id, ' ' order by c.ordinal) as chunks
      from documents d join sources s on s.id = d.source_id and s.live_generation = d.generation
      join chunks c on c.document_id = d.id where s.id = ${source} group by d.uri`
    return new Map(rows.map(({ chunks, uri }) => [uri.replace(origin, ""), chunks]))
  })

const stateOf = (scope: AgentScope, source: SourceId) =>
  Effect.gen(function* () {
    const sources = yield* SourceStore
    const found = yield* sources.find(scope, source)
    return `${found?.status}: ${found?.lastError}`
  })

/** A site whose answers a test changes from one sync to the next. */
const serveChanging = (site: (origin: string) => Readonly<Record<string, Answer>>) =>
  Effect.gen(function* () {
    const changes: Record<string, Answer> = {}
    const served = yield* serveSite((origin) => ({ ...site(origin), ...changes }))
    return { ...served, changes }
  })

const down: Answer = { status: 503 }
const gone: Answer = { status: 404 }
const to = (location: string): Answer => ({ status: 301, headers: { location } })

eachEngineLive("A page that was read the last time", (it) => {
  it.scoped("keeps its document while the service has no memory to read it", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const site = yield* serveChanging(() => ({ "/": page("Home", ["/a"]), "/a": page("A") }))
      const source = yield* addSource(scope, "URL", { url: `${site.origin}/`, maxDepth: 1 })
      yield* sync(scope, source)
      const before = yield* answering(source, site.origin)
      expect([...before.keys()].toSorted()).toEqual(["/", "/a"])
      site.changes["/a"] = page("A, second edition")
      const parser = yield* DocumentParser
      const error = new ParseError({ code: "out_of_memory", message: "It takes too much memory." })
      yield* Effect.provideService(sync(scope, source), DocumentParser, {
        parse: (request) =>
          request.url?.endsWith("/a") === true ? Effect.fail(error) : parser.parse(request)
      })
      expect(yield* stateOf(scope, source)).toBe("READY: null")
      expect(yield* answering(source, site.origin)).toEqual(before)
      yield* sync(scope, source)
      expect(yield* answering(source, site.origin)).not.toEqual(before)
    }).pipe(Effect.provide(live))
  )

  it.scoped(
    "keeps its document and those found through it after a temporary failure, but not when it is gone",
    () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const site = yield* serveChanging(() => ({
          "/": page("Home", ["/section", "/a", "/b", "/old", "/copy"]),
          "/section": page("Section", ["/deep"]),
          "/deep": page("Deep"),
          "/a": page("A"),
          "/b": page("B"),
          "/copy": page("A"),
          "/old": to("/landing"),
          "/landing": page("Landing", ["/after"]),
          "/after": page("After")
        }))
        const source = yield* addSource(scope, "URL", { url: `${site.origin}/`, maxDepth: 3 })
        yield* sync(scope, source)
        const first = yield* answering(source, site.origin)
        expect([...first.keys()].toSorted()).toEqual([
          "/",
          "/a",
          "/after",
          "/b",
          "/deep",
          "/landing",
          "/section"
        ])
        yield* embedAll

        Object.assign(site.changes, { "/section": down, "/a": down, "/copy": down, "/old": down, "/b": gone })
        // The second time what it goes by is itself what was spared.
        for (const _ of [1, 2]) {
          yield* sync(scope, source)
          expect(yield* stateOf(scope, source)).toBe("READY: null")
          const spared = yield* answering(source, site.origin)
          expect([...spared].toSorted()).toEqual([...first].filter(([uri]) => uri !== "/b").toSorted())
          expect(yield* embedAll).toBe(0)
          const lines = yield* report(scope, source, site.origin)
          expect(
            ["/section", "/a", "/copy", "/old", "/b", "/deep", "/landing", "/after"].map((path) => [
              path,
              told(lines.get(path)),
              lines.get(path)?.target?.replace(site.origin, "") ?? null
            ])
          ).toEqual([
            ["/section", "failed:status_503", "/section"],
            ["/a", "failed:status_503", "/a"],
            ["/copy", "failed:status_503", null],
            ["/old", "failed:status_503", "/landing"],
            ["/b", "failed:status_404", null],
            ["/deep", "unchanged:same_content", "/deep"],
            ["/landing", "unchanged:same_content", "/landing"],
            ["/after", "unchanged:same_content", "/after"]
          ])
        }

        // What redirected and where it led at once, and a page that says something new when it is back.
        Object.assign(site.changes, { "/landing": down, "/a": page("A, second edition") })
        yield* sync(scope, source)
        const back = yield* answering(source, site.origin)
        expect([...back.keys()].toSorted()).toEqual(["/", "/a", "/after", "/deep", "/landing", "/section"])
        expect(back.get("/a")).not.toBe(first.get("/a"))
        expect(back.get("/landing")).toBe(first.get("/landing"))

        // Force asks for everything anew: what cannot be read then is no part of the source.
        yield* sync(scope, source, { force: true })
        expect([...(yield* answering(source, site.origin)).keys()].toSorted()).toEqual(["/", "/a"])
      }).pipe(Effect.provide(live)),
    60_000
  )

  it.scoped(
    "stays while the sitemap that lists it, or every page, is unavailable",
    () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const listing = (paths: ReadonlyArray<string>, origin: string): Answer => ({
          body: `<urlset>${paths.map((path) => `<url><loc>${origin}${path}</loc></url>`).join("")}</urlset>`
        })
        const site = yield* serveChanging((origin) => ({
          "/sitemap.xml": {
            body: `<sitemapindex><sitemap><loc>${origin}/one.xml</loc></sitemap><sitemap><loc>${origin}/two.xml</loc></sitemap></sitemapindex>`
          },
          "/one.xml": listing(["/a", "/b"], origin),
          "/two.xml": listing(["/c", "/d"], origin),
          "/a": page("A"),
          "/b": page("B"),
          "/c": page("C"),
          "/d": page("D")
        }))
        const source = yield* addSource(scope, "SITEMAP", { sitemapUrl: `${site.origin}/sitemap.xml` })
        yield* sync(scope, source)
        const first = yield* answering(source, site.origin)
        expect([...first.keys()].toSorted()).toEqual(["/a", "/b", "/c", "/d"])

        site.changes["/two.xml"] = down
        site.changes["/c"] = down
        yield* sync(scope, source)
        expect(yield* answering(source, site.origin)).toEqual(first)
        const lines = yield* report(scope, source, site.origin)
        expect(["/two.xml", "/c", "/d"].map((path) => told(lines.get(path)))).toEqual([
          "failed:status_503",
          "failed:status_503",
          "unchanged:same_content"
        ])

        for (const path of ["/a", "/b", "/c", "/d"]) site.changes[path] = down
        yield* sync(scope, source)
        expect(yield* stateOf(scope, source)).toMatch(/^FAILED: status_503: None of the sitemap's 4 pages/)
        expect(yield* answering(source, site.origin)).toEqual(first)

        for (const path of ["/a", "/b", "/c", "/d"]) delete site.changes[path]
        site.changes["/two.xml"] = gone
        yield* sync(scope, source)
        expect([...(yield* answering(source, site.origin)).keys()].toSorted()).toEqual(["/a", "/b"])
      }).pipe(Effect.provide(live)),
    60_000
  )
})

eachEngineLive("A ZIP of documents", (it) => {
  it.scoped("keeps the earlier content of a file while the service has no memory to read it", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const store = yield* ArtifactStore
      const parser = yield* DocumentParser
      const archive = zipSync({ "a.txt": strToU8("Words of A."), "b.txt": strToU8("Words of B.") })
      const source = yield* addSource(scope, "BULK_UPLOAD", { artifact: yield* store.put(archive) })
      const without = (name: string) =>
        Effect.provideService(sync(scope, source), DocumentParser, {
          parse: (request) =>
            request.fileName === name
              ? Effect.fail(new ParseError({ code: "out_of_memory", message: "It takes too much memory." }))
              : parser.parse(request)
        })
      yield* without("b.txt")
      expect([...(yield* answering(source, "")).keys()]).toEqual(["upload:a.txt"])
      yield* sync(scope, source)
      const before = yield* answering(source, "")
      expect([...before.keys()].toSorted()).toEqual(["upload:a.txt", "upload:b.txt"])
      // The second time what it goes by is itself what was spared.
      for (const _ of [1, 2]) {
        yield* without("b.txt")
        expect(yield* stateOf(scope, source)).toBe("READY: null")
        expect(yield* answering(source, "")).toEqual(before)
        const lines = yield* report(scope, source, "")
        expect(["upload:a.txt", "upload:b.txt"].map((uri) => told(lines.get(uri)))).toEqual([
          "unchanged:same_content",
          "failed:out_of_memory"
        ])
      }
      yield* sync(scope, source)
      expect(yield* answering(source, "")).toEqual(before)
    }).pipe(Effect.provide(live))
  )

  it.scoped(
    "is read completely up to 2,000 files, and the report lists the files that were left out",
    () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const files = Object.fromEntries(
          Array.from({ length: 1_050 }, (_, at) => [`part ${at}.txt`, strToU8(`The number of part ${at}.`)])
        )
        const store = yield* ArtifactStore
        const archive = zipSync({
          ...files,
          "broken.pdf": strToU8("%PDF-1.4 broken"),
          "inner.zip": zipSync({ "x.txt": strToU8("Archives in archives are not opened.") })
        })
        const source = yield* addSource(scope, "BULK_UPLOAD", { artifact: yield* store.put(archive) })
        yield* sync(scope, source)
        expect(yield* stateOf(scope, source)).toBe("READY: null")
        expect((yield* answering(source, "")).size).toBe(1_050)
        const lines = yield* report(scope, source, "")
        expect(lines.size).toBe(1_052)
        expect(told(lines.get("upload:part 1049.txt"))).toBe("indexed")
        expect(told(lines.get("upload:broken.pdf"))).toBe("failed:malformed")
        expect(lines.get("upload:inner.zip")).toMatchObject({ outcome: "failed", reason: "unsupported_type" })
        expect(lines.get("upload:inner.zip")?.message).toMatch(/^[A-Z].{10,}\.$/u)
      }).pipe(Effect.provide(live)),
    120_000
  )
})

eachEngineLive("A PDF with a damaged page", (it) => {
  it.scoped(
    "is read without it, and the report of each sync names the page, whether it is uploaded or found by a crawl",
    () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const store = yield* ArtifactStore
        const texts = ["The first page.", "The second page.", "The third page."]
        const pages = texts.map((text) => [{ text }])
        const body = writePdf(pages, { damagedPage: 2 })
        const answer: Answer = { headers: { etag: '"1"' }, body }
        const site = yield* serveSite(() => (path, headers) => {
          if (path === "/") return page("Home", ["/a.pdf"])
          if (path !== "/a.pdf") return undefined
          return headers["if-none-match"] === '"1"' ? { status: 304 } : answer
        })
        const url = yield* addSource(scope, "URL", { url: `${site.origin}/`, maxDepth: 1 })
        const config = { artifact: yield* store.put(body), fileName: "a.pdf" }
        const file = yield* addSource(scope, "FILE", config)
        const message = "The file is damaged. Pages that could not be read completely: 2."
        for (const outcome of ["indexed", "unchanged"] as const)
          for (const [source, address] of [
            [url, "/a.pdf"],
            [file, "upload:a.pdf"]
          ] as const) {
            yield* sync(scope, source)
            expect(yield* stateOf(scope, source)).toBe("READY: null")
            const lines = yield* report(scope, source, source === url ? site.origin : "")
            expect(lines.get(address)).toMatchObject({ outcome, reason: "incomplete", message })
          }
      }).pipe(Effect.provide(live)),
    120_000
  )
})
