/** Chunks that an earlier version indexed: found as they were, and indexed anew in the background. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import { VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import { layerInProcess } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { terms, toTsvector } from "../../../src/search/Tokenizer.ts"
import { indexFormat } from "../../../src/store/knowledge/Knowledge.ts"
import { ReindexStore } from "../../../src/store/knowledge/Reindex.ts"
import { Reindex } from "../../../src/usecases/knowledge/Reindex.ts"
import { known, page, stores } from "../../capabilities/VectorSearch/Knowledge.ts"
import * as Fixtures from "../../Fixtures.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

const englishOnly = Layer.succeed(Embedder, { ...makeHashing(), englishOnly: true })
const services = Layer.mergeAll(layerInProcess({ maxBytes: 1e8 }), Reindex.Default).pipe(
  Layer.provideMerge(Layer.mergeAll(stores, ReindexStore.Default)),
  Layer.provideMerge(englishOnly)
)

const english = "Backups are made every night, and they are kept for a week."
const russian = "Резервные копии создаются каждую ночь и хранятся неделю."
const german = "Die Sicherungen werden jede Nacht erstellt und eine Woche aufbewahrt."

/** As an earlier version would have left the agent's chunks: whole words, and a vector for each. */
const asBefore = (scope: ReadScope) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const chunks = yield* sql<{ readonly id: string; readonly content: string }>`
      select id, content from chunks where agent_id = ${scope.agentId}`
    for (const { content, id } of chunks) {
      const { length, tsv } = toTsvector(terms(content))
      yield* sql`
        update chunks set tsv = ${tsv}::tsvector, length = ${length}::int, english = true where id = ${id}`
      yield* sql`
        insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, embedding)
        select tenant_id, ${id}, profile, agent_id, version, embedding from chunk_embeddings where agent_id = ${scope.agentId} limit 1
        on conflict do nothing`
    }
    yield* sql`update documents set index_format = ${indexFormat - 1} where agent_id = ${scope.agentId}`
    yield* sql`
      update agent_stats set version = version + 1,
        length_sum = (select sum(length) from chunks where agent_id = ${scope.agentId})
      where agent_id = ${scope.agentId}`
  })

const found = (scope: ReadScope, text: string) =>
  Effect.flatMap(VectorSearch, ({ search }) =>
    Effect.map(search(scope, { text, topK: 1, minScore: 0 }), ({ chunks }) => chunks.map(({ text }) => text))
  )

eachEngineLive("Stored chunks", (it) => {
  it.scoped(
    "of an earlier version have a database index, so that finding them does not read every document",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const [index] = yield* sql<{ readonly definition: string }>`
        select indexdef as definition from pg_indexes where indexname = 'documents_of_old_format'`
        expect(index?.definition).toContain(`WHERE (index_format < ${indexFormat})`)
      }).pipe(Effect.provide(services))
  )

  it.scoped("of an earlier version are found as before, and by their word forms once reindexed", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      yield* known(
        scope,
        [english, russian, german].map((text) => page(text, ""))
      )
      const rows = sql`select tsv::text as tsv, length, english from chunks order by id`
      const fresh = yield* rows
      yield* asBefore(scope)
      expect(yield* found(scope, "копии")).toEqual([russian])
      expect(yield* found(scope, "копий")).toEqual([])
      yield* Effect.flatMap(Reindex, ({ sweep }) => sweep)
      expect(yield* found(scope, "копий")).toEqual([russian])
      expect(yield* found(scope, "Wie lange wird eine Sicherung aufbewahrt?")).toEqual([german])
      expect(yield* found(scope, "every night")).toEqual([english])
      expect(yield* rows).toEqual(fresh)
      const [sums] = yield* sql<{ readonly same: boolean; readonly vectors: number }>`
        select length_sum = (select sum(length) from chunks) as same,
          (select count(*)::int from chunk_embeddings) as vectors
        from agent_stats where agent_id = ${scope.agentId}`
      expect(sums).toEqual({ same: true, vectors: 1 })
      expect(yield* Effect.flatMap(Reindex, ({ sweep }) => sweep)).toBe(false)
    }).pipe(Effect.provide(services))
  )
})
