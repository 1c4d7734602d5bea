/** What a reader is: from a source's config to the documents it holds. */
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
  /** Names the document within its source: an http(s) URL, `upload:` and the file's name, `text:`, or `qa:` and a digest. */
  readonly uri: string
  readonly title: string
  readonly format: "markdown" | "text"
  /** Not empty, without NUL and lone surrogates. */
  readonly content: string
  readonly etag?: string
  readonly lastModified?: string
}

export interface ReadOptions {
  /** The stream ends after this many documents. */
  readonly maxDocuments: number
  /** Most pages that a crawl asks for; 1,000 by default. */
  readonly maxPages?: number
  /** Told of every address; by default nothing is stored or reported. */
  readonly journal?: Journal
}

export type ReaderServices = OutboundHttp | DocumentParser | TextRecognition | ModelRuntime | ArtifactStore

export interface Reader<Config> {
  /**
   * A document that cannot be read is left out when others can; the source fails when none can. What has not changed
   * since the last sync, and what was read then and is not to be had for a while, goes to the journal instead of the
   * stream.
   */
  readonly read: (
    config: Config,
    options: ReadOptions
  ) => Stream.Stream<ReadDocument, ReaderError, ReaderServices>
}
