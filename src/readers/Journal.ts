/** Progress that a reader reports, and the state of the last sync that it reads. */
import * as Effect from "effect/Effect"
import type { CrawlEntry } from "../domain/knowledge/Crawl.ts"

/** The state of a page, which the next sync compares to skip unchanged pages. */
export interface PageState {
  readonly etag: string | null
  readonly lastModified: string | null
  /** The sitemap's `lastmod`, unparsed. */
  readonly listedAt: string | null
  /** Time of the last answer of the site, in milliseconds since 1970. */
  readonly fetchedAt: number
  /** Null where links are not stored: the page is always fetched in full then. */
  readonly links: ReadonlyArray<string> | null
  readonly digest: string
  readonly fingerprint: string
}

/** A page that the last successful sync read. */
export interface JournalEntry extends PageState {
  /** Its address after redirects. */
  readonly url: string
  /** The document of the page, or the one whose content it repeats. */
  readonly uri: string
  /** Why it repeats that document; null for the document itself. */
  readonly repeats: string | null
}

export interface Journal {
  /** The stored state of an address. */
  readonly known: (url: string) => JournalEntry | undefined
  /** Addresses that the last sync found through a page or sitemap, in order. */
  readonly foundThrough: (parent: string) => ReadonlyArray<string>
  /** Keeps the live document `uri` with its chunks and vectors. */
  readonly keep: (uri: string) => Effect.Effect<void>
  /** Keeps a document whose page could not be fetched now. It does not count as read when the outcome of the sync is decided. */
  readonly keepUnread: (uri: string) => Effect.Effect<void>
  /** Stores the outcome of an address, and the state of its page. */
  readonly record: (entry: CrawlEntry, state?: PageState) => Effect.Effect<void>
  /** Number of settled addresses, and of all addresses known so far. */
  readonly progress: (settled: number, all: number) => Effect.Effect<void>
}

/** Stores nothing and reports nothing. */
export const noJournal: Journal = {
  known: () => undefined,
  foundThrough: () => [],
  keep: () => Effect.void,
  keepUnread: () => Effect.void,
  record: () => Effect.void,
  progress: () => Effect.void
}
