/** The text around chunks found by a search. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { ReadScope } from "../../domain/accounts/Access.ts"
import { DocumentId } from "../../domain/Ids.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { toJsonb } from "../Jsonb.ts"
import { sourceScopeJson } from "./SourceScopeColumns.ts"

/** Position of a chunk. Chunks of a document under the same heading form a section. */
interface Place {
  readonly documentId: DocumentId
  readonly heading: string
  /** Index among the chunks of its document. */
  readonly ordinal: number
}

const SectionChunk = Schema.Struct({
  documentId: DocumentId,
  heading: Schema.String,
  ordinal: Schema.Int,
  text: Schema.String,
  /** Time at which the service read the current version of the document. */
  readAt: Schema.DateTimeUtcFromDate
})
export type SectionChunk = typeof SectionChunk.Type

/** Number of chunks of the section that are read before and after each place. No budget holds more of one section. */
const chunksBefore = 24
const chunksAfter = 8

export class PassageStore extends Effect.Service<PassageStore>()("store/knowledge/Passages", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const select = SqlSchema.findAll({
      Request: Schema.Struct({
        tenantId: Schema.String,
        agentId: Schema.String,
        places: Schema.String,
        filters: Schema.NullOr(Schema.String)
      }),
      Result: SectionChunk,
      execute: ({ agentId, filters, places, tenantId }) => sql`
        select distinct c.document_id as "documentId", c.heading, c.ordinal, c.content as text, d.created_at as "readAt"
        from jsonb_to_recordset(${places}::jsonb) as place ("documentId" text, heading text, ordinal int)
        join documents d on d.tenant_id = ${tenantId} and d.id = place."documentId" and d.agent_id = ${agentId}
        join sources s on s.id = d.source_id and s.tenant_id = ${tenantId} and s.agent_id = ${agentId}
          and s.live_generation = d.generation
          and source_is_visible(s.id, s.type, s.labels, s.config -> 'metadata', ${filters}::jsonb)
        join chunks c on c.tenant_id = ${tenantId} and c.document_id = d.id and c.heading = place.heading
          and not c.excluded
          and c.ordinal between place.ordinal - ${chunksBefore}::int and place.ordinal + ${chunksAfter}::int`
    })

    /**
     * The chunks of the same sections near `places`, including these, in one statement. Only live documents that the
     * scope may read.
     */
    const around = CheapSpans.fn("PassageStore.around")(function* (
      { agentId, sourceScope, tenantId }: ReadScope,
      places: ReadonlyArray<Place>
    ) {
      const asked = places.map(({ documentId, heading, ordinal }) => ({ documentId, heading, ordinal }))
      const scope = sourceScopeJson({ sourceScope })
      const filters = scope === null ? null : `[${scope}]`
      return yield* select({ tenantId, agentId, places: toJsonb(asked), filters })
    }, Effect.orDie)

    return { around } as const
  })
}) {}
