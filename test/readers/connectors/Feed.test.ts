/** What is read of the entries of feeds as they are written. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { feed } from "../../../src/readers/connectors/Feed.ts"
import { layerReaders } from "../Site.ts"
import { longestWait, serveStub } from "./StubService.ts"

const start = { cursor: null, position: null, known: () => undefined }

const read = (body: string | Uint8Array, contentType = "application/xml") =>
  Effect.gen(function* () {
    const { origin } = yield* serveStub(() => ({ headers: { "content-type": contentType }, body }))
    const { documents } = yield* feed.step({ url: `${origin}/feed.xml` }, start)
    return documents.map(({ content, title, uri }) => [uri, title, content])
  })

const rss = (...items: ReadonlyArray<string>) =>
  `<rss version="2.0"><channel>${items.map((item) => `<item>${item}</item>`).join("")}</channel></rss>`
const atom = (...entries: ReadonlyArray<string>) =>
  `<feed xmlns="http://www.w3.org/2005/Atom">${entries.map((entry) => `<entry>${entry}</entry>`).join("")}</feed>`

it.scopedLive("a feed is read in the encoding that it or its content type declares", () =>
  Effect.gen(function* () {
    const item =
      "<title>Öffnungszeiten</title><link>https://e.org/a</link><description>Für Gäste</description>"
    const found = [["https://e.org/a", "Öffnungszeiten", "Für Gäste"]]
    const declared = `<?xml version="1.0" encoding="ISO-8859-1"?>${rss(item)}`
    expect(yield* read(Buffer.from(declared, "latin1"))).toEqual(found)
    expect(yield* read(Buffer.from(rss(item), "latin1"), "text/xml; charset=iso-8859-1")).toEqual(found)
    expect(yield* read(Buffer.from(`\uFEFF${rss(item)}`, "utf16le"))).toEqual(found)
    // Feeds that are UTF-8 and say otherwise are common.
    expect(yield* read(declared, "text/xml; charset=iso-8859-1")).toEqual(found)
  }).pipe(Effect.provide(layerReaders))
)

it.scopedLive("text in XHTML, and plain text, keeps its signs", () =>
  Effect.gen(function* () {
    const code = "Write <code>Array&lt;string&gt;</code> or <code><![CDATA[Set<K>]]></code>.<br/>Done."
    const found = yield* read(
      atom(
        `<title>A</title><link href="https://e.org/a"/><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>${code}</p></div></content>`,
        '<title type="text">What &lt;canvas&gt; does</title><link href="https://e.org/b"/><summary type="text">A &lt;canvas&gt; is drawn on.</summary>',
        '<title>C</title><link href="https://e.org/c"/><content type="html">&lt;p&gt;The &lt;b&gt;rest&lt;/b&gt;&lt;/p&gt;</content>'
      )
    )
    expect(found).toEqual([
      ["https://e.org/a", "A", "Write `Array<string>` or `Set<K>`.\nDone."],
      ["https://e.org/b", "What <canvas> does", "A \\<canvas> is drawn on."],
      ["https://e.org/c", "C", "The **rest**"]
    ])
  }).pipe(Effect.provide(layerReaders))
)

it.scopedLive("a title says what its entities mean", () =>
  Effect.gen(function* () {
    const found = yield* read(
      rss(
        "<title><![CDATA[Don&#8217;t <b>wait</b> &amp; see]]></title><link>https://e.org/a</link><description>Text</description>"
      )
    )
    expect(found).toEqual([["https://e.org/a", "Don’t wait & see", "Text"]])
  }).pipe(Effect.provide(layerReaders))
)

it.scopedLive("links are read as XML writes them", () =>
  Effect.gen(function* () {
    const found = yield* read(
      atom(
        '<title>A</title><link rel="self" href="https://e.org/self"/><link title="a > b" href="https://e.org/a?x=1&amp;y=2" rel="alternate"/><summary>One</summary>'
      )
    )
    expect(found).toEqual([["https://e.org/a?x=1&y=2", "A", "One"]])
  }).pipe(Effect.provide(layerReaders))
)

it.scopedLive("entries with the same link are documents of their own", () =>
  Effect.gen(function* () {
    const item = (version: string, guid = version) =>
      `<title>Version ${version}</title><link>https://e.org/changes</link><guid isPermaLink="false">v ${guid}</guid><description>Brings ${version}</description>`
    expect(yield* read(rss(item("3"), item("2"), item("2 again", "2"), item("1")))).toEqual([
      ["https://e.org/changes", "Version 3", "Brings 3"],
      ["https://e.org/changes#v%202", "Version 2", "Brings 2"],
      ["https://e.org/changes#v%201", "Version 1", "Brings 1"]
    ])
  }).pipe(Effect.provide(layerReaders))
)

it.scopedLive("requests are served while a large feed is read", () =>
  Effect.gen(function* () {
    const body = rss(`<title>A</title><link>https://e.org/a</link><description>${"<a/>".repeat(2_500_000)}`)
    const longest = yield* longestWait(read(body))
    expect(longest).toBeLessThan(800)
  }).pipe(Effect.provide(layerReaders))
)
