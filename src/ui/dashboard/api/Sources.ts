/** The knowledge sources of an agent, their jobs and their crawls. */
import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query"
import type { CrawlOutcome, DryRun, DryRunRequest } from "../../../domain/knowledge/Crawl.ts"
import type { QaConfig, TextConfig } from "../../../domain/knowledge/CuratedSource.ts"
import type {
  ConnectorConfig,
  FileConfig,
  PatchSource,
  SitemapConfig,
  SourceStatus as Status,
  SourceType as Type,
  UploadedFileConfig,
  UrlConfig
} from "../../../domain/knowledge/Source.ts"
import type { CreateAgentSource } from "../../../http/hosted/knowledge/SourcesApi.ts"
import type { CrawlReport } from "../../../http/public/knowledge/CrawlApi.ts"
import type {
  SourceCreation,
  SourceDetail as Detail,
  SourceItem as Item,
  SourcePage,
  SyncRequest
} from "../../../http/public/knowledge/SourcesApi.ts"
import { call, firstPage, pagesOf } from "./Client.ts"
import { membersOf } from "./membersOf.ts"

export type SourceType = typeof Type.Encoded
export type SourceStatus = typeof Status.Encoded

type Configs = typeof UrlConfig.Encoded &
  typeof SitemapConfig.Encoded &
  typeof FileConfig.Encoded &
  typeof TextConfig.Encoded &
  typeof QaConfig.Encoded &
  typeof ConnectorConfig.Encoded &
  typeof UploadedFileConfig.Encoded
/** All fields of configs, because forms read them for every type. */
export type SourceConfig = Partial<Omit<Configs, "metadata">>

export type SourceItem = typeof Item.Encoded
/** The API declares `config` only as an object. */
export type SourceDetail = typeof Detail.Encoded & { readonly config: SourceConfig }
type Watched = Pick<SourceItem, "latestJob" | "status">

/** True while a job of the source is queued or running. The source is then polled. */
export const hasActiveJob = ({ latestJob }: Watched): boolean =>
  latestJob !== null && (latestJob.status === "QUEUED" || latestJob.status === "RUNNING")

export const isNeverRead = ({ latestJob, status }: Watched): boolean =>
  status === "PENDING" && latestJob === null

const refetchIntervalMs = 1_000

/** A filter of the list of sources. An empty or missing member matches all. */
export interface SourceFilter {
  /** Part of the name. */
  readonly q?: string
  readonly type?: SourceType | undefined
  readonly status?: SourceStatus | undefined
}

const sourcesOf = (agentId: string) => ["sources", "of", agentId] as const

export const sources = (agentId: string, filter: SourceFilter = {}) =>
  infiniteQueryOptions({
    queryKey: [...sourcesOf(agentId), filter] as const,
    placeholderData: keepPreviousData,
    queryFn: ({ pageParam, signal }) =>
      call<typeof SourcePage.Encoded>("GET", "/api/sources", {
        query: { ...filter, agentId, limit: 50, cursor: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor,
    enabled: agentId !== "",
    // A poll reads all pages, so longer lists are polled less often.
    refetchInterval: ({ state: { data } }) =>
      data?.pages.some((page) => page.sources.some(hasActiveJob)) === true
        ? refetchIntervalMs * data.pages.length
        : false
  })

export const source = (id: string) =>
  queryOptions({
    queryKey: ["sources", "one", id],
    queryFn: ({ signal }) => call<SourceDetail>("GET", `/api/sources/${id}`, { signal }),
    refetchInterval: ({ state }) =>
      state.data !== undefined && hasActiveJob(state.data) ? refetchIntervalMs : false
  })

export const createSource = (body: typeof CreateAgentSource.Encoded) =>
  call<typeof SourceCreation.Encoded, typeof CreateAgentSource.Encoded>("POST", "/api/sources", { body })

export const patchSource = (id: string, body: typeof PatchSource.Encoded) =>
  call<unknown, typeof PatchSource.Encoded>("PATCH", `/api/sources/${id}`, { body })

export const deleteSource = (id: string) => call("DELETE", `/api/sources/${id}`)

export const syncSource = (id: string, force: boolean) =>
  call<unknown, typeof SyncRequest.Encoded>("POST", `/api/sources/${id}/sync`, { body: { force } })

export type Outcome = typeof CrawlOutcome.Encoded
export const outcomes = membersOf<Outcome>({
  indexed: true,
  unchanged: true,
  skipped: true,
  failed: true,
  redirected: true
})

/** `job` identifies the job and its state. The report is read again if either changes. */
export const crawl = (id: string, outcome: Outcome | "all", job: string) => ({
  ...pagesOf<typeof CrawlReport.Encoded>(
    ["sources", "one", id, "crawl", outcome, job],
    `/api/sources/${id}/crawl`,
    { limit: 100, outcome: outcome === "all" ? undefined : outcome }
  ),
  placeholderData: keepPreviousData
})

export const dryRun = (body: typeof DryRunRequest.Encoded) =>
  call<typeof DryRun.Encoded, typeof DryRunRequest.Encoded>("POST", "/api/sources/dry-run", { body })
