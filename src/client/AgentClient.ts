/** Operations on one agent: the public REST API as methods. Ids and timestamps are strings, as on the wire. */
import type { RunTrace } from "../domain/chat/AgentRun.ts"
import type { StreamTurnRequest } from "../domain/chat/ChatTurn.ts"
import type { Chunk, RetrieveRequest } from "../domain/knowledge/Chunk.ts"
import type { CrawlOutcome, DryRun, DryRunRequest } from "../domain/knowledge/Crawl.ts"
import type {
  CreateSource,
  EmbeddingState,
  IngestionJob,
  PatchSource,
  SourceStatus,
  SourceType
} from "../domain/knowledge/Source.ts"
import type { Usage } from "../domain/billing/Usage.ts"
import type { VisitorToken, VisitorTokenRequest } from "../domain/chat/VisitorToken.ts"
import type {
  ConversationDetail,
  ConversationPage,
  MessagePage
} from "../http/public/conversations/ConversationsApi.ts"
import type { CrawlReport } from "../http/public/knowledge/CrawlApi.ts"
import type {
  ChangedSource,
  DeletedSource,
  SourceCreation,
  SourceDetail,
  SourcePage,
  SyncedSource
} from "../http/public/knowledge/SourcesApi.ts"
import * as Chat from "./Chat.ts"
import { SpokeError } from "./Failure.ts"
import { routes } from "./Routes.ts"
import type { StreamPart } from "../domain/chat/StreamPart.ts"
import type { CallOptions, Transport } from "./Transport.ts"

export type ChatStreamRequest = typeof StreamTurnRequest.Encoded
export type SourceInput = typeof CreateSource.Encoded
export type SourceView = typeof SourceDetail.Encoded

export interface PageOptions {
  /** 1 to 100; default: 20. */
  readonly limit?: number | undefined
  /** `nextCursor` of the previous page. */
  readonly cursor?: string | undefined
}

const idempotent = ({ idempotencyKey }: Chat.IdempotentOptions = {}) => ({
  "idempotency-key": idempotencyKey
})

/** A document as bytes or as a `Blob`. Its type is detected from its contents. */
export interface Upload {
  readonly file: Blob | Uint8Array<ArrayBuffer> | string
  /** With its extension, such as `guide.md`. A `File` has its own name. */
  readonly fileName?: string | undefined
  /** Name of the source; default: the file's name. */
  readonly name?: string | undefined
}

export interface WaitOptions extends CallOptions {
  /** Called with 0 to 100 whenever the progress changes. */
  readonly onProgress?: ((progress: number) => void) | undefined
  /** Polling interval in milliseconds; default: 250. */
  readonly every?: number | undefined
}

const sleep = (milliseconds: number, signal: AbortSignal | undefined) =>
  new Promise<void>((resolve, reject) => {
    // It has no event any more.
    signal?.throwIfAborted()
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop)
      resolve()
    }, milliseconds)
    signal?.addEventListener("abort", stop, { once: true })
  })

/** Programs without types pass other values too, which a `Blob` would convert to text. */
const isFile = (file: unknown) =>
  typeof file === "string" ||
  file instanceof Blob ||
  ArrayBuffer.isView(file) ||
  Object.prototype.toString.call(file) === "[object ArrayBuffer]"

const formOf = ({ file, fileName, name }: Upload) => {
  if (!isFile(file)) {
    throw new SpokeError({ code: "VALIDATION_ERROR", message: "file is no text, no bytes and no Blob." })
  }
  const form = new FormData()
  if (name !== undefined) form.set("name", name)
  const ownName = typeof File === "function" && file instanceof File ? file.name : "document"
  form.set("file", file instanceof Blob ? file : new Blob([file]), fileName ?? ownName)
  return form
}

/** The seconds after which a refused call may be repeated; null unless a rate limit has refused it. */
const rateLimitSeconds = (cause: unknown): number | null => {
  if (!(cause instanceof SpokeError) || cause.code !== "RATE_LIMITED") return null
  const seconds = cause.details?.["retryAfterSeconds"]
  return typeof seconds === "number" ? seconds : 1
}

const sourcesOf = ({ call }: Transport) => {
  const get = (id: string, options?: CallOptions) =>
    call<SourceView>(routes.sources.get, { path: { id } }, options)

  const getWhenAllowed = async (id: string, options: CallOptions): Promise<SourceView> => {
    for (;;) {
      try {
        return await get(id, options)
      } catch (cause) {
        const seconds = rateLimitSeconds(cause)
        if (seconds === null) throw cause
        await sleep(seconds * 1_000, options.signal)
      }
    }
  }

  /**
   * Resolves once the source is `READY` and has no waiting or running job. Rejects with `SOURCE_FAILED` when it is
   * `FAILED`, and with `SOURCE_NOT_SYNCED` when it has no job.
   */
  const awaitReady = async (id: string, options: WaitOptions = {}): Promise<SourceView> => {
    let reported = -1
    for (;;) {
      const source = await getWhenAllowed(id, options)
      const { progress: jobProgress = 0, status = "SUCCEEDED" } = source.latestJob ?? {}
      // The source keeps the status of its last job until the next one begins.
      const isIngesting = status === "QUEUED" || status === "RUNNING"
      const ready = source.status === "READY" && !isIngesting
      const progress = ready ? 100 : jobProgress
      if (progress !== reported) options.onProgress?.((reported = progress))
      if (ready) return source
      if (source.status === "FAILED" && !isIngesting) {
        throw new SpokeError({ code: "SOURCE_FAILED", message: source.error ?? "The source has failed." })
      }
      if (source.status === "PENDING" && !isIngesting) {
        throw new SpokeError({
          code: "SOURCE_NOT_SYNCED",
          message: "The source has no job that reads it. Call sources.sync first."
        })
      }
      await sleep(options.every ?? 250, options.signal)
    }
  }

  return {
    /** Newest first. */
    list: (
      query: PageOptions & {
        readonly status?: typeof SourceStatus.Encoded | undefined
        readonly type?: typeof SourceType.Encoded | undefined
      } = {},
      options?: CallOptions
    ) => call<typeof SourcePage.Encoded>(routes.sources.list, { query: { ...query } }, options),
    /** Creates a source and queues its first job. `ready` waits for the end of the job. */
    create: (source: SourceInput, options?: Chat.IdempotentOptions) =>
      call<typeof SourceCreation.Encoded>(
        routes.sources.create,
        { json: source, headers: idempotent(options) },
        options
      ),
    /** Uploads one document of up to 50 MiB. */
    upload: async (upload: Upload, options?: CallOptions) =>
      call<typeof SourceCreation.Encoded>(routes.sources.upload, { form: formOf(upload) }, options),
    get,
    ready: awaitReady,
    /** Number of its chunks, and of those with a vector. */
    embedding: (id: string, options?: CallOptions) =>
      call<typeof EmbeddingState.Encoded>(routes.sources.embedding, { path: { id } }, options),
    /** A new `config` applies from the next sync. */
    update: (id: string, changes: typeof PatchSource.Encoded, options?: CallOptions) =>
      call<typeof ChangedSource.Encoded>(routes.sources.patch, { path: { id }, json: changes }, options),
    /** Deletes the source with its documents and chunks. */
    delete: (id: string, options?: CallOptions) =>
      call<typeof DeletedSource.Encoded>(routes.sources.remove, { path: { id } }, options),
    /** Queues another job. `force` also reads and embeds unchanged documents. */
    sync: (id: string, { force, ...options }: CallOptions & { readonly force?: boolean } = {}) =>
      call<typeof SyncedSource.Encoded>(
        routes.sources.sync,
        { path: { id }, json: force === undefined ? {} : { force } },
        options
      ),
    /** The outcome of each address in the latest job, with its reason. */
    crawlReport: (
      id: string,
      query: PageOptions & { readonly outcome?: typeof CrawlOutcome.Encoded | undefined } = {},
      options?: CallOptions
    ) =>
      call<typeof CrawlReport.Encoded>(routes.crawl.report, { path: { id }, query: { ...query } }, options),
    /** The pages that a source would read. Stores nothing. */
    dryRun: (request: typeof DryRunRequest.Encoded, options?: CallOptions) =>
      call<typeof DryRun.Encoded>(routes.crawl.dryRun, { json: request }, options)
  }
}

const conversationsOf = ({ call }: Transport) => ({
  /** Conversations created through the API, newest first. */
  list: (query: PageOptions & { readonly endUserId?: string | undefined } = {}, options?: CallOptions) =>
    call<typeof ConversationPage.Encoded>(routes.conversations.list, { query: { ...query } }, options),
  /** The conversation with all its messages, oldest first. */
  get: (id: string, options?: CallOptions) =>
    call<typeof ConversationDetail.Encoded>(routes.conversations.get, { path: { id } }, options),
  /** One page of its messages, oldest first. */
  messages: (id: string, query: PageOptions = {}, options?: CallOptions) =>
    call<typeof MessagePage.Encoded>(
      routes.conversations.messages,
      { path: { id }, query: { ...query } },
      options
    )
})

const runsOf = ({ call, stream }: Transport) => ({
  /** The trace of a run, page by page. */
  get: (
    runId: string,
    query: { readonly limit?: number | undefined; readonly cursor?: string | undefined } = {},
    options?: CallOptions
  ) =>
    call<typeof RunTrace.Encoded>(routes.agentRuns.trace, { path: { runId }, query: { ...query } }, options),
  /** Stops a running turn and keeps the text so far. */
  stop: (runId: string, options?: CallOptions) =>
    call<{ readonly id: string; readonly status: (typeof RunTrace.Encoded)["status"] }>(
      routes.agentRuns.stop,
      { path: { runId } },
      options
    ),
  /** Streams a turn again, without its first `after` parts. */
  follow: (runId: string, { after, ...options }: CallOptions & { readonly after?: number } = {}) =>
    stream(routes.agentRuns.follow, { path: { runId }, query: { after } }, options)
})

/** The client's methods over `transport`. */
export const make = (transport: Transport) => {
  const { call, stream } = transport
  return {
    /** A turn with its complete reply. */
    chat: Chat.make((request, options) =>
      call<Chat.ChatResult>(routes.chat.complete, { json: request, headers: idempotent(options) }, options)
    ),
    /** The same turn as a stream. An error before it begins rejects; a later failure is an `error` part. */
    stream: (request: ChatStreamRequest, options?: Chat.IdempotentOptions): AsyncIterable<StreamPart> =>
      stream(routes.chat.stream, { json: request, headers: idempotent(options) }, options),
    /** Searches the sources without generating a reply. */
    retrieve: (request: typeof RetrieveRequest.Encoded, options?: CallOptions) =>
      call<{ readonly chunks: ReadonlyArray<typeof Chunk.Encoded> }>(
        routes.retrieve.retrieve,
        { json: request },
        options
      ),
    sources: sourcesOf(transport),
    ingestionJobs: {
      get: (id: string, options?: CallOptions) =>
        call<typeof IngestionJob.Encoded>(routes.ingestionJobs.get, { path: { id } }, options)
    },
    conversations: conversationsOf(transport),
    runs: runsOf(transport),
    /** The agent's usage of the current period. */
    usage: (options?: CallOptions) => call<typeof Usage.Encoded>(routes.usage.current, {}, options),
    /** Issues a token that names a visitor of a page and limits what the visitor may read. */
    visitorToken: (request: typeof VisitorTokenRequest.Encoded = {}, options?: CallOptions) =>
      call<typeof VisitorToken.Encoded>(routes.visitorTokens.create, { json: request }, options)
  }
}

export type AgentClient = ReturnType<typeof make>
