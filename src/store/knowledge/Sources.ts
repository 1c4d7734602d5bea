/** Knowledge sources with the summary of their latest job. */
import * as SqlClient from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { AgentId, SourceId } from "../../domain/Ids.ts"
import { pageOf } from "../../domain/Page.ts"
import {
  type ArtifactRef,
  builtInEmbeddingProfile,
  contentFields,
  LatestJob,
  Source,
  type SourceStatus,
  SourceType
} from "../../domain/knowledge/Source.ts"
import { toJsonb } from "../Jsonb.ts"
import { containing } from "../Like.ts"
import { restartScanIfFull } from "./PassageScans.ts"
import * as Rows from "../Rows.ts"

export interface SourceFilter {
  readonly limit: number
  /** The id of the last row of the previous page. */
  readonly after?: string | undefined
  readonly status?: SourceStatus | undefined
  readonly type?: SourceType | undefined
  /** Part of the name. */
  readonly text?: string | undefined
  /** The uploaded original. */
  readonly artifact?: ArtifactRef | undefined
}

const Row = Schema.Struct({
  ...Source.fields,
  labels: Schema.Array(Schema.String),
  lastSyncedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  latestJob: Schema.NullOr(LatestJob)
})

const decodeRow = ({ labels, ...row }: typeof Row.Type) =>
  Source.make(labels.length === 0 ? row : { ...row, labels })

export const isSqlError = (error: unknown): error is SqlError => error instanceof SqlError

export class SourceStore extends Effect.Service<SourceStore>()("store/knowledge/Sources", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = (config: Fragment) => sql`
      s.id, s.agent_id as "agentId", s.type, s.name, coalesce(s.next_labels, s.labels) as labels, s.status, ${config} as config,
      s.last_synced_at as "lastSyncedAt", s.last_error as "lastError",
      (
        select json_build_object('id', j.id, 'type', j.type, 'status', j.status, 'progress', j.progress,
          'chunksCreated', j.chunks_created, 'error', j.error)
        from ingestion_jobs j where j.tenant_id = s.tenant_id and j.source_id = s.id order by j.generation desc limit 1
      ) as "latestJob"`

    const embedding = sql`(
      select json_build_object('profile', max(stats.profile), 'chunks', count(c.id),
        'embedded', count(c.id) filter (
          where e.chunk_id is not null
            or (not c.english and coalesce(stats.profile, ${builtInEmbeddingProfile}) = ${builtInEmbeddingProfile})
        ),
        'error', (select message from embedding_failures f where f.tenant_id = s.tenant_id and f.source_id = s.id))
      from agent_stats stats
      left join chunks c on c.tenant_id = s.tenant_id and c.source_id = s.id and c.version is not null
      left join chunk_embeddings e on e.tenant_id = c.tenant_id and e.chunk_id = c.id and e.profile = stats.profile
      where stats.tenant_id = s.tenant_id and stats.agent_id = s.agent_id
    )`

    const find = (scope: AgentScope, id: SourceId) =>
      sql`
        select ${columns(sql`s.config`)}, ${embedding} as embedding from sources s
        where s.tenant_id = ${scope.tenantId} and s.agent_id = ${scope.agentId} and s.id = ${id}`.pipe(
        Rows.first(Row),
        Effect.map((found) => (found._tag === "Some" ? decodeRow(found.value) : null)),
        Effect.withSpan("SourceStore.find")
      )

    /** Newest first. Content in configs is left out. */
    const list = Effect.fn("SourceStore.list")(function* (scope: AgentScope, filter: SourceFilter) {
      const conditions = [
        sql`s.tenant_id = ${scope.tenantId}`,
        sql`s.agent_id = ${scope.agentId}`,
        ...(filter.after === undefined ? [] : [sql`s.id < ${filter.after}`]),
        ...(filter.status === undefined ? [] : [sql`s.status = ${filter.status}`]),
        ...(filter.type === undefined ? [] : [sql`s.type = ${filter.type}`]),
        ...(filter.text === undefined ? [] : [sql`s.name ilike ${containing(filter.text)}`]),
        ...(filter.artifact === undefined ? [] : [sql`s.config ->> 'artifact' = ${filter.artifact}`])
      ]
      const found = yield* sql`
        select ${columns(sql`s.config - ${contentFields}::text[]`)} from sources s where ${sql.and(conditions)} order by s.id desc limit ${filter.limit + 1}`.pipe(
        Rows.all(Row)
      )
      return pageOf(found.map(decodeRow), filter.limit)
    }, Effect.orDie)

    /**
     * Locks the agent until the caller's transaction ends, so that a source can be inserted. False when the tenant has
     * no such agent.
     */
    const holdAgent = ({ agentId, tenantId }: AgentScope) =>
      sql`select 1 from agents where tenant_id = ${tenantId} and id = ${agentId} for key share`.pipe(Rows.any)

    const insert = (
      scope: AgentScope,
      source: {
        readonly id: SourceId
        readonly type: SourceType
        readonly name: string
        readonly labels: ReadonlyArray<string>
        readonly config: unknown
      }
    ) =>
      sql`
        insert into sources (id, tenant_id, agent_id, type, name, labels, config)
        values (${source.id}, ${scope.tenantId}, ${scope.agentId}, ${source.type}, ${source.name},
          ${toJsonb(source.labels)}::jsonb, ${toJsonb(source.config)}::jsonb)`.pipe(Rows.none)

    /** The agent of the source. */
    const agentOf = (scope: TenantScope, id: SourceId) =>
      sql`
        select agent_id as "agentId" from sources where tenant_id = ${scope.tenantId} and id = ${id}`.pipe(
        Rows.first(Schema.Struct({ agentId: AgentId })),
        Effect.map(Option.map(({ agentId }) => agentId))
      )

    /**
     * Sets the fields in `changes`. False when the source does not exist. The documents of a connector were chosen for
     * its labels, so labels with which more people may read them wait for the next sync.
     */
    const update = (
      scope: AgentScope,
      id: SourceId,
      {
        config,
        labels,
        name
      }: {
        readonly name?: string | undefined
        readonly labels?: ReadonlyArray<string> | undefined
        readonly config?: unknown
      }
    ) => {
      const assignments = [
        sql`updated_at = now()`,
        ...(name === undefined ? [] : [sql`name = ${name}`]),
        ...(labels === undefined ? [] : labelAssignments(toJsonb(labels))),
        ...(config === undefined ? [] : [sql`config = ${toJsonb(config)}::jsonb`])
      ]
      return sql`
        update sources set ${sql.csv(assignments)}
        where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId} and id = ${id} returning id`.pipe(
        Rows.any
      )
    }

    const labelAssignments = (next: string) => {
      const appliesAtOnce = sql`(type <> 'CONNECTOR' or labels_are_within(${next}::jsonb, labels))`
      return [
        sql`labels = case when ${appliesAtOnce} then ${next}::jsonb else labels end`,
        sql`next_labels = case when ${appliesAtOnce} then null else ${next}::jsonb end`
      ]
    }

    /** Protects the source from removal until the caller's transaction ends. False when it does not exist. */
    const hold = (scope: AgentScope, id: SourceId) =>
      sql`
        select id from sources
        where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId} and id = ${id} for key share`.pipe(
        Rows.any
      )

    /**
     * Locks the agent's index and then the source, in the same order as publishing a generation. Returns whether a job
     * of it is running; none can start until the caller's transaction ends. None when the source does not exist.
     */
    const seize = Effect.fn("SourceStore.seize")(function* (scope: AgentScope, id: SourceId) {
      yield* sql`
        insert into agent_stats (tenant_id, agent_id)
        select tenant_id, id from agents where tenant_id = ${scope.tenantId} and id = ${scope.agentId} on conflict do nothing`
      yield* sql`
        select version from agent_stats
        where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId} for update`
      const held = yield* sql`
        select id from sources
        where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId} and id = ${id} for update`
      if (held.length === 0) return Option.none<{ readonly running: boolean }>()
      const running = yield* sql`
        select id from ingestion_jobs
        where tenant_id = ${scope.tenantId} and source_id = ${id} and status = 'RUNNING'`
      return Option.some({ running: running.length > 0 })
    })

    /**
     * Removes a source locked by `seize`, with its jobs, documents, chunks and vectors. Raises the agent's index
     * version, so that every process drops them. A queue job of it may remain, which then finds nothing to do.
     */
    const remove = Effect.fn("SourceStore.remove")(function* (scope: AgentScope, id: SourceId) {
      yield* sql`
        with gone as (
          select count(*) as chunks, coalesce(sum(length), 0) as length from chunks
          where tenant_id = ${scope.tenantId} and source_id = ${id} and agent_id = ${scope.agentId} and version is not null
        )
        update agent_stats set version = version + 1, chunk_count = chunk_count - gone.chunks,
          length_sum = length_sum - gone.length
        from gone where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId}`
      yield* restartScanIfFull(sql, scope, sql`c.source_id = ${id}`)
      yield* sql`
        delete from sources
        where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId} and id = ${id}`
    })

    return { find, agentOf, list, insert, update, hold, seize, remove, holdAgent } as const
  })
}) {}
