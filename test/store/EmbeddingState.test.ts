/** Progress of a source's vectors, and the form in which they are stored. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SourceStore } from "../../src/store/knowledge/Sources.ts"
import { conversionStart, VectorEncodingStore } from "../../src/store/knowledge/VectorEncoding.ts"
import { Embedder } from "../../src/capabilities/Embedder.ts"
import { ingest, known, page, source, stores } from "../capabilities/VectorSearch/Knowledge.ts"
import * as Fixtures from "../Fixtures.ts"
import { layerHashing } from "../HashingEmbedder.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const services = Layer.mergeAll(stores, SourceStore.Default, VectorEncodingStore.Default, layerHashing())

eachEngineLive("A source's embedding", (it) => {
  it.scoped(
    "counts chunks that the built-in model does not support as done, but as missing for any other model",
    () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const store = yield* SourceStore
        const scope = yield* Fixtures.agent()
        const sourceId = yield* source(scope)
        const english = "Backups are made every night, and they are kept for a week."
        const russian = "Резервные копии создаются каждую ночь и хранятся неделю."
        yield* ingest(scope, sourceId, [page(english), page(russian)])
        const state = Effect.map(store.find(scope, sourceId), (found) => found?.embedding)
        expect(yield* state).toMatchObject({ profile: null, chunks: 2, embedded: 1 })
        yield* sql`update agent_stats set profile = 'multilingual/1024' where agent_id = ${scope.agentId}`
        expect(yield* state).toMatchObject({ profile: "multilingual/1024", chunks: 2, embedded: 0 })
      }).pipe(Effect.provide(services))
  )

  it.scoped(
    "is stored in the form of 0.1.0 while a process of 0.1.0 is running, and converted afterwards",
    () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const { dimensions } = yield* Embedder
        const { convert, countWaiting } = yield* VectorEncodingStore
        const scope = yield* Fixtures.agent()
        yield* sql`insert into instances (id, lease_until) values ('ins_former', now() + interval '1 hour')`
        yield* known(scope, [page("Backups are made every night."), page("They are kept for a week.")])
        const stored = sql`
        select encoding, octet_length(embedding) as bytes, count(*)::int as count from chunk_embeddings group by 1, 2`
        expect(yield* stored).toEqual([{ encoding: 0, bytes: 4 * dimensions, count: 2 }])
        expect(yield* convert(conversionStart, 100)).toEqual({ count: 0, next: null })
        expect(yield* countWaiting).toBe(2)
        // It was killed.
        yield* sql`update instances set lease_until = now() - interval '1 second'`
        expect((yield* convert(conversionStart, 100)).count).toBe(2)
        expect(yield* stored).toEqual([{ encoding: 1, bytes: 4 + 2 * dimensions, count: 2 }])
        expect(yield* countWaiting).toBe(0)
      }).pipe(Effect.provide(services))
  )
})
