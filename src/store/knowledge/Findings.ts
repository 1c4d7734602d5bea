/** Stores the findings of the search for contradicting, repeated and stale passages. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { ChunkId, DocumentId, minRunIdAt } from "../../domain/Ids.ts"
import {
  Finding,
  FindingCounts,
  type FindingId,
  FindingKind,
  FindingReason,
  SourceValue
} from "../../domain/knowledge/Finding.ts"
import { toJsonb } from "../Jsonb.ts"
import { maxFindings, maxStoredFindings, type Scan, scansOf } from "./PassageScans.ts"
import * as Rows from "../Rows.ts"

const Chunk = Schema.Struct({
  id: ChunkId,
  documentId: DocumentId,
  content: Schema.String,
  version: Schema.String
})
export type ScannedChunk = typeof Chunk.Type

export interface StatementAnchor {
  readonly chunkId: ChunkId
  readonly place: number
  readonly anchor: number
}

export interface NewFinding {
  readonly id: FindingId
  readonly kind: FindingKind
  readonly chunkId: ChunkId
  readonly otherChunkId: ChunkId | null
  readonly said: string | null
  readonly otherSaid: string | null
  readonly reasons: ReadonlyArray<FindingReason>
  readonly weight: number
}

const StaleRow = Schema.Struct({
  chunkId: ChunkId,
  documentId: DocumentId,
  days: Schema.Int,
  thumbsUp: Schema.Int,
  thumbsDown: Schema.Int
})

const Row = Schema.Struct({
  ...Finding.fields,
  weight: Schema.Number,
  foundAt: Schema.DateTimeUtcFromDate,
  dismissedAt: Schema.NullOr(Schema.DateTimeUtcFromDate)
})

const encodeReasons = Schema.encodeSync(Schema.Array(FindingReason))

/** Maximum number of statements per index key. A key with more is a phrase on every page. */
const maxPerAnchor = 60
/** Maximum number of characters of a passage in an answer. */
const maxShownLength = 1_000
/** Stale pages: days without a change, days of ratings that count, and minimum number of negative ratings. */
const staleDays = 180
const ratedDays = 90
const minThumbsDown = 2

export class FindingStore extends Effect.Service<FindingStore>()("store/knowledge/Findings", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** The agent's index version. All chunks up to it are visible. */
    const liveVersion = ({ agentId, tenantId }: AgentScope) =>
      sql`
        select coalesce(max(version), 0)::text as version from agent_stats
        where tenant_id = ${tenantId} and agent_id = ${agentId}`.pipe(
        Rows.one(Schema.Struct({ version: Schema.String })),
        Effect.map(({ version }) => version),
        Effect.withSpan("FindingStore.liveVersion")
      )

    /** The next chunks after the current position, in the order in which they went live. */
    const next = ({ agentId, chunkId, tenantId, version }: Scan, limit: number) =>
      sql`
        select c.id, c.document_id as "documentId", c.content, c.version::text as version from chunks c
        where c.tenant_id = ${tenantId} and c.agent_id = ${agentId} and c.version is not null
          and (c.version, c.id) > (${version}::bigint, ${chunkId})
        order by c.version, c.id limit ${limit}`.pipe(Rows.all(Chunk), Effect.withSpan("FindingStore.next"))

    /**
     * Live chunks of other documents that share these index keys, those with the most first. Only those before the
     * chunk in the order of the search, so that each pair is compared once, also when the search starts again.
     */
    const neighbours = (
      { agentId, tenantId }: AgentScope,
      { documentId, id, version }: Pick<ScannedChunk, "documentId" | "id" | "version">,
      anchors: ReadonlyArray<number>,
      limit: number
    ) =>
      sql`
        with alike as (
          select s.chunk_id, count(*) as common
          from jsonb_array_elements_text(${toJsonb(anchors)}::jsonb) a (anchor)
          cross join lateral (
            select p.chunk_id from passage_statements p
            where p.tenant_id = ${tenantId} and p.agent_id = ${agentId} and p.anchor = a.anchor::bigint
            limit ${maxPerAnchor}
          ) s
          where s.chunk_id <> ${id} group by s.chunk_id
        )
        select c.id, c."documentId", c.content, c.version::text as version from alike
        -- "offset 0" keeps the order out of the inner query. The planner expects few chunks before this one, and would
        -- compare all of them with each chunk that is alike.
        cross join lateral (
          select id, document_id as "documentId", content, version from chunks
          where tenant_id = ${opaque(sql, tenantId)} and id = alike.chunk_id offset 0
        ) c
        where c."documentId" <> ${documentId} and (c.version, c.id) < (${version}::bigint, ${id})
        order by alike.common desc, c.id limit ${limit}`.pipe(
        Rows.all(Chunk),
        Effect.withSpan("FindingStore.neighbours")
      )

    /** Stores the index keys of statements. Those of deleted chunks are ignored. */
    const keepStatements = ({ agentId, tenantId }: AgentScope, anchors: ReadonlyArray<StatementAnchor>) =>
      anchors.length === 0
        ? Effect.void
        : sql`
          insert into passage_statements (tenant_id, agent_id, anchor, chunk_id, place)
          select c.tenant_id, ${agentId}, a.anchor, c.id, a.place
          from jsonb_to_recordset(${toJsonb(anchors)}::jsonb) as a ("chunkId" text, place int, anchor bigint)
          join chunks c on c.tenant_id = ${opaque(sql, tenantId)} and c.id = a."chunkId" and not c.excluded
          on conflict do nothing`.pipe(Rows.none, Effect.withSpan("FindingStore.keepStatements"))

    /** Stores findings once. A known finding is not changed, dismissed or not. */
    const keep = ({ agentId, tenantId }: AgentScope, findings: ReadonlyArray<NewFinding>) => {
      const rows = findings.map((one) => ({ ...one, reasons: encodeReasons(one.reasons) }))
      return findings.length === 0
        ? Effect.void
        : sql`
          insert into passage_findings (tenant_id, id, agent_id, kind, chunk_id, other_chunk_id, said, other_said, reasons, weight)
          select ${tenantId}, f.id, ${agentId}, f.kind, f."chunkId", f."otherChunkId", f.said, f."otherSaid", f.reasons, f.weight
          from jsonb_to_recordset(${toJsonb(rows)}::jsonb) as f (id text, kind text, "chunkId" text, "otherChunkId" text,
            said text, "otherSaid" text, reasons jsonb, weight float8)
          join chunks c on c.tenant_id = ${opaque(sql, tenantId)} and c.id = f."chunkId" and not c.excluded
          where (f."otherChunkId" is null or exists (
              select from chunks o where o.tenant_id = ${opaque(sql, tenantId)} and o.id = f."otherChunkId" and not o.excluded))
            and (select count(*) < ${maxStoredFindings} and count(*) filter (where k.dismissed_at is null) < ${maxFindings}
              from passage_findings k where k.tenant_id = ${tenantId} and k.agent_id = ${agentId} and k.kind = f.kind)
          on conflict do nothing`.pipe(Rows.none, Effect.withSpan("FindingStore.keep"))
    }

    /** Moves the position to `place`. */
    const advance = (
      { agentId, tenantId }: AgentScope,
      place: { readonly version: string; readonly chunkId: string }
    ) =>
      sql`
        update passage_scans set version = ${place.version}::bigint, chunk_id = ${place.chunkId}
        where tenant_id = ${tenantId} and agent_id = ${agentId}`.pipe(
        Rows.none,
        Effect.withSpan("FindingStore.advance")
      )

    /** Pages that have not changed for long and whose answers have more negative than positive ratings. */
    const stale = ({ agentId, tenantId }: AgentScope, now: DateTime.Utc) =>
      sql`
        with rated as (
          select r.tenant_id, r.id, r.rating, m.citations from agent_runs r
          join messages m on m.tenant_id = r.tenant_id and m.id = r.message_id
          where r.tenant_id = ${opaque(sql, tenantId)} and r.agent_id = ${agentId} and r.rating is not null and r.status = 'complete'
            and r.id >= ${minRunIdAt(DateTime.subtract(now, { days: ratedDays }))}
          order by r.id desc limit 20000
        ),
        cited as (
          select u.document_id, min(u.chunk_id) as chunk_id, count(distinct r.id) filter (where r.rating = 1) as up,
            count(distinct r.id) filter (where r.rating = -1) as down
          from rated r cross join lateral (
            select * from run_passages u where u.tenant_id = r.tenant_id and u.run_id = r.id offset 0
          ) u
          where u.number in (select (k ->> 'index')::int from jsonb_array_elements(r.citations) k)
          group by u.document_id
        )
        select coalesce(c.id, first.id) as "chunkId", d.id as "documentId",
          extract(day from ${DateTime.formatIso(now)}::timestamptz - d.created_at)::int as days,
          cited.up::int as "thumbsUp", cited.down::int as "thumbsDown"
        from cited join documents d on d.tenant_id = ${opaque(sql, tenantId)} and d.agent_id = ${agentId} and d.id = cited.document_id
        join sources s on s.tenant_id = d.tenant_id and s.id = d.source_id and s.live_generation = d.generation
        left join chunks c on c.tenant_id = d.tenant_id and c.id = cited.chunk_id and c.document_id = d.id
        join lateral (
          select f.id from chunks f where f.tenant_id = d.tenant_id and f.document_id = d.id order by f.ordinal limit 1
        ) first on true
        where d.created_at < ${DateTime.formatIso(now)}::timestamptz - make_interval(days => ${staleDays}::int)
          and cited.down >= ${minThumbsDown} and cited.down > cited.up
        order by cited.down desc, d.id limit ${maxFindings}`.pipe(
        Rows.all(StaleRow),
        Effect.withSpan("FindingStore.stale")
      )

    /** Replaces all stale findings with `findings`. One that is found again is not changed. */
    const keepStale = Effect.fn("FindingStore.keepStale")(function* (
      scope: AgentScope,
      findings: ReadonlyArray<NewFinding>
    ) {
      const { agentId, tenantId } = scope
      yield* sql`
        delete from passage_findings
        where tenant_id = ${tenantId} and agent_id = ${agentId} and kind = 'stale'
          and id <> all(${findings.map(({ id }) => id)}::text[])`.pipe(Effect.orDie)
      yield* keep(scope, findings)
      yield* sql`
        update passage_scans set stale_at = now() where tenant_id = ${tenantId} and agent_id = ${agentId}`.pipe(
        Effect.orDie
      )
    })

    const passage = (chunk: string, said: string) =>
      sql.literal(`
        (select json_build_object('sourceId', s.id, 'sourceName', s.name, 'documentId', d.id, 'title', d.title,
            'heading', c.heading, 'url', d.uri, 'text', left(c.content, ${maxShownLength}), 'said', ${said})
          from chunks c join documents d on d.tenant_id = c.tenant_id and d.id = c.document_id
          join sources s on s.tenant_id = c.tenant_id and s.id = c.source_id
          where c.tenant_id = f.tenant_id and c.id = ${chunk})`)
    const columns = sql`
      f.id, f.agent_id as "agentId", f.kind, f.reasons, f.weight, f.found_at as "foundAt", f.dismissed_at as "dismissedAt",
      case when f.other_chunk_id is null then json_build_array(${passage("f.chunk_id", "f.said")})
        else json_build_array(${passage("f.chunk_id", "f.said")}, ${passage("f.other_chunk_id", "f.other_said")})
      end as passages`

    /** The most important first, after the finding `after`. */
    const page = (
      { agentId, tenantId }: AgentScope,
      {
        after,
        dismissed,
        kind,
        limit
      }: {
        readonly kind: FindingKind | undefined
        readonly dismissed: boolean
        readonly after: { readonly weight: number; readonly id: string } | undefined
        readonly limit: number
      }
    ) =>
      sql`
        select ${columns} from passage_findings f
        where f.tenant_id = ${tenantId} and f.agent_id = ${agentId}
          and f.dismissed_at ${dismissed ? sql`is not null` : sql`is null`}
          ${kind === undefined ? sql`` : sql`and f.kind = ${kind}`}
          ${after === undefined ? sql`` : sql`and (-f.weight, f.id) > (-${after.weight}::float8, ${after.id})`}
        order by -f.weight, f.id limit ${limit + 1}`.pipe(Rows.all(Row), Effect.withSpan("FindingStore.page"))

    /**
     * Dismisses it, or reverts that. None when the agent has no such finding. If no more findings of its kind could be
     * stored before, some may have been dropped, so the search starts again.
     */
    const dismiss = ({ agentId, tenantId }: AgentScope, id: FindingId, isDismissed: boolean) =>
      sql`
        with f as (
          update passage_findings set dismissed_at = case when ${isDismissed} then coalesce(dismissed_at, now()) end
          where tenant_id = ${tenantId} and agent_id = ${agentId} and id = ${id} returning *
        ), before as (
          select count(*) filter (where k.dismissed_at is null) as open, count(*) as stored,
            bool_or(k.id = ${id} and k.dismissed_at is null) as is_open
          from passage_findings k
          where k.tenant_id = ${tenantId} and k.agent_id = ${agentId} and k.kind <> 'stale' and k.kind = (select kind from f)
        ), again as (
          update passage_scans set version = 0, chunk_id = ''
          where tenant_id = ${tenantId} and agent_id = ${agentId} and ${isDismissed}
            and (select is_open and open >= ${maxFindings} and stored < ${maxStoredFindings} from before)
        )
        select ${columns} from f`.pipe(Rows.first(Row), Effect.withSpan("FindingStore.dismiss"))

    /** The number of each kind, and whether live passages have not been compared yet. */
    const summary = ({ agentId, tenantId }: AgentScope, { dismissed }: { readonly dismissed: boolean }) =>
      sql`
        select coalesce((select s.chunk_count > 0 and (p.agent_id is null or p.version < s.version) from agent_stats s
            left join passage_scans p on p.tenant_id = s.tenant_id and p.agent_id = s.agent_id
            where s.tenant_id = ${tenantId} and s.agent_id = ${agentId}), false) as behind,
          ${sql.csv(FindingKind.literals.map((kind) => sql`count(*) filter (where f.kind = ${kind})::int as ${sql(kind)}`))}
        from passage_findings f where f.tenant_id = ${tenantId} and f.agent_id = ${agentId}
          and f.dismissed_at ${dismissed ? sql`is not null` : sql`is null`}`.pipe(
        Rows.one(Schema.Struct({ behind: Schema.Boolean, ...FindingCounts.fields })),
        Effect.withSpan("FindingStore.summary")
      )

    /**
     * Each source of the agent with its value in the period from `from` to `to`, in the order of ids. `offset 0` keeps
     * each look-up by the whole key.
     */
    const values = (
      { agentId, tenantId }: AgentScope,
      {
        after,
        from,
        limit,
        to
      }: {
        readonly from: DateTime.Utc
        readonly to: DateTime.Utc
        readonly after: string
        readonly limit: number
      }
    ) =>
      sql`
        with own as materialized (
          select s.tenant_id, s.id, s.name, s.live_generation from sources s
          where s.tenant_id = ${tenantId} and s.agent_id = ${agentId} and s.id > ${after} order by s.id limit ${limit + 1}
        ),
        used as (
          select u.source_id, r.id, r.rating, length(p.content) as characters,
            exists (select from jsonb_array_elements(m.citations) k where (k ->> 'index')::int = u.number) as cited
          from agent_runs r join conversations c on c.tenant_id = r.tenant_id and c.id = r.conversation_id
            and c.channel <> 'test'
          cross join lateral (
            select * from run_passages u where u.tenant_id = r.tenant_id and u.run_id = r.id offset 0
          ) u
          cross join lateral (select * from passages p where p.tenant_id = u.tenant_id and p.hash = u.hash offset 0) p
          left join messages m on m.tenant_id = r.tenant_id and m.id = r.message_id and r.status = 'complete'
          where r.tenant_id = ${opaque(sql, tenantId)} and r.agent_id = ${agentId}
            and r.id >= ${minRunIdAt(from)} and r.id < ${minRunIdAt(to)}
            and u.source_id in (select id from own)
        ),
        counted as (
          select source_id, count(distinct id)::int as shown, count(distinct id) filter (where cited)::int as cited,
            count(distinct id) filter (where cited and rating = 1)::int as helpful,
            count(distinct id) filter (where cited and rating = -1)::int as not_helpful,
            ceil(sum(characters) / 4.0)::float8 as tokens
          from used group by source_id
        )
        select own.id as "sourceId", own.name, coalesce(u.shown, 0) as shown, coalesce(u.cited, 0) as cited,
          coalesce(u.helpful, 0) as helpful, coalesce(u.not_helpful, 0) as "notHelpful", coalesce(u.tokens, 0) as tokens,
          (select count(*)::int from documents d where d.tenant_id = own.tenant_id and d.source_id = own.id
            and d.generation = own.live_generation) as documents,
          stored.chunks, stored.bytes as "storedBytes"
        from own left join counted u on u.source_id = own.id
        cross join lateral (
          select count(*)::int as chunks, coalesce(sum(octet_length(c.content)), 0)::float8 as bytes from chunks c
          where c.tenant_id = own.tenant_id and c.source_id = own.id and c.generation = own.live_generation
        ) stored
        order by own.id`.pipe(Rows.all(SourceValue), Effect.withSpan("FindingStore.values"))

    return {
      ...scansOf(sql),
      liveVersion,
      next,
      neighbours,
      keepStatements,
      keep,
      advance,
      stale,
      keepStale,
      page,
      dismiss,
      summary,
      values
    } as const
  })
}) {}
