/** The reader of a source type: it turns a source's config into documents. */
import type * as Stream from "effect/Stream"
import type { ArtifactStore } from "../capabilities/ArtifactStore.ts"
import type { DocumentParser } from "../capabilities/DocumentParser.ts"
import type { ModelRuntime } from "../capabilities/ModelRuntime.ts"
import type { OutboundHttp } from "../capabilities/OutboundHttp.ts"
import type { ReaderError } from "../capabilities/SourceReaders.ts"
import type { TextRecognition } from "../capabilities/TextRecognition.ts"
import type { Journal } from "./Journal.ts"

/** One readable document of a source. */
export interface ReadDocument {
  /** Identifies the document within its source: an http(s) URL, `upload:` and the file's name, `text:`, or `qa:` and a digest. */
  readonly uri: string
  readonly title: string
  readonly format: "markdown" | "text"
  /** Not empty; contains no NUL and no lone surrogates. */
  readonly content: string
  /** For the customer: which part of a damaged document is missing in `content`. */
  readonly incomplete?: string
  readonly etag?: string
  readonly lastModified?: string
}

/** The reason and message of the crawl entry of a document that was read in part. */
export const damageOf = ({ incomplete }: ReadDocument) =>
  incomplete === undefined ? {} : { reason: "incomplete", message: incomplete }

export interface ReadOptions {
  /** The stream ends after this many documents. */
  readonly maxDocuments: number
  /** Maximum number of pages that a crawl requests; 1,000 by default. */
  readonly maxPages?: number
  /** Receives the outcome of every address; by default nothing is stored or reported. */
  readonly journal?: Journal
}

export type ReaderServices = OutboundHttp | DocumentParser | TextRecognition | ModelRuntime | ArtifactStore

export interface Reader<Config> {
  /**
   * The stream of documents. It leaves out a document that cannot be read, and fails when none can. Documents that have not
   * changed since the last sync, or are temporarily unavailable, are reported to the journal instead.
   */
  readonly read: (
    config: Config,
    options: ReadOptions
  ) => Stream.Stream<ReadDocument, ReaderError, ReaderServices>
}
