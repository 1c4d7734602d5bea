/** Reads the documents and passages of a source, and stores which passages are excluded from search. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { ChunkId, DocumentId, SourceId } from "../../domain/Ids.ts"
import type { Page } from "../../domain/Page.ts"
import {
  CitingTurn,
  maxCitingTurns,
  maxShownCitations,
  Passage,
  SourceDocument
} from "../../domain/knowledge/Content.ts"
import { containing } from "../Like.ts"
import { restartScanIfFull } from "./PassageScans.ts"
import * as Rows from "../Rows.ts"

const DocumentRow = Schema.Struct({ ...SourceDocument.fields, readAt: Schema.DateTimeUtcFromDate })
const CitingRow = Schema.Struct({ ...CitingTurn.fields, at: Schema.DateTimeUtcFromDate })

/** Maximum length of a question that is returned, in characters. */
const maxQuestionLength = 300
/** Maximum number of excluded texts of one source. */
export const maxExclusions = 5_000

const textHash = (sql: SqlClient.SqlClient, text: Fragment) => sql`sha256(convert_to(${text}, 'UTF8'))`

interface PassagePage {
  /** The ordinal of the last passage of the previous page; -1 for the first page. */
  readonly after: number
  readonly limit: number
}

export class ContentStore extends Effect.Service<ContentStore>()("store/knowledge/Contents", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Documents of the source's live generation, `d`. */
    const live = ({ agentId, tenantId }: AgentScope, sourceId: SourceId) => sql`
      from sources s join documents d
        on d.tenant_id = s.tenant_id and d.source_id = s.id and d.generation = s.live_generation
      where s.tenant_id = ${tenantId} and s.agent_id = ${agentId} and s.id = ${sourceId}`

    const shown = sql`
      d.id, d.uri, d.title, d.created_at as "readAt",
      (select count(*)::int from chunks c where c.tenant_id = d.tenant_id and c.document_id = d.id) as passages,
      (select count(*)::int from chunks c where c.tenant_id = d.tenant_id and c.document_id = d.id and c.excluded) as excluded`

    /**
     * The documents in the order in which they were read. `text`: words of the title or the address. `after`: the id of
     * the last row of the previous page.
     */
    const documents = (
      scope: AgentScope,
      sourceId: SourceId,
      {
        after,
        limit,
        text
      }: {
        readonly text?: string | undefined
        readonly after?: string | undefined
        readonly limit: number
      }
    ): Effect.Effect<Page<SourceDocument>> => {
      const pattern = containing(text ?? "")
      return sql`
        select ${shown} ${live(scope, sourceId)}
          ${after === undefined ? sql`` : sql`and d.id > ${after}`}
          ${text === undefined ? sql`` : sql`and (d.title ilike ${pattern} or d.uri ilike ${pattern})`}
        order by d.id limit ${limit + 1}`.pipe(
        Rows.page(DocumentRow, limit),
        Effect.withSpan("ContentStore.documents")
      )
    }

    const document = (scope: AgentScope, sourceId: SourceId, id: DocumentId) =>
      sql`select ${shown} ${live(scope, sourceId)} and d.id = ${id}`.pipe(
        Rows.first(DocumentRow),
        Effect.withSpan("ContentStore.document")
      )

    /**
     * The CTE `cited`: passages of the source that the newest customer turns cite. A re-sync makes new chunks, so the
     * cited text is compared too. `offset 0` keeps each look-up by the whole key.
     */
    const cited = ({ agentId, tenantId }: AgentScope, sourceId: SourceId) => sql`
      newest as materialized (
        select r.tenant_id, r.id, r.conversation_id, r.user_message, r.started_at, r.message_id from agent_runs r
        join conversations v on v.tenant_id = r.tenant_id and v.id = r.conversation_id and v.channel <> 'test'
        where r.tenant_id = ${opaque(sql, tenantId)} and r.agent_id = ${agentId} and r.status = 'complete'
        order by r.id desc limit ${maxCitingTurns}
      ),
      cited as materialized (
        select n.id as run_id, u.chunk_id, p.heading, p.url, p.content
        from newest n
        join messages m on m.tenant_id = n.tenant_id and m.id = n.message_id
        cross join lateral (
          select * from run_passages u where u.tenant_id = n.tenant_id and u.run_id = n.id offset 0
        ) u
        cross join lateral (select * from passages p where p.tenant_id = u.tenant_id and p.hash = u.hash offset 0) p
        where u.source_id = ${sourceId}
          and u.number in (select (k ->> 'index')::int from jsonb_array_elements(m.citations) k)
      )`

    /** A condition that is true where `cited` cites the chunk `c` of the document `d`. */
    const cites = sql`(
      cited.chunk_id = c.id
      or (cited.url = d.uri and cited.heading = c.heading and strpos(cited.content, c.content) > 0)
    )`

    /** The passages in reading order, excluded ones included. */
    const passages = (scope: AgentScope, sourceId: SourceId, id: DocumentId, { after, limit }: PassagePage) =>
      sql`
        with ${cited(scope, sourceId)},
        d as (select d.tenant_id, d.id, d.uri ${live(scope, sourceId)} and d.id = ${id})
        select c.id, c.ordinal, c.heading, c.content as text, c.excluded,
          (select count(distinct cited.run_id)::int from cited where ${cites}) as citations
        from d join chunks c on c.tenant_id = d.tenant_id and c.document_id = d.id and c.ordinal > ${after}
        order by c.ordinal limit ${limit + 1}`.pipe(
        Rows.all(Passage),
        Effect.withSpan("ContentStore.passages")
      )

    /** The newest turns that cite the passage, newest first. */
    const citingTurns = (scope: AgentScope, sourceId: SourceId, id: ChunkId) =>
      sql`
        with ${cited(scope, sourceId)}
        select n.id as "runId", n.conversation_id as "conversationId", n.started_at as at,
          left(n.user_message, ${maxQuestionLength}::int) as question
        from newest n where n.id in (
          select cited.run_id from cited, (select d.tenant_id, d.id, d.uri ${live(scope, sourceId)}) d
          join chunks c on c.tenant_id = d.tenant_id and c.document_id = d.id and c.id = ${id}
          where ${cites}
        )
        order by n.id desc limit ${maxShownCitations}`.pipe(
        Rows.all(CitingRow),
        Effect.withSpan("ContentStore.citingTurns")
      )

    /** True when the source has the passage now. */
    const has = (scope: AgentScope, sourceId: SourceId, id: ChunkId) =>
      sql`
        select c.id from (select d.tenant_id, d.id ${live(scope, sourceId)}) d
        join chunks c on c.tenant_id = d.tenant_id and c.document_id = d.id and c.id = ${id}`.pipe(Rows.any)

    /** The text of the passage. Locks the agent's index first, like every change of searchable chunks. */
    const textOf = Effect.fn("ContentStore.textOf")(function* (
      scope: AgentScope,
      sourceId: SourceId,
      id: ChunkId
    ) {
      yield* sql`
        select version from agent_stats
        where tenant_id = ${scope.tenantId} and agent_id = ${scope.agentId} for update`
      const [found] = yield* sql<{ readonly content: string }>`
        select c.content from (select d.tenant_id, d.id ${live(scope, sourceId)}) d
        join chunks c on c.tenant_id = d.tenant_id and c.document_id = d.id and c.id = ${id}`
      return Option.fromNullable(found?.content)
    })

    /** Adds (1) or subtracts (-1) searchable chunks in the agent's statistics, and raises its index version. */
    const addToStats = (
      { agentId, tenantId }: AgentScope,
      changed: ReadonlyArray<{ length: number }>,
      by: 1 | -1
    ) =>
      sql`
        update agent_stats set version = version + 1, chunk_count = chunk_count + ${by * changed.length}::bigint,
          length_sum = length_sum + ${by * changed.reduce((sum, { length }) => sum + length, 0)}::bigint
        where tenant_id = ${tenantId} and agent_id = ${agentId}`

    /**
     * Excludes the passage's text from search, wherever the source contains it. A later sync excludes the same text
     * again.
     */
    const exclude = Effect.fn("ContentStore.exclude")(
      function* (scope: AgentScope, sourceId: SourceId, id: ChunkId) {
        const { agentId, tenantId } = scope
        const text = yield* textOf(scope, sourceId, id)
        if (Option.isNone(text)) return "missing" as const
        const [exclusions] = yield* sql<{ readonly count: number }>`
          select count(*)::int as count from passage_exclusions
          where tenant_id = ${tenantId} and source_id = ${sourceId}`
        if ((exclusions?.count ?? 0) >= maxExclusions) return "full" as const
        yield* sql`
          insert into passage_exclusions (tenant_id, source_id, text_hash, agent_id)
          values (${tenantId}, ${sourceId}, ${textHash(sql, sql`${text.value}::text`)}, ${agentId})
          on conflict do nothing`
        const excludedChunks = yield* sql<{ readonly id: string; readonly length: number }>`
          update chunks set excluded = true, version = null
          where tenant_id = ${tenantId} and source_id = ${sourceId} and version is not null and content = ${text.value}
          returning id, length`
        if (excludedChunks.length === 0) return "unchanged" as const
        const ids = sql`(select c.id from chunks c
          where c.tenant_id = ${tenantId} and c.source_id = ${sourceId} and c.excluded and c.content = ${text.value})`
        yield* sql`delete from chunk_embeddings where tenant_id = ${tenantId} and chunk_id in ${ids}`
        yield* sql`delete from passage_statements where tenant_id = ${tenantId} and chunk_id in ${ids}`
        yield* restartScanIfFull(sql, scope, sql`c.id in ${ids}`)
        yield* sql`
          delete from passage_findings where tenant_id = ${tenantId} and (chunk_id in ${ids} or other_chunk_id in ${ids})`
        yield* addToStats(scope, excludedChunks, -1)
        return "changed" as const
      },
      sql.withTransaction,
      Effect.orDie
    )

    /** Restores a text in the caller's transaction. Search finds it by its words at once; its vectors are missing. */
    const restore = Effect.fn("ContentStore.restore")(function* (
      scope: AgentScope,
      sourceId: SourceId,
      id: ChunkId
    ) {
      const { agentId, tenantId } = scope
      const text = yield* textOf(scope, sourceId, id)
      if (Option.isNone(text)) return "missing" as const
      yield* sql`
        delete from passage_exclusions where tenant_id = ${tenantId} and source_id = ${sourceId}
          and text_hash = ${textHash(sql, sql`${text.value}::text`)}`
      const restoredChunks = yield* sql<{ readonly length: number }>`
        update chunks c set excluded = false,
          version = (select version + 1 from agent_stats where tenant_id = ${tenantId} and agent_id = ${agentId})
        from sources s
        where s.tenant_id = ${tenantId} and s.id = ${sourceId} and c.tenant_id = s.tenant_id and c.source_id = s.id
          and c.generation = s.live_generation and c.excluded and c.content = ${text.value}
        returning c.length`
      if (restoredChunks.length === 0) return "unchanged" as const
      yield* addToStats(scope, restoredChunks, 1)
      return "changed" as const
    }, Effect.orDie)

    return { documents, document, passages, citingTurns, has, exclude, restore } as const
  })
}) {}
