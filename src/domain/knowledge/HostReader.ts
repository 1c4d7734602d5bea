/** A reader that the host of the library brings along and that runs in this process. */
/** A text that people read: in English, or in English and German. */
export type ReaderWords = string | { readonly en: string; readonly de?: string }

/** One setting of a reader, as the dashboard asks for it and as `POST /v1/sources` takes it. */
export interface ReaderSetting {
  readonly label: ReaderWords
  readonly hint?: ReaderWords
  /** `text` by default. A `secret` is sealed and never shown again; a `list` is an array of texts. */
  readonly kind?: "text" | "secret" | "number" | "switch" | "list"
  readonly optional?: boolean
  /** True for the address that secrets are sent to: with another one, they have to be given again. */
  readonly address?: boolean
}

export interface ReaderRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Largest answer in bytes; 20 MiB by default. */
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

/** What a step goes by. */
export interface ReaderContext<Settings> {
  readonly settings: Settings
  /** JSON that the last finished pass left; null for the first one and when everything is to be read anew. */
  readonly cursor: unknown
  /** The `next` of the step before; null at the first step of a pass. */
  readonly position: unknown
  /** The revision of a document that answers now. */
  readonly known: (uri: string) => string | undefined
  /**
   * Asks within the service's rules for addresses, time and size. Waits and asks again on 429 and 5xx; rejects on 401 and 403,
   * which ends the sync with that reason. 2xx, 304, 404 and 410 are answers.
   */
  readonly fetch: (url: string, request?: ReaderRequest) => Promise<ReaderResponse>
  /** Aborted when the sync is stopped. */
  readonly signal: AbortSignal
}

export interface ReaderDocument {
  /** Names the document within its source; its address where it has one. */
  readonly uri: string
  readonly title: string
  readonly content: string
  /** `markdown` by default. */
  readonly format?: "markdown" | "text"
  /** Changes whenever the document does. */
  readonly revision?: string
  /** Labels that may read it: it is added only to a source all of whose labels are among these. */
  readonly labels?: ReadonlyArray<string>
}

/** What a step has read. It is stored with `next` before the next step begins. */
export interface ReaderStep {
  readonly documents: ReadonlyArray<ReaderDocument>
  /** Documents that are there as `known` has them. */
  readonly unchanged?: ReadonlyArray<string>
  readonly removed?: ReadonlyArray<string>
  /** JSON that says where the next step begins; without it the pass is at its end. */
  readonly next?: unknown
  /** At the end of a pass: JSON for the next one. */
  readonly cursor?: unknown
  /** At the end of a pass: false where documents that it did not name stay. */
  readonly complete?: boolean
}

export interface HostReader {
  readonly title: ReaderWords
  readonly description: ReaderWords
  readonly settings: Readonly<Record<string, ReaderSetting>>
  readonly read: (context: ReaderContext<Readonly<Record<string, unknown>>>) => Promise<ReaderStep>
}
