/** Reader `feed`: the entries of an RSS 2.0, RSS 1.0 or Atom feed. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { OutboundResponse } from "../../capabilities/OutboundHttp.ts"
import {
  setting,
  sourceReader,
  type SteppedDocument,
  permanentError
} from "../../capabilities/SourceReaders.ts"
import { inSlices } from "../../concurrency/InSlices.ts"
import { urlOf } from "../../domain/Address.ts"
import { optional } from "../../domain/Optional.ts"
import { HttpUrl } from "../../domain/knowledge/Source.ts"
import { charsetIn, decodeDeclared, xmlEncodingIn } from "../../domain/knowledge/Encoding.ts"
import { attribute, scanSteps, unescape } from "../../domain/Xml.ts"
import { escaped, markdownOf } from "./HtmlText.ts"
import { request } from "./Requests.ts"
import { MiB } from "../../domain/Bytes.ts"

/** Maximum number of entries that are read from one feed. */
const maxEntries = 1_000
const maxBytes = 10 * MiB

const Settings = Schema.Struct({
  url: HttpUrl.annotations(
    setting({
      label: { en: "Address of the feed", de: "Adresse des Feeds" },
      hint: { en: "RSS or Atom", de: "RSS oder Atom" },
      address: true
    })
  ),
  keep: optional(
    Schema.Literal("all", "listed").annotations(
      setting({
        label: { en: "Entries that leave the feed", de: "Einträge, die den Feed verlassen" },
        hint: {
          en: "A feed lists its newest entries alone. “all” keeps the older ones, “listed” removes them.",
          de: "Ein Feed nennt nur die neuesten Einträge. „all“ behält die älteren, „listed“ entfernt sie."
        }
      })
    )
  )
})

const defaults = { keep: "all" } as const

/** Validators for a 304 answer when the feed has not changed. */
const Cursor = Schema.Struct({ etag: Schema.NullOr(Schema.String), modified: Schema.NullOr(Schema.String) })

interface Entry {
  title: string
  link: string
  id: string
  /** The longest text: `content`, else `summary`. */
  content: string
  summary: string
  updated: string
}

const entryTags = new Set(["item", "entry"])
const fields: Readonly<Record<string, keyof Entry>> = {
  title: "title",
  guid: "id",
  id: "id",
  description: "summary",
  summary: "summary",
  encoded: "content",
  content: "content",
  updated: "updated",
  pubDate: "updated",
  published: "updated",
  date: "updated"
}

const isAlternate = (tag: string) => !/\srel\s?=\s?["'](?!alternate)/u.test(tag)

const isPlainText = (tag: string) => /^text(?:\/plain)?$/u.test(attribute(tag, "type"))

/**
 * The entries of a feed in order; null when the text is not a feed. Fields are HTML. Yields undefined where the caller
 * may pause.
 */
function* entriesOf(xml: string): Generator<undefined, ReadonlyArray<Entry> | null> {
  const entries: Array<Entry> = []
  let isFeed = false
  let entry: Entry | undefined
  let field: string | undefined
  let isPlain = false
  /** Open elements within a field: XHTML content of Atom. */
  let openElements = 0
  let text = ""
  yield* scanSteps(xml, {
    open: (name, tag) => {
      if (name === "rss" || name === "RDF" || name === "feed") isFeed = true
      if (entry === undefined) {
        if (entryTags.has(name))
          entry = { title: "", link: "", id: "", content: "", summary: "", updated: "" }
        return
      }
      if (field !== undefined) {
        openElements++
        text += `<${tag}>`
        return
      }
      if (name === "link") {
        if (isAlternate(tag) && entry.link === "") entry.link = attribute(tag, "href")
      }
      field = name
      isPlain = isPlainText(tag)
      openElements = 0
      text = ""
    },
    close: (name) => {
      if (entry === undefined) return
      if (field !== undefined) {
        if (openElements > 0) {
          openElements--
          // In HTML, the end of a line break would be another one.
          if (name !== "br") text += `</${name}>`
          return
        }
        const entryField = fields[field]
        const value = isPlain ? escaped(text.trim()) : text.trim()
        if (field === "link" && value !== "" && entry.link === "") entry.link = value
        if (entryField !== undefined && entry[entryField] === "") entry[entryField] = value
        field = undefined
        return
      }
      if (entryTags.has(name)) {
        if (entries.length < maxEntries) entries.push(entry)
        entry = undefined
      }
    },
    text: (piece, written) => {
      if (field !== undefined) text += openElements > 0 ? (written ?? escaped(piece)) : piece
    }
  })
  return isFeed ? entries : null
}

/** The text: by byte order mark, else UTF-8 if valid, else by the content type or the XML declaration. */
const textOf = ({ body, headers }: OutboundResponse): string =>
  decodeDeclared(
    body,
    () =>
      charsetIn(headers["content-type"] ?? "") ??
      xmlEncodingIn(new TextDecoder("latin1").decode(body.subarray(0, 256)))
  )

const notAFeed = permanentError("no_feed", "The address holds no RSS or Atom feed.")

const resolveUrl = (href: string, base: string): string | undefined => urlOf(href, base)?.href

interface FeedStep {
  readonly documents: Array<SteppedDocument>
  readonly unread: Array<{ readonly uri: string; readonly reason: string }>
}

/**
 * The link of the entry, else its id. Entries with the same link, such as versions on one page, are told apart by their
 * ids; undefined for a repeated entry. `used` has the results for earlier entries.
 */
const uriOf = ({ id, link, title }: Entry, base: string, used: Set<string>): string | undefined => {
  const address = (link === "" ? undefined : resolveUrl(link, base)) ?? id
  const mark = encodeURIComponent((id || title).toWellFormed())
  const own = used.has(address) ? `${address}${address.includes("#") ? "-" : "#"}${mark}` : address
  if (address === "" || used.has(own)) return undefined
  used.add(own)
  return own
}

/** Adds the document of the entry to `step`, if it has one. */
const addDocument = (entry: Entry, base: string, used: Set<string>, step: FeedStep) =>
  Effect.gen(function* () {
    const uri = uriOf(entry, base, used)
    if (uri === undefined) return
    const title = unescape(entry.title.replaceAll(/<[^<>]{1,200}>/g, "")).trim()
    const html = entry.content === "" ? entry.summary : entry.content
    const body = yield* markdownOf(html, title, base)
    if (body === null) return void step.unread.push({ uri, reason: "unreadable" })
    const content = body === "" ? title : body
    if (content !== "")
      step.documents.push({ uri, title: title === "" ? uri : title, format: "markdown", content })
  })

export const feed = sourceReader({
  name: "feed",
  title: { en: "RSS or Atom feed", de: "RSS- oder Atom-Feed" },
  description: {
    en: "The entries of a feed: news, releases, a blog.",
    de: "Die Einträge eines Feeds: Neuigkeiten, Versionen, ein Blog."
  },
  settings: Settings,
  cursor: Cursor,
  limitsDocuments: false,
  position: Schema.Null,
  defaults: () => defaults,
  step: ({ keep = defaults.keep, url }, { cursor }) =>
    Effect.gen(function* () {
      const headers = {
        accept: "application/atom+xml, application/rss+xml, application/xml;q=0.9, text/xml;q=0.9, */*;q=0.5",
        ...(typeof cursor?.etag === "string" ? { "if-none-match": cursor.etag } : {}),
        ...(typeof cursor?.modified === "string" ? { "if-modified-since": cursor.modified } : {})
      }
      const response = yield* request({
        service: "The feed",
        url,
        headers,
        maxBytes,
        ...(cursor === null ? {} : { acceptedStatuses: [304] })
      })
      if (cursor !== null && response.status === 304) {
        return { documents: [], next: { done: cursor, complete: false } }
      }
      const entries = yield* inSlices(entriesOf(textOf(response)))
      if (entries === null) return yield* notAFeed
      const step: FeedStep = { documents: [], unread: [] }
      const used = new Set<string>()
      yield* Effect.forEach(entries, (entry) => addDocument(entry, response.url, used, step), {
        discard: true
      })
      // The next pass reads the feed again although it has not changed.
      const isWhole = step.unread.length === 0
      const done = {
        etag: isWhole ? (response.headers["etag"] ?? null) : null,
        modified: isWhole ? (response.headers["last-modified"] ?? null) : null
      }
      return { ...step, next: { done, complete: keep === "listed" } }
    })
})
