/** The text around chunks found by a search, and curated answers that no search finds. */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { ReadScope } from "../../domain/accounts/Access.ts"
import { DocumentId } from "../../domain/Ids.ts"
import type { RetrieveFilter } from "../../domain/knowledge/Chunk.ts"
import { FoundPassage } from "../../domain/knowledge/Content.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import * as Rows from "../Rows.ts"
import { toJsonb } from "../Jsonb.ts"
import { sourceScopeJson } from "./SourceScopeColumns.ts"

/** Position of a chunk. Chunks of a document under the same heading form a section. */
interface ChunkPosition {
  readonly documentId: DocumentId
  readonly heading: string
  /** Index among the chunks of its document. */
  readonly ordinal: number
}

export interface SectionChunk extends ChunkPosition {
  readonly text: string
  /** Time at which the service read the current version of the document. */
  readonly readAt: DateTime.Utc
}

/** Chunks of one section, in reading order. One row is decoded much faster than one for each chunk. */
const SectionRow = Schema.Struct({
  documentId: DocumentId,
  heading: Schema.String,
  readAt: Schema.DateTimeUtcFromDate,
  chunks: Schema.Array(Schema.Tuple(Schema.Number, Schema.String))
})

const sectionsOf = Rows.all(SectionRow)

const QuestionRow = Schema.Struct({ id: DocumentId, question: Schema.String })
/** Maximum number of questions that are compared. */
const maxQuestions = 1_000

const ChunkRow = Schema.Struct({ ...FoundPassage.fields, ordinal: Schema.Int })

/** Number of chunks of the section that are read before and after each place. No budget holds more of one section. */
const chunksBefore = 24
const chunksAfter = 8
/** Number of chunks before each place among which its parent section is looked for. */
const chunksToParent = 64

export class PassageStore extends Effect.Service<PassageStore>()("store/knowledge/Passages", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /**
     * The chunks of the same sections near `places`, including these, and the beginning of the nearest parent section
     * of each that has text, in one statement. Only live documents that the scope may read.
     */
    const around = CheapSpans.fn("PassageStore.around")(function* (
      { agentId, sourceScope, tenantId }: ReadScope,
      places: ReadonlyArray<ChunkPosition>
    ) {
      const asked = places.map(({ documentId, heading, ordinal }) => ({ documentId, heading, ordinal }))
      const scope = sourceScopeJson({ sourceScope })
      // Only called if needed, because the database plans an SQL function again in each statement that calls it.
      const isVisible =
        scope === null
          ? sql`true`
          : sql`source_is_visible(s.id, s.type, s.labels, s.config -> 'metadata', ${`[${scope}]`}::jsonb)`
      const tenant = opaque(sql, tenantId)
      // `offset 0` keeps each lookup an index scan by the keys before it. The planner assumes a hundred places of many
      // documents, and would read all chunks of the tenant.
      const sections = yield* sql`
        with place as (
          select * from jsonb_to_recordset(${toJsonb(asked)}::jsonb) as p ("documentId" text, heading text, ordinal int)
        ),
        document as materialized (
          select d.id, d.created_at
          from (select distinct "documentId" as id from place) asked
          cross join lateral (
            select * from documents d where d.tenant_id = ${tenant} and d.id = asked.id and d.agent_id = ${agentId} offset 0
          ) d
          cross join lateral (
            select * from sources s where s.tenant_id = ${tenant} and s.id = d.source_id offset 0
          ) s
          where s.agent_id = ${agentId} and s.live_generation = d.generation
            and ${isVisible}
        )
        select found.document_id as "documentId", found.heading, found.created_at as "readAt",
          json_agg(json_build_array(found.ordinal, found.content) order by found.ordinal) as chunks
        from (
          select distinct on (c.document_id, c.ordinal) c.document_id, c.heading, c.ordinal, c.content, d.created_at
          from place
          join document d on d.id = place."documentId"
          cross join lateral (
            (
              select * from chunks c
              where c.tenant_id = ${tenant} and c.document_id = d.id and c.heading = place.heading and not c.excluded
                and c.ordinal between place.ordinal - ${chunksBefore}::int and place.ordinal + ${chunksAfter}::int
              offset 0
            ) union all (
              select * from chunks c
              where c.tenant_id = ${tenant} and c.document_id = d.id and not c.excluded
                and c.ordinal between place.ordinal - ${chunksToParent}::int and place.ordinal - 1
                and c.heading <> place.heading
                and (c.heading = '' or starts_with(place.heading, c.heading || ' > '))
              order by length(c.heading) desc, c.ordinal limit 1
            )
          ) c
          order by c.document_id, c.ordinal
        ) found
        group by found.document_id, found.heading, found.created_at`.pipe(sectionsOf)
      return sections.flatMap(({ chunks, ...section }) =>
        chunks.map(([ordinal, text]): SectionChunk => ({ ...section, ordinal, text }))
      )
    }, Effect.orDie)

    /**
     * The questions of `QA` sources that the scope may read and that meet `filter`, of `min` to `max` characters, and
     * their documents.
     */
    const questions = CheapSpans.fn("PassageStore.questions")(function* (
      { agentId, sourceScope, tenantId }: ReadScope,
      filter: RetrieveFilter,
      { max, min }: { readonly min: number; readonly max: number }
    ) {
      const conditions = toJsonb(sourceScope === null ? [filter] : [sourceScope, filter])
      return yield* sql`
        select d.id, d.title as question
        from sources s join documents d
          on d.tenant_id = s.tenant_id and d.source_id = s.id and d.generation = s.live_generation
        where s.tenant_id = ${tenantId} and s.agent_id = ${agentId} and s.type = 'QA'
          and char_length(d.title) between ${min}::int and ${max}::int
          and source_is_visible(s.id, s.type, s.labels, s.config -> 'metadata', ${conditions}::jsonb)
        order by d.id limit ${maxQuestions}`.pipe(Rows.all(QuestionRow))
    }, Effect.orDie)

    /** The searchable chunks of a live document of the agent, in reading order. Their scores are 0. */
    const chunksOf = CheapSpans.fn("PassageStore.chunksOf")(function* (
      { agentId, tenantId }: ReadScope,
      id: DocumentId
    ) {
      return yield* sql`
        select c.id, d.id as "documentId", s.id as "sourceId", s.name as "sourceName", d.title, c.heading, c.ordinal,
          c.content as text, d.uri as url, 0 as score, 0 as lexical, 0 as semantic
        from documents d
        join sources s on s.tenant_id = d.tenant_id and s.id = d.source_id and s.live_generation = d.generation
        join chunks c on c.tenant_id = d.tenant_id and c.document_id = d.id and c.version is not null
        where d.tenant_id = ${tenantId} and d.agent_id = ${agentId} and d.id = ${id}
        order by c.ordinal`.pipe(Rows.all(ChunkRow))
    }, Effect.orDie)

    return { around, questions, chunksOf } as const
  })
}) {}
