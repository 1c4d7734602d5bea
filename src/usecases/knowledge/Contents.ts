/** The content of a source: its documents and passages, the turns that cited them, and the passages excluded from search. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { JobQueue } from "../../capabilities/JobQueue.ts"
import { VectorSearch } from "../../capabilities/VectorSearch.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { Conflict, NotFound, ServiceUnavailable } from "../../domain/Errors.ts"
import type { ChunkId, DocumentId, SourceId } from "../../domain/Ids.ts"
import type { PassageSearch } from "../../domain/knowledge/Content.ts"
import { pageBy } from "../../domain/Page.ts"
import { SourceStore } from "../../store/knowledge/Sources.ts"
import { ContentStore, maxExclusions } from "../../store/knowledge/Contents.ts"
import { makeMaskedQuery } from "./MaskedQuery.ts"

const missingDocument = () =>
  new NotFound({ message: "The source has no such document. A sync may have replaced it." })
const missingPassage = () =>
  new NotFound({ message: "The source has no such passage. A sync may have replaced it." })
const missingSource = () => new NotFound({ message: "The agent has no such source." })
const tooManyExcluded = () =>
  new Conflict({
    message: `A source has ${maxExclusions} excluded passages at most. Take some back, or leave their pages out.`
  })

export class Contents extends Effect.Service<Contents>()("usecases/knowledge/Contents", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* ContentStore
    const sources = yield* SourceStore
    const queue = yield* JobQueue
    const { search } = yield* VectorSearch
    const maskedQuery = yield* makeMaskedQuery

    /** The document with a page of its passages, in reading order. `next`: the ordinal after which the next page begins. */
    const document = Effect.fn("Contents.document")(function* (
      scope: AgentScope,
      sourceId: SourceId,
      id: DocumentId,
      { after, limit }: { readonly after: number; readonly limit: number }
    ) {
      const found = yield* store.document(scope, sourceId, id)
      if (Option.isNone(found)) return yield* missingDocument()
      const rows = yield* store.passages(scope, sourceId, id, { after, limit })
      const { next, rows: passages } = pageBy(rows, limit, ({ ordinal }) => ordinal)
      return { document: found.value, passages, next }
    })

    const citing = Effect.fn("Contents.citing")(function* (
      scope: AgentScope,
      sourceId: SourceId,
      id: ChunkId
    ) {
      if (!(yield* store.has(scope, sourceId, id))) return yield* missingPassage()
      return yield* store.citingTurns(scope, sourceId, id)
    })

    /** Excludes the passage from search, and every passage of the source with the same text that a later sync reads. */
    const exclude = Effect.fn("Contents.exclude")(function* (
      scope: AgentScope,
      sourceId: SourceId,
      id: ChunkId
    ) {
      const outcome = yield* store.exclude(scope, sourceId, id)
      if (outcome === "missing") return yield* missingPassage()
      if (outcome === "full") return yield* tooManyExcluded()
      return { id, excluded: true }
    })

    /** Restores an excluded passage. Search finds it by its words at once, and by its meaning after an embedding job. */
    const restore = Effect.fn("Contents.restore")(function* (
      scope: AgentScope,
      sourceId: SourceId,
      id: ChunkId
    ) {
      const { tenantId } = scope
      yield* Effect.gen(function* () {
        const outcome = yield* store.restore(scope, sourceId, id)
        if (outcome === "missing") return yield* missingPassage()
        if (outcome === "changed")
          yield* queue.enqueue("embedding", { tenantId, sourceId }, { serialKey: sourceId })
      }).pipe(
        sql.withTransaction,
        Effect.catchTags({
          SqlError: Effect.die,
          JobQueueError: () =>
            new ServiceUnavailable({ message: "The job cannot be queued now. Try again later." })
        })
      )
      return { id, excluded: false }
    })

    /** Runs a turn's search for the question, and returns the passages with the parts of each score. */
    const find = Effect.fn("Contents.find")(function* (scope: AgentScope, request: PassageSearch) {
      const { sourceId, topK } = request
      if (sourceId !== undefined && (yield* sources.find(scope, sourceId)) === null)
        return yield* missingSource()
      const filter = sourceId === undefined ? undefined : { sourceIds: [sourceId] }
      const query = { text: yield* maskedQuery(scope, request.query), topK, minScore: 0, filter }
      const { chunks, degraded } = yield* search({ ...scope, sourceScope: null }, query)
      const passages = chunks.map(({ ordinal: _, ...passage }) => passage)
      return { passages, byWordsAlone: degraded }
    })

    return { documents: store.documents, document, citing, exclude, restore, find } as const
  })
}) {}
