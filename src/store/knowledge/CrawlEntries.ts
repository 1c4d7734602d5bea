/** The crawl ledger: what a job did with each address, for reports and for the next job to compare with. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { CrawlEntry, type CrawlOutcome, ReportedJob } from "../../domain/knowledge/Crawl.ts"
import type { SourceId } from "../../domain/Ids.ts"
import type { IngestionTask } from "./IngestionJobs.ts"
import { toJsonb } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

/** A stored line. The migration explains the columns. */
export interface NewEntry extends CrawlEntry {
  readonly place: number
  readonly etag: string | null
  readonly lastModified: string | null
  readonly listedAt: string | null
  /** Milliseconds since 1970. */
  readonly fetchedAt: number
  readonly links: ReadonlyArray<string> | null
  readonly digest: string | null
  readonly fingerprint: string | null
  readonly revision: number
}

/** What the last successful sync stored about an address that it read. */
const AddressState = Schema.Struct({
  url: Schema.String,
  parent: Schema.NullOr(Schema.String),
  outcome: Schema.String,
  reason: Schema.NullOr(Schema.String),
  target: Schema.String,
  etag: Schema.NullOr(Schema.String),
  lastModified: Schema.NullOr(Schema.String),
  listedAt: Schema.NullOr(Schema.String),
  fetchedAt: Schema.Number,
  links: Schema.NullOr(Schema.Array(Schema.String)),
  digest: Schema.NullOr(Schema.String),
  fingerprint: Schema.NullOr(Schema.String)
})
export type AddressState = typeof AddressState.Type

const Line = Schema.Struct({ place: Schema.Int, ...CrawlEntry.fields })
type Line = typeof Line.Type

const Report = Schema.Struct({ generation: Schema.NumberFromString, ...ReportedJob.fields })

/** The scope of a report: an agent, for its keys, or a tenant, for dashboard users. */
export type ReportScope = AgentScope | TenantScope

export interface LineFilter {
  readonly limit: number
  /** Position of the last line of the previous page. */
  readonly after?: number | undefined
  readonly outcome?: CrawlOutcome | undefined
}

export class CrawlEntryStore extends Effect.Service<CrawlEntryStore>()("store/knowledge/CrawlEntries", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Adds lines to the job's ledger. */
    const add = (task: IngestionTask, entries: ReadonlyArray<NewEntry>) =>
      entries.length === 0
        ? Effect.void
        : sql`
            insert into crawl_entries (
              tenant_id, source_id, generation, place, url, depth, parent, outcome, reason, message, http_status, target,
              etag, last_modified, listed_at, fetched_at, links, digest, fingerprint, revision
            )
            select ${task.tenantId}, ${task.sourceId}, ${task.generation}, e.place, e.url, e.depth, e.parent, e.outcome, e.reason,
              e.message, e."httpStatus", e.target, e.etag, e."lastModified", e."listedAt",
              to_timestamp(e."fetchedAt" / 1000), nullif(e.links, 'null'::jsonb), e.digest, e.fingerprint, e.revision
            from jsonb_to_recordset(${toJsonb(entries)}::jsonb) as e (
              place int, url text, depth int, parent text, outcome text, reason text, message text, "httpStatus" int,
              target text, etag text, "lastModified" text, "listedAt" text, "fetchedAt" float8, links jsonb, digest text,
              fingerprint text, revision int
            )
            where exists (select 1 from sources where tenant_id = ${task.tenantId} and id = ${task.sourceId})`.pipe(
            Rows.none,
            Effect.withSpan("CrawlEntryStore.add")
          )

    /** Removes the lines of the job's earlier attempts. */
    const clear = (task: IngestionTask) =>
      sql`
        delete from crawl_entries
        where tenant_id = ${task.tenantId} and source_id = ${task.sourceId} and generation = ${task.generation}`.pipe(
        Rows.none
      )

    /** Removes the lines of all jobs but this one and the one of the live generation. */
    const prune = (task: IngestionTask) =>
      sql`
        delete from crawl_entries e using sources s
        where e.tenant_id = ${task.tenantId} and e.source_id = ${task.sourceId}
          and s.tenant_id = e.tenant_id and s.id = e.source_id
          and e.generation not in (${task.generation}, s.live_generation)`.pipe(Rows.none)

    /** The stored state of live documents that code of this `revision` has read. */
    const storedStates = (task: IngestionTask, revision: number) =>
      sql`
        select e.url, e.parent, e.outcome, e.reason, e.target, e.etag, e.last_modified as "lastModified",
          e.listed_at as "listedAt", (extract(epoch from e.fetched_at) * 1000)::float8 as "fetchedAt", e.links, e.digest,
          e.fingerprint
        from sources s
        join crawl_entries e on e.tenant_id = s.tenant_id and e.source_id = s.id and e.generation = s.live_generation
        where s.tenant_id = ${task.tenantId} and s.id = ${task.sourceId} and e.revision = ${revision} and e.target is not null
          and (
            e.digest is null
            or exists (
              select 1 from documents d
              where d.tenant_id = s.tenant_id and d.source_id = s.id and d.generation = s.live_generation and d.uri = e.target
            )
          )
        order by e.place`.pipe(Rows.all(AddressState), Effect.withSpan("CrawlEntryStore.storedStates"))

    const exists = (scope: ReportScope, sourceId: SourceId) =>
      sql`
        select 1 from sources s
        where s.id = ${sourceId} and s.tenant_id = ${scope.tenantId}
          and ${"agentId" in scope ? sql`s.agent_id = ${scope.agentId}` : sql`true`}`.pipe(Rows.any)

    /** The job that runs or ended last. None when the source has had none, or is outside the scope. */
    const lastJob = (scope: ReportScope, sourceId: SourceId) =>
      sql`
        select j.generation, j.id, j.type, j.status, j.attempt_errors as "attemptErrors"
        from ingestion_jobs j join sources s on s.tenant_id = j.tenant_id and s.id = j.source_id
        where s.id = ${sourceId} and s.tenant_id = ${scope.tenantId}
          and ${"agentId" in scope ? sql`s.agent_id = ${scope.agentId}` : sql`true`}
          and j.status <> 'QUEUED'
        order by j.generation desc limit 1`.pipe(
        Rows.first(Report),
        Effect.withSpan("CrawlEntryStore.lastJob")
      )

    /** One line more than `limit`, in the order in which they were decided. */
    const list = (
      { tenantId }: TenantScope,
      sourceId: SourceId,
      generation: number,
      { limit, after = -1, outcome }: LineFilter
    ) =>
      sql`
        select place, url, depth, parent, outcome, reason, message, http_status as "httpStatus", target
        from crawl_entries
        where tenant_id = ${tenantId} and source_id = ${sourceId} and generation = ${generation} and place > ${after}
          and ${outcome === undefined ? sql`true` : sql`outcome = ${outcome}`}
        order by place limit ${limit + 1}`.pipe(Rows.all(Line), Effect.withSpan("CrawlEntryStore.list"))

    return { add, clear, prune, storedStates, exists, lastJob, list } as const
  })
}) {}
