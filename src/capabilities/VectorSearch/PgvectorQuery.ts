/**
 * The hybrid search as one statement (findings 8): words by BM25 over the agent's own chunks, meaning by the cosine of its
 * vectors, both for every candidate. A small agent's chunks are all candidates; of a large one those that either side
 * puts in front.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/Access.ts"
import { ChunkId, DocumentId, SourceId } from "../../domain/Ids.ts"
import { b, k1 } from "../../search/Bm25.ts"

/** Agents up to this size have every chunk scored that shares a word with the query. */
const exhaustive = 1_000
/** Candidates by words, and by meaning, of larger agents. */
const byWords = 400
const byMeaning = 150

export interface Profile {
  /** The table of the profile's vectors. */
  readonly table: string
  readonly dimensions: number
}

export interface HybridQuery {
  readonly terms: ReadonlyMap<string, number>
  readonly vector: Float32Array | undefined
  readonly lexicalWeight: number
  readonly topK: number
  readonly minScore: number
  readonly sourceIds: ReadonlyArray<string> | undefined
  /** Candidates by meaning come from the index and may lack some. */
  readonly approximate: boolean
}

const Found = Schema.Struct({
  /** How many candidates by meaning there were. */
  near: Schema.Int,
  chunks: Schema.Array(
    Schema.Struct({
      id: ChunkId,
      documentId: DocumentId,
      sourceId: SourceId,
      sourceName: Schema.String,
      title: Schema.String,
      heading: Schema.String,
      text: Schema.String,
      url: Schema.String,
      score: Schema.Number,
      lexical: Schema.Number,
      semantic: Schema.Number
    })
  )
})
export type Found = typeof Found.Type

/** Candidates by meaning that an approximate search asks for. */
export const nearest = byMeaning

const literal = (vector: Float32Array): string => `[${vector.join(",")}]`

/** What the query's words are worth in this agent: `df`, `qm` (what a chunk could reach) and `tq`. */
const words = (sql: SqlClient.SqlClient, { agentId }: AgentScope, { terms }: HybridQuery) => sql`
  ql as materialized (
    -- A tsvector's text is quoted as a tsquery wants it.
    select term, times, array_to_tsvector(array[term])::text as quoted
    from jsonb_to_recordset(${JSON.stringify(Array.from(terms, ([term, times]) => ({ term, times })))}::jsonb)
      as t (term text, times float8)
  ),
  tq as materialized (select string_agg(quoted, ' | ')::tsquery as query from ql),
  st as materialized (
    select chunk_count::float8 as n, length_sum::float8 / chunk_count as average
    from agent_stats where agent_id = ${agentId} and chunk_count > 0
  ),
  df as materialized (
    select term, times * ln(1 + (greatest(n, c) - c + 0.5) / (c + 0.5)) as idf
    from ql cross join st cross join lateral (
      select count(*)::float8 as c from chunks
      where agent_id = ${agentId} and version is not null and tsv @@ quoted::tsquery
    ) counted
  ),
  qm as materialized (select coalesce(sum(idf), 0) * ${k1 + 1}::float8 as most from df)`

/** `dc`: chunks near to the query's vector. */
const meaning = (sql: SqlClient.SqlClient, { agentId }: AgentScope, query: HybridQuery, profile: Profile) => {
  const { approximate, sourceIds, vector } = query
  if (vector === undefined) return sql`dc as materialized (select ''::text as id where false)`
  const sources = sourceIds === undefined ? null : JSON.stringify(sourceIds)
  if (approximate) {
    return sql`dc as materialized (
      select id from spoke_nearest(
        ${profile.table}, ${agentId}, ${literal(vector)}, ${sources}::jsonb, ${nearest}::int
      ) as id
    )`
  }
  return sql`dc as materialized (
    select chunk_id as id from ${sql(profile.table)} cross join qv
    where agent_id = ${agentId} and ${within(sql, sourceIds)}
    -- The addition keeps the planner from the index, which would lose some.
    order by (embedding <=> qv.v) + 0
    limit (select case when n <= ${exhaustive} then ${exhaustive} else ${nearest} end::int from st)
  )`
}

const within = (sql: SqlClient.SqlClient, sourceIds: ReadonlyArray<string> | undefined) =>
  sourceIds === undefined
    ? sql`true`
    : sql`source_id in (select jsonb_array_elements_text(${JSON.stringify(sourceIds)}::jsonb))`

/** `lc`: chunks with words of the query, those first that have most of them. */
const wording = (sql: SqlClient.SqlClient, { agentId }: AgentScope, { sourceIds }: HybridQuery) => sql`
  lc as materialized (
    select id from chunks cross join tq
    where agent_id = ${agentId} and version is not null and tsv @@ tq.query and ${within(sql, sourceIds)}
    order by ts_rank(tsv, tq.query, 1) desc
    limit (select case when n <= ${exhaustive} then ${exhaustive} else ${byWords} end::int from st)
  )`

/** `cand`: the candidates that are live, with their vectors' cosines; `lx`: what their words are worth. */
const candidates = (sql: SqlClient.SqlClient, scope: AgentScope, query: HybridQuery, profile: Profile) => {
  const cosine =
    query.vector === undefined
      ? sql`left join lateral (select null::float8 as cos) v on true`
      : sql`left join lateral (
          select 1 - (embedding <=> (select v from qv)) as cos from ${sql(profile.table)}
          where agent_id = ${scope.agentId} and chunk_id = k.id offset 0
        ) v on true`
  return sql`
    cand as materialized (
      select c.id, c.document_id, c.source_id, s.name as source_name, c.tsv, c.length, v.cos
      from (select id from lc union select id from dc) k
      cross join lateral (
        select id, document_id, source_id, generation, tsv, length from chunks
        where id = k.id and agent_id = ${scope.agentId} and version is not null offset 0
      ) c
      cross join lateral (
        select name from sources
        where id = c.source_id and live_generation = c.generation
          and agent_id = ${scope.agentId} and tenant_id = ${scope.tenantId} offset 0
      ) s
      ${cosine}
    ),
    lx as materialized (
      select c.id, sum(df.idf * f * ${k1 + 1}::float8
        / (f + ${k1}::float8 * (${1 - b}::float8 + ${b}::float8 * c.length / st.average))) as worth
      from cand c cross join st
      cross join lateral unnest(c.tsv) u
      join df on df.term = u.lexeme
      cross join lateral (select coalesce(cardinality(u.positions), 1)::float8 as f) occurrences
      group by c.id
    )`
}

/** Runs the search; `profile`'s table is only read when the query has a vector. */
export const hybrid = (sql: SqlClient.SqlClient, scope: AgentScope, query: HybridQuery, profile: Profile) => {
  const weight = query.lexicalWeight
  const kind = sql.literal(`${profile.dimensions <= 1_900 ? "vector" : "halfvec"}(${profile.dimensions})`)
  const vector = query.vector === undefined ? null : literal(query.vector)
  return SqlSchema.single({
    Request: Schema.Void,
    Result: Found,
    execute: () => sql`
      with qv as materialized (select ${vector === null ? sql`null::text` : sql`${vector}::${kind}`} as v),
      ${words(sql, scope, query)},
      ${meaning(sql, scope, query, profile)},
      ${wording(sql, scope, query)},
      ${candidates(sql, scope, query, profile)},
      parts as (
        select c.*, least(1, coalesce(lx.worth, 0) / greatest(qm.most, 1e-9)) as lexical,
          least(1, greatest(0, c.cos)) as semantic
        from cand c cross join qm left join lx on lx.id = c.id
      ),
      scored as (
        select *, case when cos is null then lexical
          else least(1, ${weight}::float8 * lexical + (1 - ${weight}::float8) * semantic) end as score
        from parts
      ),
      best as materialized (
        select * from scored where score > 0 and score >= ${query.minScore}::float8
        order by score desc, id collate "C" limit ${query.topK}::int
      )
      select (select count(*)::int from dc) as near, coalesce((
        select json_agg(json_build_object('id', b.id, 'documentId', d.id, 'sourceId', b.source_id,
          'sourceName', b.source_name, 'title', d.title, 'heading', c.heading, 'text', c.content, 'url', d.uri,
          'score', b.score, 'lexical', b.lexical, 'semantic', b.semantic) order by b.score desc, b.id collate "C")
        from best b
        cross join lateral (select heading, content from chunks where id = b.id offset 0) c
        cross join lateral (select id, title, uri from documents where id = b.document_id offset 0) d
      ), '[]') as chunks`
  })(undefined)
}
