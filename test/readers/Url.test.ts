import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { UrlConfig } from "../../src/domain/knowledge/Source.ts"
import { read } from "../../src/readers/Readers.ts"
import { writePdf } from "../fixtures/documents/PdfWriter.ts"
import { type Answer, layerReaders, page, serveSite } from "./Site.ts"

const documents = (config: typeof UrlConfig.Type, maxDocuments = 1_000) =>
  read({ type: "URL", config }, { maxDocuments }).pipe(Stream.runCollect, Effect.map(Chunk.toReadonlyArray))

const titles = (config: typeof UrlConfig.Type, maxDocuments?: number) =>
  Effect.map(documents(config, maxDocuments), (found) => found.map(({ title }) => title))

const test = (
  sentence: string,
  body: Effect.Effect<void, unknown, Scope.Scope | Layer.Layer.Success<typeof layerReaders>>
) => it.live(sentence, () => Effect.scoped(body).pipe(Effect.provide(layerReaders)))

/** Home → a, b → c → d; everything but d links home. */
const tree = () => ({
  "/": page("Home", ["/a", "/b#part", "/a?", "https://elsewhere.example/x", "mailto:x@a.example"]),
  "/a": page("A", ["/", "/c"]),
  "/b": page("B", ["/", "/c", "/logo.png"]),
  "/c": page("C", ["/", "d"]),
  "/d": page("D")
})

describe("A URL source", () => {
  test(
    "With the default maxDepth 0 the page alone is read",
    Effect.gen(function* () {
      const site = yield* serveSite(() => ({
        ...tree(),
        "/": {
          ...page("Home", ["/a"]),
          headers: { etag: '"1"', "last-modified": "Fri, 20 Nov 2026 10:00:00 GMT" }
        }
      }))
      const [found, ...others] = yield* documents({ url: `${site.origin}/#top` })
      expect(others).toEqual([])
      expect(found).toMatchObject({
        uri: `${site.origin}/`,
        title: "Home",
        format: "markdown",
        etag: '"1"',
        lastModified: "Fri, 20 Nov 2026 10:00:00 GMT"
      })
      expect(found?.content).toContain("the words of the page called Home")
      expect(site.asked).toEqual(["/robots.txt", "/"])
    })
  )

  test(
    "Large pages are read one at a time, each when its turn has come, so that a run does not hold several of them",
    Effect.gen(function* () {
      const large = (title: string, withLength: boolean): Answer => {
        const body = `# ${title}\n\n${`Words of ${title}, one line of many.\n`.repeat(160_000)}`
        const length = withLength ? { "content-length": `${body.length}` } : {}
        return { headers: { "content-type": "text/markdown", ...length }, body }
      }
      const pages = {
        "/": page("Home", ["/1", "/2", "/a", "/3"]),
        "/1": large("One", true),
        "/2": large("Two", false),
        "/a": page("A"),
        "/3": large("Three", true)
      }
      const times = (site: { readonly asked: ReadonlyArray<string> }, path: string) =>
        site.asked.filter((asked) => asked === path).length
      const part = yield* serveSite(() => pages)
      expect(yield* titles({ url: `${part.origin}/`, maxDepth: 1 }, 2)).toEqual(["Home", "One"])
      expect(["/1", "/2", "/3"].map((path) => times(part, path))).toEqual([2, 1, 1])
      const whole = yield* serveSite(() => pages)
      const found = yield* documents({ url: `${whole.origin}/`, maxDepth: 1 })
      expect(found.map(({ title }) => title)).toEqual(["Home", "One", "Two", "A", "Three"])
      expect(found[4]?.content.length).toBeGreaterThan(5_000_000)
      expect(["/1", "/2", "/a", "/3"].map((path) => times(whole, path))).toEqual([2, 2, 1, 2])
    })
  )

  test(
    "A page named like a script is read, and a script is not",
    Effect.gen(function* () {
      const script = (type: string) => ({
        headers: { "content-type": type },
        body: "// These are the words of a script, and they are long enough to be read.\nrun()"
      })
      const site = yield* serveSite(() => ({
        "/": page("Home", ["/wiki/Node.js", "/a.js", "/b.mjs", "/c"]),
        "/wiki/Node.js": page("Node.js"),
        "/a.js": script("text/javascript; charset=utf-8"),
        "/b.mjs": script("application/x-javascript"),
        "/c": script("Application/JavaScript")
      }))
      expect(yield* titles({ url: `${site.origin}/`, maxDepth: 1 })).toEqual(["Home", "Node.js"])
    })
  )

  test(
    "maxDepth follows links breadth first within the origin, each page once",
    Effect.gen(function* () {
      const site = yield* serveSite(tree)
      expect(yield* titles({ url: site.origin, maxDepth: 1 })).toEqual(["Home", "A", "B"])
      expect(yield* titles({ url: site.origin, maxDepth: 2 })).toEqual(["Home", "A", "B", "C"])
      expect(yield* titles({ url: site.origin, maxDepth: 5 })).toEqual(["Home", "A", "B", "C", "D"])
      expect(site.asked.filter((path) => path === "/c").length).toBe(2)
      expect(site.asked).not.toContain("/logo.png")
    })
  )

  test(
    "Exclude patterns win over include patterns, and the start page is followed though it is left out",
    Effect.gen(function* () {
      const site = yield* serveSite(tree)
      const config = { url: site.origin, maxDepth: 3, includePatterns: ["*/a", "*/c"] }
      expect(yield* titles(config)).toEqual(["A", "C"])
      expect(yield* titles({ ...config, excludePatterns: ["*/c"] })).toEqual(["A"])
      const none = yield* Effect.flip(documents({ ...config, excludePatterns: ["*"] }))
      expect(none).toMatchObject({ code: "nothing_selected", retryable: false })
    })
  )

  test(
    "robots.txt is honoured for the start page and for every other",
    Effect.gen(function* () {
      const robots = { body: "User-agent: SpokeBot\nDisallow: /b\nDisallow: /only" }
      const site = yield* serveSite(() => ({ ...tree(), "/robots.txt": robots, "/only": page("Only") }))
      expect(yield* titles({ url: site.origin, maxDepth: 1 })).toEqual(["Home", "A"])
      expect(site.asked).not.toContain("/b")
      const refused = yield* Effect.flip(documents({ url: `${site.origin}/only` }))
      expect(refused).toMatchObject({ code: "robots_disallowed", retryable: false })
    })
  )

  test(
    "A page that redirects to another site is read only where that site's robots.txt lets it be",
    Effect.gen(function* () {
      const rules = { "/robots.txt": { body: "User-agent: *\nDisallow: /closed" } }
      const there = yield* serveSite(() => ({ ...rules, "/closed": page("Closed"), "/open": page("Open") }))
      const elsewhere = (path: string): Answer => ({
        status: 302,
        headers: { location: there.origin + path }
      })
      const site = yield* serveSite((origin) => ({
        "/closed": elsewhere("/closed"),
        "/open": elsewhere("/open"),
        "/sitemap.xml": { body: `${origin}/closed\n${origin}/open` }
      }))
      expect(yield* Effect.flip(documents({ url: `${site.origin}/closed` }))).toMatchObject({
        code: "robots_disallowed"
      })
      expect(yield* titles({ url: `${site.origin}/open` })).toEqual(["Open"])
      const listed = yield* read(
        { type: "SITEMAP", config: { sitemapUrl: `${site.origin}/sitemap.xml` } },
        { maxDocuments: 10 }
      ).pipe(Stream.runCollect, Effect.map(Chunk.toReadonlyArray))
      expect(listed.map(({ title }) => title)).toEqual(["Open"])
    })
  )

  test(
    "A page that asks not to be indexed is left out, and one that asks for it not followed, unless the source names it",
    Effect.gen(function* () {
      const meta = (content: string) => `<meta name="Robots" content="${content}">`
      const closed = page("Closed", ["/behind"])
      const site = yield* serveSite(() => ({
        "/": page("Home", ["/closed", "/none", "/end", "/header"], meta("none")),
        "/closed": page("Closed", ["/behind"], meta("noindex")),
        "/behind": page("Behind"),
        "/none": page("None", ["/never"], meta("none")),
        "/end": page("End", ["/never"], meta("nofollow")),
        "/never": page("Never"),
        "/header": { ...closed, headers: { ...closed.headers, "x-robots-tag": "noindex" } }
      }))
      expect(yield* titles({ url: site.origin, maxDepth: 3 })).toEqual(["Home", "End", "Behind"])
      expect(site.asked).not.toContain("/never")
      expect(yield* titles({ url: `${site.origin}/none` })).toEqual(["None"])
    })
  )

  test(
    "A site whose robots.txt answers 503 is read later",
    Effect.gen(function* () {
      const site = yield* serveSite(() => ({ ...tree(), "/robots.txt": { status: 503 } }))
      const error = yield* Effect.flip(documents({ url: site.origin }))
      expect(error).toMatchObject({ code: "robots_unavailable", retryable: true })
      expect(site.asked).toEqual(["/robots.txt"])
    })
  )

  test(
    "A crawl-delay leaves that long between two pages",
    Effect.gen(function* () {
      const robots = { body: "User-agent: *\nCrawl-delay: 0.3" }
      const site = yield* serveSite(() => ({ ...tree(), "/robots.txt": robots }))
      const [elapsed] = yield* Effect.timed(titles({ url: site.origin, maxDepth: 1 }))
      expect(Duration.toMillis(elapsed)).toBeGreaterThanOrEqual(590)
      expect(site.maxOpen()).toBe(1)
    })
  )

  test(
    "Pages that name the same canonical address are one document under that address",
    Effect.gen(function* () {
      const canonical = (href: string) => `<link rel="canonical" href="${href}">`
      const site = yield* serveSite(() => ({
        "/": page("Home", ["/x?ref=1", "/x?ref=2", "/x", "/y"]),
        "/x?ref=1": page("X by 1", [], canonical("/x#top")),
        "/x?ref=2": page("X by 2", [], canonical("/x")),
        "/x": page("X"),
        "/y": page("Y", [], canonical("https://elsewhere.example/y"))
      }))
      const found = yield* documents({ url: site.origin, maxDepth: 1 })
      expect(found.map(({ uri }) => uri.replace(site.origin, ""))).toEqual(["/", "/x", "/y"])
    })
  )

  test(
    "Pages that are the same word for word are one document",
    Effect.gen(function* () {
      const site = yield* serveSite(() => ({
        "/": page("Home", ["/index.html", "/a"]),
        "/index.html": page("Home", ["/index.html", "/a"]),
        "/a": page("A")
      }))
      const found = yield* documents({ url: `${site.origin}/index.html`, maxDepth: 2 })
      expect(found.map(({ title }) => title)).toEqual(["Home", "A"])
    })
  )

  test(
    "A page that fails is left out and the others are read",
    Effect.gen(function* () {
      const site = yield* serveSite(() => ({
        "/": page("Home", ["/gone", "/broken.pdf", "/away", "/empty", "/a", "/loop"]),
        "/broken.pdf": { body: "%PDF-1.4 broken" },
        "/away": { status: 302, headers: { location: "http://localhost:1/" } },
        "/loop": { status: 302, headers: { location: "/loop" } },
        "/empty": { body: "" },
        "/a": page("A")
      }))
      expect(yield* titles({ url: site.origin, maxDepth: 1 })).toEqual(["Home", "A"])
    })
  )

  const failures: ReadonlyArray<readonly [string, Answer, string, boolean, RegExp]> = [
    ["answers 404", { status: 404 }, "status_404", false, /^The page answered 404\./],
    ["answers 403", { status: 403 }, "status_403", false, /answered 403/],
    ["answers 429", { status: 429 }, "status_429", true, /answered 429/],
    ["answers 500", { status: 500 }, "status_500", true, /^The page answered 500\.$/],
    ["holds no text", { body: "<html><body></body></html>" }, "empty", false, /no readable text/],
    [
      "is an encrypted PDF",
      { body: writePdf([[]], { encrypted: true }) },
      "encrypted",
      false,
      /without a password/
    ],
    [
      "redirects to a private address",
      { status: 301, headers: { location: "http://10.0.0.1/" } },
      "fetch_refused",
      false,
      /10\.0\.0\.1/
    ]
  ]
  for (const [what, answer, code, retryable, words] of failures) {
    test(
      `A source whose page ${what} fails and says so`,
      Effect.gen(function* () {
        const site = yield* serveSite(
          (origin) => (path) => (path === "/robots.txt" || origin === "" ? undefined : answer)
        )
        const error = yield* Effect.flip(documents({ url: `${site.origin}/page`, maxDepth: 2 }))
        expect(error).toMatchObject({ _tag: "ReaderError", code, retryable })
        expect(error.message).toMatch(words)
      })
    )
  }

  test(
    "A host that is not there is tried again later",
    Effect.gen(function* () {
      const error = yield* Effect.flip(documents({ url: "http://127.0.0.1:1/" }))
      expect(error).toMatchObject({ code: "fetch_unreachable", retryable: true })
    })
  )

  test(
    "A site that asks for a pause gets it, and one that asks for a long one is left for later",
    Effect.gen(function* () {
      const at: Array<number> = []
      const site = yield* serveSite(() => (path) => {
        if (path === "/robots.txt") return undefined
        if (path !== "/") at.push(performance.now())
        const busy: Answer = { status: 429, headers: { "retry-after": "1" } }
        if (path === "/late") return { status: 503, headers: { "retry-after": "3600" } }
        return path === "/" ? page("Home", ["/a", "/b", "/c", "/late"]) : at.length <= 6 ? busy : page(path)
      })
      expect((yield* titles({ url: site.origin, maxDepth: 1 })).toSorted()).toEqual([
        "/a",
        "/b",
        "/c",
        "Home"
      ])
      // Four at once, of which three were to wait; two of those once more.
      expect(at.length).toBe(9)
      const [first = 0, , , , second = 0, , , third = 0] = at
      expect(second - first).toBeGreaterThanOrEqual(950)
      expect(third - second).toBeGreaterThanOrEqual(950)
      expect(site.asked.filter((path) => path === "/late")).toEqual(["/late"])
      const later = yield* Effect.flip(documents({ url: `${site.origin}/late` }))
      expect(later).toMatchObject({ code: "status_503", retryable: true, retryAfter: Duration.hours(1) })
    })
  )

  test(
    "After a redirect of the start page the site it led to is read",
    Effect.gen(function* () {
      const target = yield* serveSite(tree)
      const site = yield* serveSite(() => ({
        "/": { status: 301, headers: { location: `${target.origin}/` } }
      }))
      const found = yield* documents({ url: site.origin, maxDepth: 1 })
      expect(found.map(({ uri }) => uri)).toEqual(["/", "/a", "/b"].map((path) => target.origin + path))
    })
  )

  test(
    "At most four requests are open at a time to one host, over all sources",
    Effect.gen(function* () {
      const links = Array.from({ length: 12 }, (_, place) => `/p${place}`)
      const site = yield* serveSite(
        () => (path) => (path === "/robots.txt" ? undefined : page(path, links)),
        // Long enough for four to be open at a time, also where what was read is parsed meanwhile.
        150
      )
      const source = titles({ url: site.origin, maxDepth: 1 })
      const [first] = yield* Effect.all([source, source, source], { concurrency: "unbounded" })
      expect(first.length).toBe(13)
      expect(site.maxOpen()).toBe(4)
    })
  )

  test(
    "A site without end is read up to the document limit",
    Effect.gen(function* () {
      const site = yield* serveSite(
        () => (path) => (path === "/robots.txt" ? undefined : page(path, [`${path}x`, `${path}y`]))
      )
      expect((yield* titles({ url: site.origin, maxDepth: 5 }, 7)).length).toBe(7)
      expect(site.asked.length).toBeLessThan(20)
    })
  )

  test(
    "Pages under one title with nearly the same words are one document; a title of its own or few words keep a page",
    Effect.gen(function* () {
      const words = (from: number) => Array.from({ length: 400 }, (_, at) => `word${from + at}`).join(" ")
      const text = (title: string, body: string, links: ReadonlyArray<string> = []): Answer => ({
        headers: { "content-type": "text/html" },
        body: `<html><head><title>${title}</title></head><body><main><p>${body}</p>
          ${links.map((href) => `<a href="${href}">more</a>`).join(" ")}</main></body></html>`
      })
      const site = yield* serveSite(() => ({
        "/": page("Home", ["/a", "/a-print", "/a-other", "/b", "/s1", "/s2"]),
        "/a": text("Guide", words(0)),
        "/a-print": text("Guide", `${words(0)} printed`),
        "/a-other": text("Other guide", `${words(0)} otherwise`),
        "/b": text("Guide", words(5_000)),
        "/s1": text("Short", "Open from nine to five."),
        "/s2": text("Short", "Open from nine to six.")
      }))
      const found = yield* documents({ url: `${site.origin}/`, maxDepth: 1 })
      expect(found.map(({ uri }) => uri.replace(site.origin, ""))).toEqual([
        "/",
        "/a",
        "/a-other",
        "/b",
        "/s1",
        "/s2"
      ])
    })
  )

  test(
    "At most 1,000 pages are asked for",
    Effect.gen(function* () {
      // The parser takes the first thousand links of a page, so the second level brings the rest.
      const links = (from: number) => Array.from({ length: 700 }, (_, at) => `/t${from + at}`)
      const site = yield* serveSite(() => (path) => {
        if (path === "/") return page("Home", ["/more", ...links(0)])
        if (path === "/more") return page("More", links(700))
        if (path === "/robots.txt") return undefined
        return { headers: { "content-type": "text/plain" }, body: `The words of ${path}` }
      })
      expect((yield* titles({ url: `${site.origin}/`, maxDepth: 5 })).length).toBe(1_000)
      expect(site.asked.length).toBe(1_001)
    })
  )
})
