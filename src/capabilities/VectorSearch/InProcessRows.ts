/**
 * Reads the rows of the in-process index and of results. `offset 0` makes the planner use one look-up per id: the
 * embedded engine collects no statistics, and without them the planner would read the whole table.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { TenantId } from "../../domain/Ids.ts"
import { forTenants } from "../../concurrency/TenantSession.ts"
import type { FoundChunk } from "../VectorSearch.ts"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import { isVisible } from "./SourceFilters.ts"

const Changes = Schema.Struct({
  version: Schema.Number,
  /** The profile of the live vectors. */
  profile: Schema.String,
  /** Live generations: source and number. */
  live: Schema.Array(Schema.Tuple(Schema.String, Schema.String)),
  /** Live chunks newer than the known version. */
  chunks: Schema.Array(Schema.String),
  /** Live chunks with a vector newer than what was seen. */
  vectors: Schema.Array(Schema.String),
  /** Live chunks that are excluded from search. */
  excluded: Schema.Array(Schema.String)
})

const IndexedRow = Schema.Struct({
  id: Schema.String,
  sourceId: Schema.String,
  generation: Schema.String,
  tsv: Schema.String,
  length: Schema.Int,
  embedding: Schema.NullOr(Schema.Uint8ArrayFromSelf)
})

const VectorRow = Schema.Struct({ id: Schema.String, embedding: Schema.Uint8ArrayFromSelf })

/** A result chunk without its scores. */
export type Hit = Omit<FoundChunk, "score" | "lexical" | "semantic">

/** Rows as the statement returns them. Decoding them would take most of a search's time. */
interface Hits {
  readonly version: number
  readonly hits: ReadonlyArray<Hit>
}

const RowsRequest = Schema.Struct({
  tenantId: TenantId,
  profile: Schema.String,
  ids: Schema.Array(Schema.String)
})

const rowsOfIds = (sql: SqlClient.SqlClient, ids: ReadonlyArray<string>) =>
  sql`(select jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb) as id)`

const changesOf =
  (sql: SqlClient.SqlClient, current: string) =>
  /**
   * One statement, one snapshot. Rows up to the returned version were committed before it, because writers raise the
   * version under its row lock. So later statements may read those rows in batches.
   */
  ({ agentId, tenantId }: AgentScope, seen: number) => {
    // The first read gets vectors together with their chunks.
    const vectors =
      seen === 0
        ? sql`'[]'::json`
        : sql`(
            select coalesce(json_agg(e.chunk_id), '[]') from chunk_embeddings e
            where e.tenant_id = ${tenantId} and e.agent_id = ${agentId} and e.profile = coalesce((select profile from stats), ${current})
              and e.version > ${seen}::bigint
          )`
    // They have no version. Chunks of generations that are being built have none either, and are many: most agents
    // exclude none.
    const excluded =
      seen === 0
        ? sql`'[]'::json`
        : sql`case when exists (
            select from passage_exclusions where tenant_id = ${tenantId} and agent_id = ${agentId}
          ) then (
            select coalesce(json_agg(id), '[]') from chunks
            where tenant_id = ${tenantId} and agent_id = ${agentId} and version is null and excluded
          ) else '[]'::json end`
    return SqlSchema.single({
      Request: Schema.Void,
      Result: Changes,
      execute: () => sql`
        with live as materialized (
          select id, live_generation as generation from sources
          where tenant_id = ${tenantId} and agent_id = ${agentId}
        ), stats as materialized (
          select version, profile from agent_stats
          where tenant_id = ${tenantId} and agent_id = ${agentId}
        )
        select
          coalesce((select version from stats), 0)::float8 as version,
          coalesce((select profile from stats), ${current}) as profile,
          (select coalesce(json_agg(json_build_array(id, generation::text)), '[]') from live) as live,
          (
            select coalesce(json_agg(c.id), '[]')
            from (
              select id, source_id, generation from chunks
              where tenant_id = ${tenantId} and agent_id = ${agentId} and version > ${seen}::bigint offset 0
            ) c
            join live on live.id = c.source_id and live.generation = c.generation
          ) as chunks,
          ${vectors} as vectors,
          ${excluded} as excluded`
    })(undefined).pipe(Effect.orDie)
  }

const indexRowsOf = (sql: SqlClient.SqlClient) => {
  /** The chunks of `ids` that still exist, with their vectors. */
  const chunks = SqlSchema.findAll({
    Request: RowsRequest,
    Result: IndexedRow,
    execute: ({ ids, profile, tenantId }) => sql`
      select c.id, c.source_id as "sourceId", c.generation::text as generation, c.tsv::text as tsv, c.length, e.embedding
      from ${rowsOfIds(sql, ids)} w
      cross join lateral (
        select id, source_id, generation, tsv, length from chunks where tenant_id = ${opaque(sql, tenantId)} and id = w.id offset 0
      ) c
      left join lateral (
        select stored_vector(c) as embedding from chunk_embeddings c
        where c.tenant_id = ${opaque(sql, tenantId)} and c.chunk_id = w.id and c.profile = ${profile} offset 0
      ) e on true`
  })

  /** Like `chunks`, without vectors, which takes a tenth of the time. */
  const words = SqlSchema.findAll({
    Request: RowsRequest.omit("profile"),
    Result: IndexedRow,
    execute: ({ ids, tenantId }) => sql`
      select c.id, c.source_id as "sourceId", c.generation::text as generation, c.tsv::text as tsv, c.length,
        null as embedding
      from ${rowsOfIds(sql, ids)} w
      cross join lateral (
        select id, source_id, generation, tsv, length from chunks where tenant_id = ${opaque(sql, tenantId)} and id = w.id offset 0
      ) c`
  })

  /** The vectors of `ids` that still exist. */
  const vectors = SqlSchema.findAll({
    Request: RowsRequest,
    Result: VectorRow,
    execute: ({ ids, profile, tenantId }) => sql`
      select w.id, e.embedding from ${rowsOfIds(sql, ids)} w
      cross join lateral (
        select stored_vector(c) as embedding from chunk_embeddings c
        where c.tenant_id = ${opaque(sql, tenantId)} and c.chunk_id = w.id and c.profile = ${profile} offset 0
      ) e`
  })

  return {
    words: ({ tenantId }: TenantScope, ids: ReadonlyArray<string>) => Effect.orDie(words({ tenantId, ids })),
    chunks: ({ tenantId }: TenantScope, profile: string, ids: ReadonlyArray<string>) =>
      Effect.orDie(chunks({ tenantId, profile, ids })),
    vectors: ({ tenantId }: TenantScope, profile: string, ids: ReadonlyArray<string>) =>
      Effect.orDie(vectors({ tenantId, profile, ids }))
  } as const
}

/** Ids of chunks of an agent that a search has found. */
export interface FoundIds {
  readonly scope: AgentScope
  /** Conditions on their sources, as JSON; null for none. */
  readonly filters: string | null
  readonly ids: ReadonlyArray<string>
}

const hitsOf =
  (sql: SqlClient.SqlClient) =>
  /** For each of `found`, in one snapshot: the agent's current version, and its live and visible chunks. */
  (found: ReadonlyArray<FoundIds>) => {
    // Under load a batch has searches of several tenants.
    const within = forTenants(found.map(({ scope }) => scope.tenantId))
    const asked = found.map(({ filters, ids, scope }) => [scope.agentId, scope.tenantId, ids, filters])
    return sql<Hits>`
        select
          coalesce((select version from agent_stats
            where tenant_id = a.asked ->> 1 and agent_id = a.asked ->> 0), 0)::float8 as version,
          (
            select coalesce(json_agg(json_build_object('id', c.id, 'documentId', d.id, 'sourceId', s.id,
              'sourceName', s.name, 'title', d.title, 'heading', c.heading, 'ordinal', c.ordinal, 'text', c.content, 'url', d.uri)), '[]')
            from (select jsonb_array_elements_text(a.asked -> 2) as id) w
            cross join lateral (
              select id, document_id, source_id, generation, heading, ordinal, content from chunks
              where tenant_id = a.asked ->> 1 and id = w.id and agent_id = a.asked ->> 0 and version is not null offset 0
            ) c
            cross join lateral (select id, title, uri from documents
              where tenant_id = a.asked ->> 1 and id = c.document_id offset 0) d
            cross join lateral (
              select id, name from sources
              where id = c.source_id and live_generation = c.generation
                and agent_id = a.asked ->> 0 and tenant_id = a.asked ->> 1
                and (a.asked ->> 3 is null or ${isVisible(sql, sql`(a.asked ->> 3)`)})
              offset 0
            ) s
          ) as hits
        from jsonb_array_elements(${JSON.stringify(asked)}::jsonb) with ordinality as a (asked, place)
        order by a.place`.pipe(Effect.orDie, within)
  }

const visibleOf =
  (sql: SqlClient.SqlClient) =>
  /** The agent's sources that meet `filters`. */
  ({ agentId, tenantId }: AgentScope, filters: string): Effect.Effect<ReadonlySet<string>> =>
    sql<{ readonly id: string }>`
      select id from sources
      where tenant_id = ${tenantId} and agent_id = ${agentId} and ${isVisible(sql, filters)}`.pipe(
      Effect.orDie,
      Effect.map((sources) => new Set(sources.map(({ id }) => id)))
    )

/** `current` is the profile of agents without vectors. */
export const makeRows = (sql: SqlClient.SqlClient, current: string) =>
  ({
    changes: changesOf(sql, current),
    hits: hitsOf(sql),
    visible: visibleOf(sql),
    ...indexRowsOf(sql)
  }) as const

export type Rows = ReturnType<typeof makeRows>
