/** Knowledge sources with the summary of their latest job. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../domain/Access.ts"
import { AgentId, SourceId } from "../domain/Ids.ts"
import type { Page } from "../domain/Page.ts"
import { LatestJob, Source, type SourceStatus, SourceType } from "../domain/Source.ts"

export interface SourceFilter {
  readonly limit: number
  /** The id of the last row of the page before. */
  readonly after?: string | undefined
  readonly status?: SourceStatus | undefined
  readonly type?: SourceType | undefined
}

const Row = Schema.Struct({
  ...Source.fields,
  lastSyncedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  latestJob: Schema.NullOr(LatestJob)
})

const decodeRow = (row: typeof Row.Type) => Source.make(row)

export class SourceStore extends Effect.Service<SourceStore>()("store/Sources", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      s.id, s.agent_id as "agentId", s.type, s.name, s.status, s.config,
      s.last_synced_at as "lastSyncedAt", s.last_error as "lastError",
      (
        select json_build_object('id', j.id, 'type', j.type, 'status', j.status, 'progress', j.progress,
          'chunksCreated', j.chunks_created, 'error', j.error)
        from ingestion_jobs j where j.source_id = s.id order by j.generation desc limit 1
      ) as "latestJob"`

    const find = (scope: AgentScope, id: SourceId) =>
      SqlSchema.findOne({
        Request: Schema.Struct({ agentId: AgentId, id: SourceId }),
        Result: Row,
        execute: (request) => sql`
          select ${columns} from sources s
          where s.tenant_id = ${scope.tenantId} and s.agent_id = ${request.agentId} and s.id = ${request.id}`
      })({ agentId: scope.agentId, id }).pipe(
        Effect.orDie,
        Effect.map((found) => (found._tag === "Some" ? decodeRow(found.value) : null)),
        Effect.withSpan("SourceStore.find")
      )

    /** Newest first. */
    const list = Effect.fn("SourceStore.list")(function* (scope: AgentScope, filter: SourceFilter) {
      const conditions = [
        sql`s.tenant_id = ${scope.tenantId}`,
        sql`s.agent_id = ${scope.agentId}`,
        ...(filter.after === undefined ? [] : [sql`s.id < ${filter.after}`]),
        ...(filter.status === undefined ? [] : [sql`s.status = ${filter.status}`]),
        ...(filter.type === undefined ? [] : [sql`s.type = ${filter.type}`])
      ]
      const found = yield* SqlSchema.findAll({
        Request: Schema.Void,
        Result: Row,
        execute: () => sql`
          select ${columns} from sources s where ${sql.and(conditions)} order by s.id desc limit ${filter.limit + 1}`
      })(undefined)
      const rows = found.slice(0, filter.limit).map(decodeRow)
      const page: Page<Source> = {
        rows,
        next: found.length > filter.limit ? (rows.at(-1)?.id ?? null) : null
      }
      return page
    }, Effect.orDie)

    const insert = (
      scope: AgentScope,
      source: {
        readonly id: SourceId
        readonly type: SourceType
        readonly name: string
        readonly config: unknown
      }
    ) =>
      sql`
        insert into sources (id, tenant_id, agent_id, type, name, config)
        values (${source.id}, ${scope.tenantId}, ${scope.agentId}, ${source.type}, ${source.name},
          ${JSON.stringify(source.config)}::jsonb)`.pipe(Effect.orDie, Effect.asVoid)

    return { find, list, insert } as const
  })
}) {}
