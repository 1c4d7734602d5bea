/** Progress of a source's vectors. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { SourceStore } from "../../src/store/knowledge/Sources.ts"
import { ingest, page, source, stores } from "../capabilities/VectorSearch/Knowledge.ts"
import * as Fixtures from "../Fixtures.ts"
import { layerHashing } from "../HashingEmbedder.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const services = Layer.mergeAll(stores, SourceStore.Default, layerHashing())

eachEngineLive("A source's embedding", (it) => {
  it.scoped(
    "counts chunks that the built-in model does not know as done, and those of any other model as missing",
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
})
