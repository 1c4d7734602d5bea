/**
 * The hybrid search as one statement: words by BM25 over the agent's own chunks, meaning by the cosine of its vectors,
 * both for every candidate. In a small agent all chunks are candidates. In a larger one whose vectors are all compared,
 * those with the highest possible scores are. In a large one, the best by words and the best by meaning are.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { FoundPassage } from "../../domain/knowledge/Content.ts"
import { vectorText } from "../../domain/knowledge/StoredVector.ts"
import { b, k1 } from "../../search/Bm25.ts"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import { breadthOf, maxNearest, nearest } from "./PgvectorCandidates.ts"
import { isVisible } from "./SourceFilters.ts"

/** Number of chunks up to which an agent has every chunk with a common word scored. */
const maxExhaustiveChunks = 1_000
/** Number of candidates by words in larger agents. */
const maxCandidatesByWords = 150
/**
 * Maximum number of matching chunks that are examined. Words with more matches select no candidates, but count in the
 * score. If meaning also selects candidates, the limit for words is lower.
 */
const maxMatches = 2_000
const maxMatchesBesideVectors = 500
/** Maximum number of words that sort candidates, by weight. */
const maxSortingWords = 16

/** A word of the query with its weight in this agent. */
export interface WeighedTerm {
  readonly term: string
  /**
   * Its share of the maximum score in the first and in the second form of the query; 0 where a form does not contain
   * it.
   */
  readonly one: number
  readonly two: number
  /** Number of chunks that contain it. */
  readonly chunks: number
}

export interface HybridQuery {
  /** Highest weight first. */
  readonly terms: ReadonlyArray<WeighedTerm>
  /** The agent's number of chunks, and their mean length. */
  readonly chunks: number
  readonly averageLength: number
  readonly vector: Float32Array | undefined
  /** The profile of `vector`, and of the vectors that it is compared with. */
  readonly profile: string
  /** True when some chunks lack a vector. An expected value is then computed from the other vectors. */
  readonly incomplete: boolean
  readonly lexicalWeight: number
  readonly topK: number
  readonly minScore: number
  /** Conditions on the chunks' sources, as JSON; null for none. */
  readonly filters: string | null
  /** Candidates by meaning come from the index, which may miss some. */
  readonly approximate: boolean
  /**
   * Number of candidates with the highest possible scores, by their cosine and the maximum score of their words.
   * {@link isCertain} tells whether another chunk could have been found. If omitted, the best by words and the best by
   * meaning are candidates.
   */
  readonly bounded?: Bounded
}

/** Number of candidates, and whether common words also select some. */
interface Bounded {
  readonly candidates: number
  readonly everyWord: boolean
}
/**
 * The second is used if the first is not certain. With it, two thousand chunks would have to be nearly as good as the
 * best.
 */
const narrow: Bounded = { candidates: 300, everyWord: false }
const wide: Bounded = { candidates: 2_000, everyWord: true }

/** The searches for agents of up to `exactUpTo` chunks, to be tried in order until one {@link isCertain}. */
export const exactSearches = (
  chunks: number,
  exactUpTo: number
): ReadonlyArray<Pick<HybridQuery, "bounded">> =>
  chunks <= maxExhaustiveChunks || chunks > exactUpTo ? [{}] : [{ bounded: narrow }, { bounded: wide }]

const FoundRow = Schema.Struct({
  /** Number of candidates by meaning. */
  nearCount: Schema.Int,
  /** The maximum score of a chunk that is not a candidate, without its common words; null when all are candidates. */
  maxOtherScore: Schema.NullOr(Schema.Number),
  /** The value used for a missing cosine of a chunk without a vector; null where words alone decide. */
  expected: Schema.NullOr(Schema.Number),
  chunks: Schema.Array(Schema.Struct({ ...FoundPassage.fields, ordinal: Schema.Int }))
})
export type FoundRow = typeof FoundRow.Type

/** The words of the query that select candidates: all in a small agent, else all but the common ones. */
const selectingTerms = ({ bounded, chunks, terms, vector }: HybridQuery) => {
  if (chunks <= maxExhaustiveChunks || bounded?.everyWord === true) return terms
  const limit = vector === undefined || bounded !== undefined ? maxMatches : maxMatchesBesideVectors
  let sum = 0
  return terms.filter((term, index) => index === 0 || (sum += term.chunks) <= limit)
}

const sumOf = (terms: ReadonlyArray<WeighedTerm>, form: "one" | "two") =>
  terms.reduce((sum, term) => sum + term[form], 0)

/** The maximum score, 0..1, of the words that select no candidates. */
const maxOtherTermsScore = (query: HybridQuery) => {
  const names = selectingTerms(query)
  const others = query.terms.filter((term) => !names.includes(term))
  return Math.min(1, Math.max(sumOf(others, "one"), sumOf(others, "two")))
}

/** True when a bounded search cannot have missed a chunk. */
export const isCertain = ({ chunks, expected, maxOtherScore }: FoundRow, query: HybridQuery): boolean => {
  const words = maxOtherTermsScore(query)
  const weight = query.lexicalWeight
  const withMeaning = expected === null || words === 0 ? 0 : weight * words + (1 - weight) * expected
  const bestOther = Math.max(maxOtherScore ?? 0, words, withMeaning)
  const last = chunks.at(-1)
  if (bestOther === 0) return true
  return last !== undefined && chunks.length >= query.topK
    ? last.score > bestOther
    : bestOther < query.minScore
}

/** A word as a tsquery, quoted. */
const quotedTerm = (sql: SqlClient.SqlClient, term: string) =>
  sql`array_to_tsvector(array[${term}])::text::tsquery`

/** `df`: the weight of each of the query's words in this agent. */
const words = (sql: SqlClient.SqlClient, { terms }: HybridQuery) => sql`
  df as materialized (
    select term, one, two
    from jsonb_to_recordset(${JSON.stringify(terms)}::jsonb) as t (term text, one float8, two float8)
  )`

/** The maximum score of the `terms` in `tsv`, in the better form of the query. */
const maxTermsScore = (sql: SqlClient.SqlClient, terms: ReadonlyArray<WeighedTerm>) => {
  const sums = (["one", "two"] as const).map((form) => {
    const parts = terms
      .filter((term) => term[form] > 0)
      .map(
        (term) => sql`case when tsv @@ ${quotedTerm(sql, term.term)} then ${term[form]}::float8 else 0 end`
      )
    return parts.length === 0 ? sql`0` : sql.join(" + ", false)(parts)
  })
  return sql`greatest(${sql.csv(sums)})`
}

/** The vectors of the agent `of` and the profile. Those that are still to be converted are left out. */
const vectors = (
  sql: SqlClient.SqlClient,
  of: { readonly [Name in keyof AgentScope]: string | Fragment },
  { profile, vector }: HybridQuery
) => sql`(
  select chunk_id, source_id, vector from chunk_embeddings
  where tenant_id = ${of.tenantId} and agent_id = ${of.agentId} and profile = ${profile} and encoding = 2
    and vector_dims(vector) = ${vector?.length ?? 0}::int
) v`

/** The cosine of `vector` and `other`, of length one. The addition keeps the planner from an approximate index. */
const cosine = (sql: SqlClient.SqlClient, other: Fragment) => sql`-((vector <#> ${other}) + 0)`

/** Number of vectors from which the expected value of missing ones is estimated, if not all are compared. */
const minEstimatedVectors = 2_000

/** `spread`: the substitute for the cosine of a chunk without a vector. */
const spread = (sql: SqlClient.SqlClient, scope: AgentScope, query: HybridQuery) => {
  if (query.vector === undefined || !query.incomplete) return sql`spread as (select null::float8 as cos)`
  const some = query.approximate ? sql`limit ${minEstimatedVectors}::int` : sql``
  return sql`spread as materialized (
    select least(1, greatest(0, avg(cos) + stddev_pop(cos))) as cos from (
      select ${cosine(sql, sql`qv.v`)} as cos from ${vectors(sql, scope, query)} cross join qv ${some}
    ) compared
  )`
}

/** Maximum number of candidates by words, or by meaning. */
const candidateLimit = ({ chunks }: HybridQuery, ofLarger: number) =>
  chunks <= maxExhaustiveChunks ? maxExhaustiveChunks : ofLarger

/** `dc`: chunks near the query's vector. */
const nearChunks = (sql: SqlClient.SqlClient, scope: AgentScope, query: HybridQuery) => {
  const { approximate, filters, vector } = query
  if (vector === undefined) return sql`dc as materialized (select ''::text as id where false)`
  const sources = filters === null ? sql`null` : sql`(select coalesce(jsonb_agg(id), '[]') from visible)`
  if (approximate) {
    return sql`dc as materialized (
      select id from nearest_chunks(
        ${scope.tenantId}, ${scope.agentId}, ${query.profile}, ${vector.length}::int, (select t from asked),
        ${sources}::jsonb, ${nearest(query)}::int, ${breadthOf(query.chunks, nearest(query))}::int
      ) as id
    )`
  }
  return sql`dc as materialized (
    select chunk_id as id from ${vectors(sql, scope, query)} cross join qv where ${matchesFilters(sql, query)}
    order by ${cosine(sql, sql`qv.v`)} desc limit ${candidateLimit(query, maxNearest)}::int
  )`
}

/** `visible`: the readable sources, unless all are. */
const visibleSources = (
  sql: SqlClient.SqlClient,
  { agentId, tenantId }: AgentScope,
  { filters }: HybridQuery
) =>
  filters === null
    ? sql``
    : sql`visible as materialized (
        select id from sources
        where tenant_id = ${tenantId} and agent_id = ${agentId} and ${isVisible(sql, filters)}
      ),`

/** True for a row of a visible source. */
const matchesFilters = (sql: SqlClient.SqlClient, { filters }: HybridQuery) =>
  filters === null ? sql`true` : sql`source_id in (select id from visible)`

/** `lc`: chunks with words of the query, sorted by the weight of their words; of equals, the shorter ones first. */
const chunksWithWords = (sql: SqlClient.SqlClient, { agentId, tenantId }: AgentScope, query: HybridQuery) => {
  const terms = selectingTerms(query)
  if (terms.length === 0) return sql`lc as materialized (select ''::text as id where false)`
  const anyTerm = sql.join(" || ", false)(terms.map(({ term }) => quotedTerm(sql, term)))
  const order =
    query.chunks <= maxExhaustiveChunks
      ? sql``
      : sql`order by ${maxTermsScore(sql, terms.slice(0, maxSortingWords))} desc, length`
  return sql`
  lc as materialized (
    select id from chunks
    where tenant_id = ${tenantId} and agent_id = ${agentId} and version is not null and tsv @@ (${anyTerm}) and ${matchesFilters(sql, query)}
    ${order} limit ${candidateLimit(query, maxCandidatesByWords)}::int
  )`
}

/**
 * `picked`: the chunks with the highest possible scores, by their cosines and the maximum score of their words (that of
 * unlimited occurrences). `bounds`: those, and the next one.
 */
const bounds = (
  sql: SqlClient.SqlClient,
  scope: AgentScope,
  query: HybridQuery,
  { candidates: count }: Bounded
) => {
  const terms = selectingTerms(query)
  const weight = query.lexicalWeight
  const anyTerm = sql.join(" || ", false)(terms.map(({ term }) => quotedTerm(sql, term)))
  const byWords =
    terms.length === 0
      ? sql`select ''::text as id, 0::float8 as most where false`
      : sql`
        select id,
          least(1, ${maxTermsScore(sql, terms)} + ${maxOtherTermsScore(query)}::float8) as most
        from (
          -- The concatenation decompresses the lexemes of a chunk once, instead of once for every word of the query.
          select id, tsv || ''::tsvector as tsv from chunks
          where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId} and version is not null and tsv @@ (${anyTerm})
            and ${matchesFilters(sql, query)} offset 0
        ) matching`
  const byMeaning =
    query.vector === undefined
      ? sql`select ''::text as id, 0::float8 as cos where false`
      : sql`
        select chunk_id as id, least(1, greatest(0, ${cosine(sql, sql`qv.v`)})) as cos
        from ${vectors(sql, scope, query)} cross join qv where ${matchesFilters(sql, query)}`
  return sql`
    lc as materialized (${byWords}),
    dc as materialized (${byMeaning}),
    bounds as materialized (
      select id, bound from (
        select coalesce(lc.id, dc.id) as id, case when coalesce(dc.cos, spread.cos) is null then lc.most else least(1,
          ${weight}::float8 * coalesce(lc.most, ${maxOtherTermsScore(query)}::float8)
            + (1 - ${weight}::float8) * coalesce(dc.cos, spread.cos)) end as bound
        from lc full join dc on dc.id = lc.id cross join spread
      ) all_of_them
      where bound > 0 and bound >= ${query.minScore}::float8
      order by bound desc limit ${count + 1}::int
    ),
    picked as materialized (select id from bounds order by bound desc limit ${count}::int)`
}

/** `lc` and `dc`, and `picked` from both: the candidates. */
const picked = (sql: SqlClient.SqlClient, scope: AgentScope, query: HybridQuery) =>
  query.bounded === undefined
    ? sql`
      ${nearChunks(sql, scope, query)},
      ${chunksWithWords(sql, scope, query)},
      picked as materialized (select id from lc union select id from dc)`
    : bounds(sql, scope, query, query.bounded)

/** The maximum score of a chunk that is not picked. */
const maxUnpickedScore = (sql: SqlClient.SqlClient, { bounded }: HybridQuery) =>
  bounded === undefined
    ? sql`null::float8`
    : sql`(select case when count(*) > ${bounded.candidates}::int then min(bound) end from bounds)`

/** `cand`: the live candidates with their cosines. `lx`: their lexical scores. */
const candidates = (sql: SqlClient.SqlClient, scope: AgentScope, query: HybridQuery) => {
  const each = { tenantId: opaque(sql, scope.tenantId), agentId: opaque(sql, scope.agentId) }
  const compared =
    query.vector === undefined
      ? sql`left join lateral (select null::float8 as cos) v on true`
      : sql`left join lateral (
          select ${cosine(sql, sql`(select v from qv)`)} as cos from ${vectors(sql, each, query)}
          where chunk_id = k.id offset 0
        ) v on true`
  return sql`
    cand as materialized (
      select c.id, c.document_id, c.source_id, s.name as source_name, c.tsv, c.length, v.cos
      from picked k
      cross join lateral (
        select id, document_id, source_id, generation, tsv, length from chunks
        where tenant_id = ${each.tenantId} and id = k.id and agent_id = ${each.agentId} and version is not null and ${matchesFilters(sql, query)} offset 0
      ) c
      cross join lateral (
        select name from sources
        where id = c.source_id and live_generation = c.generation
          and agent_id = ${each.agentId} and tenant_id = ${each.tenantId} offset 0
      ) s
      ${compared}
    ),
    lx as materialized (
      select c.id, greatest(sum(df.one * part), sum(df.two * part)) as worth
      from cand c
      cross join lateral unnest(c.tsv) u
      join df on df.term = u.lexeme
      cross join lateral (select coalesce(cardinality(u.positions), 1)::float8 as f) occurrences
      cross join lateral (
        select f / (f + ${k1}::float8 * (${1 - b}::float8 + ${b}::float8 * c.length / ${query.averageLength}::float8)) as part
      ) saturated
      group by c.id
    )`
}

/** Runs the search. Vectors are read only when the query has one. */
export const hybrid = (sql: SqlClient.SqlClient, scope: AgentScope, query: HybridQuery) => {
  const weight = query.lexicalWeight
  const vector = query.vector === undefined ? null : vectorText(query.vector)
  const tenantId = opaque(sql, scope.tenantId)
  return SqlSchema.single({
    Request: Schema.Void,
    Result: FoundRow,
    execute: () => sql`/* every tenant: words */
      with asked as materialized (select ${vector}::text as t),
      qv as materialized (select t::halfvec as v from asked),
      ${visibleSources(sql, scope, query)}
      ${words(sql, query)},
      ${spread(sql, scope, query)},
      ${picked(sql, scope, query)},
      ${candidates(sql, scope, query)},
      parts as (
        select c.*, least(1, coalesce(lx.worth, 0)) as lexical,
          -- Without a vector and without words a chunk is no hit.
          case when c.cos is not null then least(1, greatest(0, c.cos)) when lx.worth > 0 then spread.cos end as meant
        from cand c left join lx on lx.id = c.id cross join spread
      ),
      scored as (
        select *, coalesce(meant, 0) as semantic, case when meant is null then lexical
          else least(1, ${weight}::float8 * lexical + (1 - ${weight}::float8) * meant) end as score
        from parts
      ),
      best as materialized (
        select * from scored where score > 0 and score >= ${query.minScore}::float8
        order by score desc, id collate "C" limit ${query.topK}::int
      )
      select (select count(*)::int from dc) as "nearCount", ${maxUnpickedScore(sql, query)} as "maxOtherScore",
        (select cos from spread) as expected, coalesce((
        select json_agg(json_build_object('id', b.id, 'documentId', d.id, 'sourceId', b.source_id,
          'sourceName', b.source_name, 'title', d.title, 'heading', c.heading, 'ordinal', c.ordinal, 'text', c.content, 'url', d.uri,
          'score', b.score, 'lexical', b.lexical, 'semantic', b.semantic) order by b.score desc, b.id collate "C")
        from best b
        cross join lateral (select heading, ordinal, content from chunks
          where tenant_id = ${tenantId} and id = b.id offset 0) c
        cross join lateral (select id, title, uri from documents
          where tenant_id = ${tenantId} and id = b.document_id offset 0) d
      ), '[]') as chunks`
  })(undefined)
}
