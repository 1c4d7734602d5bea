/** Reader `feed`: the entries of an RSS 2.0, RSS 1.0 or Atom feed. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import {
  setting,
  sourceReader,
  type SteppedDocument,
  permanentError
} from "../../capabilities/SourceReaders.ts"
import { urlOf } from "../../domain/Address.ts"
import { optional } from "../../domain/Optional.ts"
import { HttpUrl } from "../../domain/knowledge/Source.ts"
import { scan } from "../../domain/Xml.ts"
import { markdownOf } from "./HtmlText.ts"
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

const hrefOf = (tag: string): string | undefined => /\shref\s?=\s?["']([^"']{1,2048})["']/u.exec(tag)?.[1]
const isAlternate = (tag: string) => !/\srel\s?=\s?["'](?!alternate)/u.test(tag)

/** The entries of a feed in order; null when the text is not a feed. Markup within a field is part of its text. */
const entriesOf = (xml: string): ReadonlyArray<Entry> | null => {
  const entries: Array<Entry> = []
  let isFeed = false
  let entry: Entry | undefined
  /** Open elements within a field: XHTML content of Atom. */
  let field: string | undefined
  let openElements = 0
  let text = ""
  scan(xml, {
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
        const href = hrefOf(tag)
        if (href !== undefined && isAlternate(tag) && entry.link === "") entry.link = href
      }
      field = name
      openElements = 0
      text = ""
    },
    close: (name) => {
      if (entry === undefined) return
      if (field !== undefined) {
        if (openElements > 0) {
          openElements--
          text += `</${name}>`
          return
        }
        const entryField = fields[field]
        const value = text.trim()
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
    text: (piece) => {
      if (field !== undefined) text += piece
    }
  })
  return isFeed ? entries : null
}

const notAFeed = permanentError("no_feed", "The address holds no RSS or Atom feed.")

const resolveUrl = (href: string, base: string): string | undefined => urlOf(href, base)?.href

interface FeedStep {
  readonly documents: Array<SteppedDocument>
  readonly unread: Array<{ readonly uri: string; readonly reason: string }>
}

/** Adds the document of the entry to `step`, if it has one. */
const addDocument = (entry: Entry, base: string, step: FeedStep) =>
  Effect.gen(function* () {
    const uri =
      (entry.link === "" ? undefined : resolveUrl(entry.link, base)) ??
      (entry.id === "" ? undefined : entry.id)
    if (uri === undefined) return
    const title = entry.title.replaceAll(/<[^<>]{1,200}>/g, "").trim()
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
      const entries = entriesOf(new TextDecoder().decode(response.body))
      if (entries === null) return yield* notAFeed
      const step: FeedStep = { documents: [], unread: [] }
      yield* Effect.forEach(entries, (entry) => addDocument(entry, response.url, step), { discard: true })
      // The next pass reads the feed again although it has not changed.
      const isWhole = step.unread.length === 0
      const done = {
        etag: isWhole ? (response.headers["etag"] ?? null) : null,
        modified: isWhole ? (response.headers["last-modified"] ?? null) : null
      }
      return { ...step, next: { done, complete: keep === "listed" } }
    })
})
