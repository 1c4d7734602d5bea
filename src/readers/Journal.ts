/** What a reader tells while it reads, and what it remembers of the time before. */
import * as Effect from "effect/Effect"
import type { CrawlEntry } from "../domain/knowledge/Crawl.ts"

/** What the next sync compares with, so that it neither fetches nor reads again what has not changed. */
export interface Evidence {
  readonly etag: string | null
  readonly lastModified: string | null
  /** The sitemap's `lastmod`, as it is written there. */
  readonly listedAt: string | null
  /** When the site last said so, in milliseconds since 1970. */
  readonly fetchedAt: number
  /** Null where they are not kept: then the page is always fetched in full. */
  readonly links: ReadonlyArray<string> | null
  readonly digest: string
  readonly fingerprint: string
}

/** A page that the last successful sync read. */
export interface Known extends Evidence {
  /** Where it was found after redirects. */
  readonly url: string
  /** The document that it became, or that it repeats. */
  readonly uri: string
  /** Why it repeats that document; null for the document itself. */
  readonly repeats: string | null
}

export interface Journal {
  /** What is remembered of an address. */
  readonly known: (url: string) => Known | undefined
  /** What the last sync found through a page or sitemap, in its order. */
  readonly foundThrough: (parent: string) => ReadonlyArray<string>
  /** The live document `uri` stays as it is, with its chunks and vectors. */
  readonly keep: (uri: string) => Effect.Effect<void>
  /** The same, although its page was not to be had now: it says nothing for the source that it could be read. */
  readonly spare: (uri: string) => Effect.Effect<void>
  readonly note: (entry: CrawlEntry, evidence?: Evidence) => Effect.Effect<void>
  /** Addresses that are settled, among those that are known so far. */
  readonly progress: (settled: number, all: number) => Effect.Effect<void>
}

/** Stores nothing and reports nothing. */
export const silent: Journal = {
  known: () => undefined,
  foundThrough: () => [],
  keep: () => Effect.void,
  spare: () => Effect.void,
  note: () => Effect.void,
  progress: () => Effect.void
}
