import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { gzipSync } from "node:zlib"
import type { SitemapConfig } from "../../src/domain/knowledge/Source.ts"
import { read } from "../../src/readers/Readers.ts"
import { sitemapSteps } from "../../src/readers/SitemapXml.ts"
import { resultOf } from "../ResultOf.ts"
import { layerReaders, page, serveSite } from "./Site.ts"

const parseSitemap = (text: string) => resultOf(sitemapSteps(text))

const titles = (config: typeof SitemapConfig.Type) =>
  read({ type: "SITEMAP", config }, { maxDocuments: 1_000 }).pipe(
    Stream.runCollect,
    Effect.map((found) => Chunk.toReadonlyArray(found).map(({ title }) => title))
  )

const test = (
  sentence: string,
  body: Effect.Effect<void, unknown, Scope.Scope | Layer.Layer.Success<typeof layerReaders>>
) => it.live(sentence, () => Effect.scoped(body).pipe(Effect.provide(layerReaders)))

const urlset = (...urls: ReadonlyArray<string>) =>
  `<?xml version="1.0"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${urls
    .map((url) => `<url>\n<loc> ${url} </loc><lastmod>2026-01-01</lastmod></url>`)
    .join("")}</urlset>`
const index = (...urls: ReadonlyArray<string>) =>
  `<sitemapindex>${urls.map((url) => `<sitemap><loc>${url}</loc></sitemap>`).join("")}</sitemapindex>`

const pages = { "/a": page("A"), "/b": page("B"), "/c": page("C"), "/q?x=1&y=2": page("Q") }

describe("A SITEMAP source", () => {
  test(
    "The sitemap's pages are read in its order, each once, and nothing that they link to",
    Effect.gen(function* () {
      const site = yield* serveSite((origin) => ({
        ...pages,
        "/a": page("A", ["/c"]),
        "/sitemap.xml": {
          body: urlset(`${origin}/b`, `${origin}/a#x`, `${origin}/a`, `${origin}/q?x=1&amp;y=2`)
        }
      }))
      expect(yield* titles({ sitemapUrl: `${site.origin}/sitemap.xml` })).toEqual(["B", "A", "Q"])
      expect(site.asked).not.toContain("/c")
    })
  )

  test(
    "Indexes and compressed sitemaps are followed; one that fails is left out",
    Effect.gen(function* () {
      const site = yield* serveSite((origin) => ({
        ...pages,
        "/index.xml": {
          body: index(
            `${origin}/one.xml.gz`,
            `${origin}/gone.xml`,
            `${origin}/index.xml`,
            `${origin}/two.xml`
          )
        },
        "/one.xml.gz": {
          headers: { "content-type": "application/gzip" },
          body: gzipSync(urlset(`${origin}/a`))
        },
        "/two.xml": {
          headers: { "content-encoding": "gzip" },
          body: gzipSync(index(`${origin}/three.txt`))
        },
        "/three.txt": { body: `${origin}/b\n${origin}/c\n` }
      }))
      expect(yield* titles({ url: `${site.origin}/index.xml` })).toEqual(["A", "B", "C"])
    })
  )

  test(
    "Patterns choose pages, and robots.txt is honoured",
    Effect.gen(function* () {
      const site = yield* serveSite((origin) => ({
        ...pages,
        "/robots.txt": { body: "User-agent: *\nDisallow: /c" },
        "/sitemap.xml": { body: urlset(`${origin}/a`, `${origin}/b`, `${origin}/c`) }
      }))
      const sitemapUrl = `${site.origin}/sitemap.xml`
      expect(yield* titles({ sitemapUrl })).toEqual(["A", "B"])
      expect(yield* titles({ sitemapUrl, excludePatterns: ["*/a"] })).toEqual(["B"])
      expect(site.asked).not.toContain("/c")
      expect(yield* Effect.flip(titles({ sitemapUrl, includePatterns: ["*/x"] }))).toMatchObject({
        code: "nothing_selected"
      })
    })
  )

  test(
    "A page that asks not to be indexed is left out",
    Effect.gen(function* () {
      const site = yield* serveSite((origin) => ({
        ...pages,
        "/b": page("B", [], '<meta name="robots" content="noindex">'),
        "/sitemap.xml": { body: urlset(`${origin}/a`, `${origin}/b`) }
      }))
      expect(yield* titles({ sitemapUrl: `${site.origin}/sitemap.xml` })).toEqual(["A"])
    })
  )

  test(
    "Patterns that nearly match everywhere leave a sitemap readable, and others served",
    Effect.gen(function* () {
      const long = (at: number) => `/${at}/${"a".repeat(1_900)}`
      const site = yield* serveSite((origin) => ({
        ...pages,
        "/sitemap.xml": {
          body: urlset(`${origin}/a`, ...Array.from({ length: 300 }, (_, at) => origin + long(at)))
        }
      }))
      const excludePatterns = Array.from({ length: 100 }, () => `*${"a".repeat(1_015)}?b1*`)
      let served = 0
      const serve = () => setImmediate(() => void (served++ < 1_000_000 && serve()))
      serve()
      const config = { sitemapUrl: `${site.origin}/sitemap.xml`, excludePatterns }
      const found = yield* read({ type: "SITEMAP", config }, { maxDocuments: 1, maxPages: 1 }).pipe(
        Stream.runCollect
      )
      expect(Chunk.toReadonlyArray(found).map(({ title }) => title)).toEqual(["A"])
      expect(served).toBeGreaterThan(10)
      served = 1_000_000
    })
  )

  test(
    "config.url may be a page of the site: robots.txt or the customary place says where the sitemap is",
    Effect.gen(function* () {
      const named = yield* serveSite((origin) => ({
        "/": page("Home"),
        "/robots.txt": { body: `Sitemap: ${origin}/deep/map.xml` },
        "/deep/map.xml": { body: urlset(`${origin}/a`) },
        "/a": page("A")
      }))
      expect(yield* titles({ url: named.origin })).toEqual(["A"])
      const customary = yield* serveSite((origin) => ({
        "/": page("Home"),
        "/sitemap.xml": { body: urlset(`${origin}/b`) },
        "/b": page("B")
      }))
      expect(yield* titles({ url: customary.origin })).toEqual(["B"])
    })
  )

  test(
    "A robots.txt that cannot be had now is no reason to take the customary place",
    Effect.gen(function* () {
      const site = yield* serveSite((origin) => ({
        "/": page("Home"),
        "/robots.txt": { status: 503 },
        "/sitemap.xml": { body: urlset(`${origin}/`) }
      }))
      expect(yield* Effect.flip(titles({ url: site.origin }))).toMatchObject({
        code: "robots_unavailable",
        retryable: true
      })
    })
  )

  test(
    "A sitemap that is missing, no sitemap, a bomb, or full of dead pages fails and says so",
    Effect.gen(function* () {
      const site = yield* serveSite((origin) => ({
        "/page": page("Page"),
        "/bomb.xml.gz": { body: gzipSync(Buffer.alloc(60 * 1024 * 1024, " ")) },
        "/dead.xml": { body: urlset(`${origin}/x`, `${origin}/y`) }
      }))
      const why = (path: string) => Effect.flip(titles({ sitemapUrl: site.origin + path }))
      expect((yield* why("/none.xml")).message).toMatch(/^The sitemap answered 404\./)
      expect((yield* why("/page")).code).toBe("no_sitemap")
      expect((yield* why("/bomb.xml.gz")).code).toBe("too_large")
      const dead = yield* why("/dead.xml")
      expect(dead).toMatchObject({ code: "status_404", retryable: false })
      expect(dead.message).toMatch(/None of the sitemap's 2 pages .* answered 404/)
    })
  )

  it("A list of addresses may end its lines in any way, is read up to 50,000 of them, and is no list with another line among those", () => {
    const list = (end: string) =>
      ["", "https://a.example/1", " https://a.example/2#x ", "https://a.example/3"].join(end)
    for (const end of ["\n", "\r\n", "\r"]) {
      expect(parseSitemap(list(end))?.locations).toEqual([1, 2, 3].map((at) => `https://a.example/${at}`))
    }
    const many = Array.from({ length: 50_001 }, (_, at) => `https://a.example/${at}`)
    expect(parseSitemap(many.join("\n"))?.locations).toEqual(many.slice(0, 50_000))
    expect(parseSitemap(many.with(40_000, "Words.").join("\n"))).toBeUndefined()
    expect(parseSitemap(" \n\r\n")).toBeUndefined()
  })

  it("Only locations of pages count: CDATA and entities are read, images, other schemes and long addresses are not", () => {
    const xml = `<urlset xmlns:image="x"><url><loc><![CDATA[https://a.example/x?a=1&b=2]]></loc>
      <image:image><image:loc>https://a.example/i.png</image:loc></image:image></url>
      <url><loc>ftp://a.example/</loc></url><url><loc>/relative</loc></url><url><loc>https://a.example/${"x".repeat(3_000)}</loc></url>
      <url><loc>https://a.example/&lt;y&gt;</loc></url><url><loc>never closed`
    expect(parseSitemap(xml)).toEqual({
      kind: "pages",
      locations: ["https://a.example/x?a=1&b=2", "https://a.example/%3Cy%3E"],
      modified: new Map()
    })
    expect(
      parseSitemap(
        "<urlset><!-- <url><loc>https://a.example/old</loc></url> --><url><loc>https://a.example/</loc></url><!--</urlset>"
      )?.locations
    ).toEqual(["https://a.example/"])
    expect(parseSitemap("<html></html>")).toBeUndefined()
    expect(parseSitemap("just words")).toBeUndefined()
    expect(parseSitemap(`<urlset>${"<loc>".repeat(1_000_000)}`)).toEqual({
      kind: "pages",
      locations: [],
      modified: new Map()
    })
  })

  it("Locations are read in any spelling of XML: character references, white space in tags, a prefix", () => {
    const urls = (xml: string) => parseSitemap(xml)?.locations
    expect(
      urls("<urlset><url><loc>https://a.example/b&#x2F;c&#45;d?x=1&amp;amp;y</loc></url></urlset>")
    ).toEqual(["https://a.example/b/c-d?x=1&amp;y"])
    expect(
      urls('<urlset ><url><loc >https://a.example/1</loc ><loc\n id="2">https://a.example/2</loc></url>')
    ).toEqual(["https://a.example/1", "https://a.example/2"])
    const prefixed = `<?xml version="1.0"?><sm:urlset xmlns:sm="x" xmlns:image="y"><sm:url><sm:loc>https://a.example/1</sm:loc>
      <image:image><image:loc>https://a.example/i.png</image:loc></image:image><sm:lastmod >2026-01-02</sm:lastmod></sm:url></sm:urlset>`
    expect(parseSitemap(prefixed)).toEqual({
      kind: "pages",
      locations: ["https://a.example/1"],
      modified: new Map([["https://a.example/1", "2026-01-02"]])
    })
    expect(urls("<urlset><url><location>https://a.example/1</location></url></urlset>")).toEqual([])
    expect(parseSitemap("<sm:sitemapindex><sm:sitemap><sm:loc>https://a.example/1</sm:loc>")?.kind).toBe(
      "index"
    )
  })

  it("The lastmod of a page is the one in its own entry", () => {
    const xml = `<urlset><url><loc>https://a.example/1</loc></url>
      <url><loc>https://a.example/2</loc><changefreq>daily</changefreq><lastmod> 2026-01-02 </lastmod></url>
      <url><loc>https://a.example/3</loc></url><url><lastmod>2026-01-03</lastmod><loc>https://a.example/4</loc></url></urlset>`
    expect([...(parseSitemap(xml)?.modified ?? [])]).toEqual([["https://a.example/2", "2026-01-02"]])
  })
})
