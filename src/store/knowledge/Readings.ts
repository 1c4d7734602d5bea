/** Progress of registered readers through their sources, and their sealed secrets. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { SourceId, TenantId } from "../../domain/Ids.ts"
import { toJsonb } from "../Jsonb.ts"
import type { IngestionTask } from "./IngestionJobs.ts"
import * as Rows from "../Rows.ts"

const Reading = Schema.Struct({
  cursor: Schema.Unknown,
  digest: Schema.NullOr(Schema.String),
  generation: Schema.NullOr(Schema.NumberFromString),
  passDigest: Schema.NullOr(Schema.String),
  position: Schema.Unknown,
  steps: Schema.Int,
  lines: Schema.Int
})
export type Reading = typeof Reading.Type

const LiveState = Schema.Struct({
  labels: Schema.Array(Schema.String),
  areApplied: Schema.Boolean,
  uris: Schema.Array(Schema.String)
})

const Settings = Schema.Struct({ config: Schema.Unknown, sealed: Schema.NullOr(Schema.String) })

const Line = Schema.Struct({
  url: Schema.String,
  outcome: Schema.String,
  reason: Schema.NullOr(Schema.String)
})

export class ReadingStore extends Effect.Service<ReadingStore>()("store/knowledge/Readings", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const find = (task: IngestionTask) =>
      sql`
        select cursor, digest, generation, pass_digest as "passDigest", position, steps, lines from source_readings
        where tenant_id = ${task.tenantId} and source_id = ${task.sourceId}`.pipe(
        Rows.first(Reading),
        Effect.withSpan("ReadingStore.find")
      )

    /** The newest labels of the source, whether its live documents were chosen for them, and their URIs. */
    const liveState = (task: IngestionTask) =>
      sql`
        select coalesce(s.next_labels, s.labels) as labels, s.next_labels is null as "areApplied", coalesce(
          (
            select jsonb_agg(d.uri) from documents d
            where d.tenant_id = s.tenant_id and d.source_id = s.id and d.agent_id = s.agent_id and d.generation = s.live_generation
          ),
          '[]'::jsonb
        ) as uris
        from sources s where s.tenant_id = ${task.tenantId} and s.id = ${task.sourceId}`.pipe(
        Rows.one(LiveState),
        Effect.withSpan("ReadingStore.liveState")
      )

    /** Begins a new pass for this job. */
    const begin = (task: IngestionTask, digest: string) =>
      sql`
        insert into source_readings as r (tenant_id, source_id, generation, pass_digest)
        values (${task.tenantId}, ${task.sourceId}, ${task.generation}, ${digest})
        on conflict (tenant_id, source_id) do update set generation = excluded.generation,
          pass_digest = excluded.pass_digest, position = null, steps = 0, lines = 0`.pipe(Rows.none)

    /**
     * Removes documents from the generation that is being built, because a later step has read them again or found them
     * deleted.
     */
    const withdraw = (task: IngestionTask, uris: ReadonlyArray<string>) =>
      uris.length === 0
        ? Effect.void
        : sql`
            delete from documents d using sources s
            where s.tenant_id = ${task.tenantId} and s.id = ${task.sourceId} and d.tenant_id = s.tenant_id and d.source_id = s.id
              and d.generation = ${task.generation} and s.live_generation <> d.generation
              and d.uri = any (array(select jsonb_array_elements_text(${toJsonb(uris)}::jsonb)))`.pipe(
            Rows.none
          )

    /**
     * Ends the step that follows `steps` others. Part of the transaction that writes what it read. False when another
     * worker has continued meanwhile; the transaction must then be rolled back.
     */
    const advance = (
      task: IngestionTask,
      {
        lines,
        position,
        steps
      }: { readonly lines: number; readonly position: unknown; readonly steps: number }
    ) =>
      sql`
        update source_readings set position = ${toJsonb(position)}::jsonb, steps = steps + 1, lines = lines + ${lines}::int
        where tenant_id = ${task.tenantId} and source_id = ${task.sourceId} and generation = ${task.generation}
          and steps = ${steps}::int
        returning steps`.pipe(Rows.any)

    /** Ends the pass, whose documents were chosen for `labels`. Part of the transaction that makes it live. */
    const finish = Effect.fn("ReadingStore.finish")(function* (
      task: IngestionTask,
      cursor: unknown,
      labels: ReadonlyArray<string>
    ) {
      const chosen = sql`${toJsonb(labels)}::jsonb`
      const newest = sql`coalesce(next_labels, labels)`
      const isNewest = sql`labels_are_within(${newest}, ${chosen})`
      // The labels may have been changed during the pass.
      yield* sql`
        update sources set labels = case when ${isNewest} then ${newest} when labels_are_within(labels, ${chosen}) then labels
            else ${chosen} end,
          next_labels = case when ${isNewest} then null else ${newest} end
        where tenant_id = ${task.tenantId} and id = ${task.sourceId}`.pipe(Effect.orDie)
      yield* sql`
        update source_readings set cursor = ${toJsonb(cursor)}::jsonb, digest = pass_digest, generation = null,
          pass_digest = null, position = null
        where tenant_id = ${task.tenantId} and source_id = ${task.sourceId} and generation = ${task.generation}
        returning steps`.pipe(
        Effect.orDie,
        Effect.filterOrDieMessage((rows) => rows.length === 1, "Another worker has ended this pass.")
      )
    })

    /** Reports of this pass's steps for each document, the latest last. */
    const reportedLines = (task: IngestionTask) =>
      sql`
        select e.url, e.outcome, e.reason from crawl_entries e
        where e.tenant_id = ${task.tenantId} and e.source_id = ${task.sourceId} and e.generation = ${task.generation}
        order by e.place`.pipe(Rows.all(Line), Effect.withSpan("ReadingStore.reportedLines"))

    /** The config and the sealed secrets, read at the same time. */
    const settings = (scope: { readonly tenantId: TenantId }, sourceId: SourceId) =>
      sql`
        select s.config, x.sealed from sources s
        left join source_secrets x on x.tenant_id = s.tenant_id and x.source_id = s.id
        where s.tenant_id = ${scope.tenantId} and s.id = ${sourceId}`.pipe(Rows.first(Settings))

    /** Replaces the secrets; null removes them. */
    const keepSecrets = (scope: AgentScope, sourceId: SourceId, sealed: string | null) =>
      (sealed === null
        ? sql`delete from source_secrets where tenant_id = ${scope.tenantId} and source_id = ${sourceId}`
        : sql`
            insert into source_secrets (tenant_id, source_id, sealed)
            select s.tenant_id, s.id, ${sealed} from sources s
            where s.tenant_id = ${scope.tenantId} and s.agent_id = ${scope.agentId} and s.id = ${sourceId}
            on conflict (tenant_id, source_id) do update set sealed = excluded.sealed`
      ).pipe(Rows.none)

    return {
      find,
      liveState,
      begin,
      withdraw,
      advance,
      finish,
      reportedLines,
      settings,
      keepSecrets
    } as const
  })
}) {}
