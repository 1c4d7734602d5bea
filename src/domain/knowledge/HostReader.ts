/** A reader that the library's host provides and that runs in this process. */

/** A text for people: in English, or in English and German. */
export type ReaderWords = string | { readonly en: string; readonly de?: string }

/** One setting of a reader, as the dashboard shows it and as `POST /v1/sources` accepts it. */
export interface ReaderSetting {
  readonly label: ReaderWords
  readonly hint?: ReaderWords
  /** Default: `text`. A `secret` is sealed and never returned; a `list` is an array of texts. */
  readonly kind?: "text" | "secret" | "number" | "switch" | "list"
  readonly optional?: boolean
  /** True for the address that secrets are sent to. If it changes, they must be given again. */
  readonly address?: boolean
}

export interface ReaderRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Maximum size of the answer in bytes; default: 20 MiB. */
  readonly maxBytes?: number
}

export interface ReaderResponse {
  readonly url: string
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: () => string
  readonly bytes: () => Uint8Array
}

/** Context of a step. */
export interface ReaderContext<Settings> {
  readonly settings: Settings
  /** JSON from the last finished pass. Null for the first pass, and when everything is to be read again. */
  readonly cursor: unknown
  /** The `next` of the step before; null at the first step of a pass. */
  readonly position: unknown
  /** The revision of the live document. */
  readonly known: (uri: string) => string | undefined
  /**
   * Sends a request under the service's rules for addresses, time and size. It waits and retries on 429 and 5xx. It
   * rejects on 401 and 403, which ends the sync with that reason. It resolves for 2xx, 304, 404 and 410.
   */
  readonly fetch: (url: string, request?: ReaderRequest) => Promise<ReaderResponse>
  /** Aborted when the sync is stopped. */
  readonly signal: AbortSignal
}

export interface ReaderDocument {
  /** Identifies the document within its source; its address if it has one. */
  readonly uri: string
  readonly title: string
  readonly content: string
  /** Default: `markdown`. */
  readonly format?: "markdown" | "text"
  /** Must change whenever the document does. */
  readonly revision?: string
  /** Labels that may read it. It is added only to a source all of whose labels are among these. */
  readonly labels?: ReadonlyArray<string>
}

/** Result of a step. It is stored with `next` before the next step begins. */
export interface ReaderStep {
  readonly documents: ReadonlyArray<ReaderDocument>
  /** Documents that exist and have the revision of `known`. */
  readonly unchanged?: ReadonlyArray<string>
  readonly removed?: ReadonlyArray<string>
  /** JSON position of the next step. Without it the pass is complete. */
  readonly next?: unknown
  /** At the end of a pass: JSON for the next pass. */
  readonly cursor?: unknown
  /** At the end of a pass: false if documents that it did not name stay. */
  readonly complete?: boolean
}

export interface HostReader {
  readonly title: ReaderWords
  readonly description: ReaderWords
  readonly settings: Readonly<Record<string, ReaderSetting>>
  readonly read: (context: ReaderContext<Readonly<Record<string, unknown>>>) => Promise<ReaderStep>
}
