/** The knowledge sources of an agent, their jobs and their crawls. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query"
import { call, firstPage } from "./Client.ts"

const sourceTypes = ["URL", "SITEMAP", "FILE", "IMAGE", "BULK_UPLOAD"] as const
type SourceType = (typeof sourceTypes)[number]
export type SourceStatus = "PENDING" | "PROCESSING" | "READY" | "FAILED"
type JobStatus = "QUEUED" | "RUNNING" | "SUCCEEDED" | "FAILED" | "CANCELLED"

export interface Job {
  readonly id: string
  readonly type: "INGEST" | "REINDEX"
  readonly status: JobStatus
  readonly progress: number
  readonly chunksCreated: number | null
  readonly error: string | null
}

/** What differs by type is optional here; the service says what is missing. */
export interface SourceConfig {
  readonly url?: string
  readonly sitemapUrl?: string
  readonly fileUrl?: string
  readonly fileName?: string
  readonly maxDepth?: number
  readonly includePatterns?: ReadonlyArray<string>
  readonly excludePatterns?: ReadonlyArray<string>
  readonly refresh?: "off" | "daily" | "weekly"
  readonly artifact?: string
}

interface SourceBase {
  readonly id: string
  readonly agentId: string
  readonly type: SourceType
  readonly name: string
  readonly status: SourceStatus
  readonly config: SourceConfig
  readonly latestJob: Job | null
}

export interface SourceItem extends SourceBase {
  readonly lastSyncedAt: string | null
  readonly lastError: string | null
}

export interface SourceDetail extends SourceBase {
  readonly error: string | null
}

/** True while a job of the source has not ended: it is looked at again soon. */
export const isMoving = ({ latestJob }: SourceBase): boolean =>
  latestJob !== null && (latestJob.status === "QUEUED" || latestJob.status === "RUNNING")

/** True for a source that nobody has had read yet. */
export const isUntouched = ({ latestJob, status }: SourceBase): boolean =>
  status === "PENDING" && latestJob === null

const soon = 1_000

interface SourcePage {
  readonly sources: ReadonlyArray<SourceItem>
  readonly nextCursor: string | null
}

export const sources = (agentId: string) =>
  infiniteQueryOptions({
    queryKey: ["sources", "of", agentId],
    queryFn: ({ pageParam, signal }) =>
      call<SourcePage>("GET", "/api/sources", { query: { agentId, limit: 50, cursor: pageParam }, signal }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor,
    enabled: agentId !== "",
    refetchInterval: ({ state }) =>
      state.data?.pages.some((page) => page.sources.some(isMoving)) === true ? soon : false
  })

export const source = (id: string) =>
  queryOptions({
    queryKey: ["sources", "one", id],
    queryFn: ({ signal }) => call<SourceDetail>("GET", `/api/sources/${id}`, { signal }),
    refetchInterval: ({ state }) => (state.data !== undefined && isMoving(state.data) ? soon : false)
  })

export interface NewSource {
  readonly agentId: string
  readonly type: SourceType
  readonly name: string
  readonly config: SourceConfig
}

interface Created {
  readonly source: SourceBase
}

export const createSource = (body: NewSource) => call<Created>("POST", "/api/sources", { body })

/** One document, or one ZIP of documents. */
export const uploadSource = (kind: "upload" | "bulk-upload", agentId: string, name: string, file: File) => {
  const body = new FormData()
  body.set("agentId", agentId)
  if (name !== "") body.set("name", name)
  body.set("file", file)
  return call<Created>("POST", `/api/sources/${kind}`, { body })
}

export const patchSource = (id: string, body: { readonly name?: string; readonly config?: SourceConfig }) =>
  call("PATCH", `/api/sources/${id}`, { body })

export const deleteSource = (id: string) => call("DELETE", `/api/sources/${id}`)

export const syncSource = (id: string, force: boolean) =>
  call("POST", `/api/sources/${id}/sync`, { body: { force } })

export const outcomes = ["indexed", "unchanged", "skipped", "failed", "redirected"] as const
export type Outcome = (typeof outcomes)[number]

export interface CrawlEntry {
  readonly url: string
  readonly depth: number
  readonly parent: string | null
  readonly outcome: Outcome
  readonly reason: string | null
  readonly message: string | null
  readonly httpStatus: number | null
  readonly target: string | null
}

interface CrawlReport {
  readonly job: { readonly id: string; readonly status: JobStatus } | null
  readonly entries: ReadonlyArray<CrawlEntry>
  readonly nextCursor: string | null
}

/** `job` names the job and its state: a report is asked for anew when either changes. */
export const crawl = (id: string, outcome: Outcome | "all", job: string) =>
  infiniteQueryOptions({
    queryKey: ["sources", "one", id, "crawl", outcome, job],
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      call<CrawlReport>("GET", `/api/sources/${id}/crawl`, {
        query: { limit: 100, cursor: pageParam, outcome: outcome === "all" ? undefined : outcome },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor
  })

export interface DryRunLine {
  readonly url: string
  readonly included: boolean
  readonly reason: string | null
  readonly message: string | null
  readonly pattern: string | null
}

export interface DryRun {
  readonly urls: ReadonlyArray<DryRunLine>
  readonly complete: boolean
  readonly error: string | null
}

export const dryRun = (type: "URL" | "SITEMAP", config: SourceConfig) =>
  call<DryRun>("POST", "/api/sources/dry-run", { body: { type, config } })
