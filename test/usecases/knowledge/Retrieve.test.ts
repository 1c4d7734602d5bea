import { expect, it as plain } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import { layerInProcess } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { RetrieveRequest } from "../../../src/domain/knowledge/Chunk.ts"
import { newId } from "../../../src/domain/Ids.ts"
import { CreateSource } from "../../../src/domain/knowledge/Source.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { Retrieve } from "../../../src/usecases/knowledge/Retrieve.ts"
import { known, page, stores } from "../../capabilities/VectorSearch/Knowledge.ts"
import * as Fixtures from "../../Fixtures.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

const liveWith = (embedder: Embedder["Type"]) =>
  Retrieve.Default.pipe(
    Layer.provideMerge(
      Layer.mergeAll(layerInProcess({ maxBytes: 1e8, wordsFirstAbove: Infinity }), stores, AgentStore.Default)
    ),
    Layer.provideMerge(Layer.succeed(Embedder, embedder))
  )

const live = liveWith(makeHashing())

/** Adds every query that is embedded to `queries`. */
const searchedBy = (queries: Array<string>) => {
  const hashing = makeHashing()
  return Embedder.of({
    ...hashing,
    embedQuery: (text) => Effect.suspend(() => (queries.push(text), hashing.embedQuery(text)))
  })
}

const decode = Schema.decodeUnknownSync(RetrieveRequest)

const found = (scope: ReadScope, filter?: unknown) =>
  Effect.gen(function* () {
    const { run } = yield* Retrieve
    const request = { query: "backup", topK: 20, ...(filter === undefined ? {} : { filter }) }
    const { chunks } = yield* run(scope, decode(request))
    return chunks.map(({ text }) => text.replace("backup ", "")).toSorted()
  })

const told = (scope: ReadScope, text: string, type: string, metadata?: object) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const id = yield* known(scope, [page(`backup ${text}`)])
    const config = JSON.stringify(metadata === undefined ? {} : { metadata })
    yield* sql`update sources set type = ${type}, config = ${config}::jsonb where id = ${id}`
    return id
  })

eachEngineLive("Retrieve", (it) => {
  it.scoped("searches only the sources that meet every condition of the filter", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const manual = yield* told(scope, "manual", "FILE", { product: "disk", year: 2026, public: true })
      const site = yield* told(scope, "site", "URL", { product: "disk", year: 2025 })
      const plain = yield* told(scope, "plain", "SITEMAP")
      for (const [filter, texts] of [
        [undefined, ["manual", "plain", "site"]],
        [{}, ["manual", "plain", "site"]],
        [{ metadata: {} }, ["manual", "plain", "site"]],
        [{ sourceIds: [manual, plain] }, ["manual", "plain"]],
        [{ sourceIds: [] }, []],
        [{ sourceTypes: ["URL", "FILE"] }, ["manual", "site"]],
        [{ sourceTypes: [] }, []],
        [{ metadata: { product: "disk" } }, ["manual", "site"]],
        [{ metadata: { product: "disk", year: 2026 } }, ["manual"]],
        [{ metadata: { year: 2026, public: true } }, ["manual"]],
        [{ metadata: { year: "2026" } }, []],
        [{ metadata: { public: false } }, []],
        [{ metadata: { product: "dis" } }, []],
        [{ metadata: { absent: "disk" } }, []],
        [{ sourceIds: [site, plain], metadata: { product: "disk" } }, ["site"]],
        [{ sourceIds: [site], sourceTypes: ["FILE"], metadata: { product: "disk" } }, []]
      ] as const) {
        expect([filter, yield* found(scope, filter)]).toEqual([filter, texts])
      }
    }).pipe(Effect.provide(live))
  )

  it.scoped("finds nothing by the ids and metadata of another agent's sources, nor by unknown ones", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const foreign = yield* Fixtures.agent()
      yield* told(scope, "own", "FILE")
      const other = yield* told(foreign, "other", "FILE", { product: "disk" })
      const unknown = yield* newId.source
      for (const filter of [
        { sourceIds: [other] },
        { sourceIds: [other], sourceTypes: ["FILE"] },
        { metadata: { product: "disk" } },
        { sourceIds: [unknown, "anything at all'"] }
      ]) {
        expect(yield* found(scope, filter)).toEqual([])
        expect(yield* found({ ...foreign, tenantId: scope.tenantId }, filter)).toEqual([])
      }
      expect(yield* found(foreign, { metadata: { product: "disk" } })).toEqual(["other"])
    }).pipe(Effect.provide(live))
  )

  it.scoped(
    "searches for no personal data where the agent masks it, and for all of the query elsewhere",
    () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        yield* told(scope, "manual", "FILE")
        const asked: Array<string> = []
        const words = "backup of ada@example.org"
        const run = Effect.flatMap(Retrieve, ({ run }) => run(scope, decode({ query: words })))
        const search = Effect.provide(run, liveWith(searchedBy(asked)))
        expect((yield* search).chunks).toHaveLength(1)
        const sql = yield* SqlClient.SqlClient
        const masking = JSON.stringify({ kinds: ["email"], patterns: [], sources: false, tools: [] })
        yield* sql`update agents set masking = ${masking}::jsonb where id = ${scope.agentId}`
        expect((yield* search).chunks).toHaveLength(1)
        expect(asked).toEqual([words, "backup of"])
      }).pipe(Effect.provide(live))
  )
})

const accepts = (filter: unknown) =>
  Either.isRight(Schema.decodeUnknownEither(RetrieveRequest)({ query: "backup", filter }))

const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]))

plain("A filter enforces its limits exactly", () => {
  for (const filter of [
    { sourceIds: Array.from({ length: 100 }, (_, at) => `src_${at}`) },
    { sourceTypes: ["URL", "SITEMAP", "FILE", "IMAGE", "BULK_UPLOAD"] },
    { metadata: { ...keys(19), "größe.in_mm-2": -1.5 } },
    { metadata: { ["k".repeat(64)]: "x".repeat(500), done: false } }
  ]) {
    expect(accepts(filter)).toBe(true)
  }
  for (const filter of [
    null,
    [],
    { sourceIds: Array.from({ length: 101 }, (_, at) => `src_${at}`) },
    { sourceIds: "src_1" },
    { sourceIds: [1] },
    { sourceTypes: ["PAGE"] },
    { metadata: keys(21) },
    { metadata: { ["k".repeat(65)]: 1 } },
    { metadata: { "": 1 } },
    { metadata: { "a b": 1 } },
    { metadata: { key: "x".repeat(501) } },
    { metadata: { key: null } },
    { metadata: { key: ["a"] } },
    { metadata: { key: { deep: 1 } } },
    { metadata: { key: Number.NaN } },
    { metadata: [1] }
  ]) {
    expect([filter, accepts(filter)]).toEqual([filter, false])
  }
})

plain("Every type of source accepts metadata when it is created", () => {
  const url = "https://example.com/"
  const metadata = { product: "disk", year: 2026 }
  const configs = {
    URL: { url },
    SITEMAP: { url },
    FILE: { fileUrl: url },
    IMAGE: { fileUrl: url },
    BULK_UPLOAD: {}
  }
  for (const [type, config] of Object.entries(configs)) {
    const source = { type, name: "Source", config: { ...config, metadata } }
    expect(Schema.decodeUnknownSync(CreateSource)(source).config.metadata).toEqual(metadata)
    const wrong = { ...source, config: { ...config, metadata: { deep: {} } } }
    expect(Either.isLeft(Schema.decodeUnknownEither(CreateSource)(wrong))).toBe(true)
  }
})
