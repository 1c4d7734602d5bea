/** Searches in this process while an agent's rows change, or cannot be read. */
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import { makeOverRows } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import { makeAgents } from "../../../src/capabilities/VectorSearch/InProcessAgents.ts"
import { generationKey, InProcessIndex } from "../../../src/capabilities/VectorSearch/InProcessIndex.ts"
import type { Rows } from "../../../src/capabilities/VectorSearch/InProcessRows.ts"
import { yieldToEventLoop } from "../../../src/concurrency/YieldToEventLoop.ts"
import { AgentId, ChunkId, DocumentId, SourceId, TenantId } from "../../../src/domain/Ids.ts"
import { indexRow } from "../../../src/search/IndexRow.ts"
import { queryWords } from "../../../src/search/Query.ts"
import { toTsvector } from "../../../src/search/Tokenizer.ts"
import { dimensions, hashVector, makeHashing } from "../../HashingEmbedder.ts"

const hashing = makeHashing({ lexicalWeight: 0.5 })
const agentId = AgentId.make("agt_1")
const scope = { tenantId: TenantId.make("ten_1"), agentId, sourceScope: null }
const options = { maxBytes: 1e8, wordsFirstAbove: 1 }
const query = { text: "backup", topK: 5, minScore: 0 }
const vectorBytes = new Uint8Array(hashVector("backup", dimensions).buffer)

const rowOf = (id: string) => ({
  id,
  sourceId: "src_1",
  generation: "1",
  ...indexRow({ title: "", heading: "", content: "backup", english: true }),
  embedding: null
})

const hitOf = (id: string) => ({
  id: ChunkId.make(id),
  documentId: DocumentId.make("doc_1"),
  sourceId: SourceId.make("src_1"),
  sourceName: "Handbook",
  title: "",
  heading: "",
  ordinal: 0,
  text: "backup",
  url: "https://example.test"
})

/** Rows of one agent whose chunks `ids` have vectors, at the version that `versionOf` returns. */
const rowsOf = (ids: ReadonlyArray<string>, versionOf: () => number, over: Partial<Rows> = {}): Rows => ({
  visible: () => Effect.succeed(new Set(["src_1"])),
  changes: (_, seen) =>
    Effect.sync(() => ({
      version: versionOf(),
      profile: hashing.profile,
      live: [["src_1", "1"] as const],
      // All chunks are indexed again with every version.
      chunks: seen === versionOf() ? [] : ids,
      vectors: [],
      excluded: []
    })),
  chunks: (_, __, some) => Effect.succeed(some.map((id) => ({ ...rowOf(id), embedding: vectorBytes }))),
  words: (_, some) => Effect.succeed(some.map(rowOf)),
  vectors: (_, __, some) => Effect.succeed(some.map((id) => ({ id, embedding: vectorBytes }))),
  hits: (asked) =>
    Effect.sync(() => asked.map((one) => ({ version: versionOf(), hits: one.ids.map(hitOf) }))),
  ...over
})

it.scopedLive(
  "An index whose vectors failed to load during an update is not complete before they are read",
  () =>
    Effect.gen(function* () {
      const reading = yield* Deferred.make<void>()
      const failing = yield* Deferred.make<void>()
      const changing = yield* Deferred.make<void>()
      const changed = yield* Deferred.make<void>()
      const asked: Array<string> = []
      let version = 1
      const plain = rowsOf(["a", "b", "c"], () => version)
      const agents = yield* makeAgents(
        {
          ...plain,
          // The words of new chunks only: the others are not indexed again.
          changes: (agent, seen) =>
            Effect.gen(function* () {
              const changes = yield* plain.changes(agent, seen)
              if (seen === 0) return changes
              yield* Deferred.succeed(changing, undefined)
              yield* Deferred.await(changed)
              return { ...changes, chunks: ["d"] }
            }),
          vectors: (agent, profile, ids) =>
            Effect.gen(function* () {
              asked.push(ids.join(" "))
              if (asked.length > 1) return yield* plain.vectors(agent, profile, ids)
              yield* Deferred.succeed(reading, undefined)
              yield* Deferred.await(failing)
              return yield* Effect.die("connection lost")
            })
        },
        () => Effect.succeed(dimensions),
        options
      )
      const held = agents.entryOf(agentId)
      yield* agents.refresh(scope, held, { rebuild: true })
      yield* Deferred.await(reading)
      version = 2
      const update = yield* Effect.fork(agents.refresh(scope, held, { rebuild: false }))
      yield* Deferred.await(changing)
      const load = held.vectorLoad
      yield* Deferred.succeed(failing, undefined)
      if (load !== null) yield* Fiber.await(load)
      yield* Deferred.succeed(changed, undefined)
      yield* Fiber.join(update)
      yield* agents.loadFully(scope)
      expect(held.index?.complete).toBe(true)
      expect(held.index?.size).toBe(4)
      expect(asked).toEqual(["a b c", "a b c"])
    })
)

it.scopedLive(
  "An agent whose vectors cannot be read is searched by words, and by meaning once they can",
  () =>
    Effect.gen(function* () {
      let broken = true
      let wordReads = 0
      const plain = rowsOf(["a", "b", "c"], () => 1)
      const { agents, search } = yield* makeOverRows(
        {
          ...plain,
          words: (agent, ids) =>
            Effect.zipRight(
              Effect.sync(() => wordReads++),
              plain.words(agent, ids)
            ),
          vectors: (agent, profile, ids) =>
            Effect.suspend(() => (broken ? Effect.die("corrupt") : plain.vectors(agent, profile, ids)))
        },
        options
      )
      for (let searches = 0; searches < 2; searches++) {
        const found = yield* search(scope, query)
        expect(found.degraded).toBe(true)
        expect(found.chunks.map(({ id, semantic }) => [id, semantic])).toEqual([
          ["a", 0],
          ["b", 0],
          ["c", 0]
        ])
      }
      expect(wordReads).toBe(1)
      broken = false
      yield* search(scope, query)
      yield* agents.loadFully(scope)
      const whole = yield* search(scope, query)
      expect(whole.degraded).toBe(false)
      expect(whole.chunks.map(({ semantic }) => semantic > 0.9)).toEqual([true, true, true])
      expect(wordReads).toBe(1)
    }).pipe(Effect.timeout("10 seconds"), Effect.provideService(Embedder, hashing))
)

it.scopedLive(
  "A search does not return what an update has left of an index, however often it has waited",
  () =>
    Effect.gen(function* () {
      const reading = yield* Deferred.make<void>()
      const readOn = yield* Deferred.make<void>()
      const ids = ["a", "b", "c"]
      let version = 1
      let visits = 0
      let gated = false
      let update: Effect.Effect<void> = Effect.void
      const plain = rowsOf(ids, () => version)
      const { agents, search } = yield* makeOverRows(
        {
          ...plain,
          // The agent changes at each of the first reads of texts.
          hits: (asked) =>
            Effect.suspend(() => {
              if (visits === 1 || visits === 2) version++
              return plain.hits(asked)
            }),
          visible: (agent, filters) =>
            Effect.gen(function* () {
              // Then another search begins an update, which waits for the chunks that it dropped.
              if (++visits === 3) {
                gated = true
                version++
                yield* Effect.forkDaemon(update)
                yield* Deferred.await(reading)
                yield* Effect.forkDaemon(Effect.delay(Deferred.succeed(readOn, undefined), "50 millis"))
              }
              return yield* plain.visible(agent, filters)
            }),
          chunks: (agent, profile, some) =>
            Effect.gen(function* () {
              if (gated) {
                yield* Deferred.succeed(reading, undefined)
                yield* Deferred.await(readOn)
              }
              return yield* plain.chunks(agent, profile, some)
            })
        },
        { ...options, wordsFirstAbove: Infinity }
      )
      update = agents.refresh(scope, agents.entryOf(agentId), { rebuild: false })
      yield* search(scope, query)
      const { chunks } = yield* search(scope, { ...query, filter: { sourceIds: [SourceId.make("src_1")] } })
      expect(gated).toBe(true)
      expect(chunks.map(({ id }) => id)).toEqual(ids)
    }).pipe(Effect.timeout("10 seconds"), Effect.provideService(Embedder, hashing))
)

it.scopedLive("A search uses the first vectors of an agent that another search loads meanwhile", () =>
  Effect.gen(function* () {
    const ids = ["a", "b", "c"]
    let version = 1
    let update: Effect.Effect<void> = Effect.void
    const plain = rowsOf(ids, () => version)
    const { agents, search } = yield* makeOverRows(
      {
        ...plain,
        chunks: (agent, profile, some) =>
          version === 1 ? Effect.succeed(some.map(rowOf)) : plain.chunks(agent, profile, some),
        // The chunks are embedded, and another search loads their vectors, while this one reads the visible sources.
        visible: (agent, filters) =>
          Effect.suspend(() => {
            const isFirst = version === 1
            version = 2
            return Effect.zipRight(isFirst ? update : Effect.void, plain.visible(agent, filters))
          })
      },
      { ...options, wordsFirstAbove: Infinity }
    )
    update = agents.refresh(scope, agents.entryOf(agentId), { rebuild: false })
    yield* agents.loadFully(scope)
    const found = yield* search(scope, { ...query, filter: { sourceIds: [SourceId.make("src_1")] } })
    expect(found.degraded).toBe(false)
    expect(found.chunks.map(({ semantic }) => semantic > 0.9)).toEqual([true, true, true])
  }).pipe(Effect.timeout("10 seconds"), Effect.provideService(Embedder, hashing))
)

it.live(
  "Requests are served while chunks of a large agent are dropped, and no search uses a part of it",
  () =>
    Effect.gen(function* () {
      const total = 10_000
      const index = new InProcessIndex(dimensions, hashing.profile)
      const terms = (place: number) => Array.from({ length: 60 }, (_, at) => `w${(place * (at + 1)) % 5_000}`)
      for (let place = 0; place < total; place++) {
        const { length, tsv } = toTsvector(terms(place))
        index.add({
          ...rowOf(`chk_${place}`),
          generation: String(place % 2),
          tsv,
          length,
          embedding: vectorBytes
        })
      }
      let turns = 0
      let next = setImmediate(function turn() {
        turns++
        next = setImmediate(turn)
      })
      const dropping = yield* Effect.fork(index.retain(new Set([generationKey("src_1", "1")])))
      // Set while chunks move: it must not get another chunk's place.
      const other = new Uint8Array(hashVector("restore", dimensions).buffer)
      yield* yieldToEventLoop
      yield* index.exclusively(Effect.sync(() => index.setVector("chk_9999", other)))
      yield* Fiber.join(dropping)
      clearImmediate(next)
      expect(turns).toBeGreaterThanOrEqual(3)
      expect(index.size).toBe(total / 2)
      const [best] = index.rank({
        words: queryWords(""),
        vector: hashVector("restore", dimensions),
        lexicalWeight: 0,
        topK: 1,
        minScore: 0,
        sources: undefined
      })
      expect(best?.id).toBe("chk_9999")
    })
)

it.scopedLive("An index whose chunks are being dropped is not used in place of the database", () =>
  Effect.gen(function* () {
    const reading = yield* Deferred.make<void>()
    let version = 1
    const plain = rowsOf(["a", "b"], () => version)
    const { agents, loadIntoMemory, searchInMemory } = yield* makeOverRows(
      {
        ...plain,
        chunks: (agent, profile, ids) =>
          version === 1
            ? plain.chunks(agent, profile, ids)
            : Effect.zipRight(Deferred.succeed(reading, undefined), Effect.never),
        // As if the database had not changed: the index itself says that it may not be used.
        hits: (asked) => Effect.succeed(asked.map((one) => ({ version: 1, hits: one.ids.map(hitOf) })))
      },
      { ...options, wordsFirstAbove: 10 }
    )
    const found = searchInMemory(scope, query, queryWords(query.text))
    yield* loadIntoMemory(scope)
    expect(Option.isSome(yield* found)).toBe(true)
    version = 2
    yield* Effect.fork(agents.refresh(scope, agents.entryOf(agentId), { rebuild: false }))
    yield* Deferred.await(reading)
    expect(Option.isNone(yield* found)).toBe(true)
  }).pipe(Effect.provideService(Embedder, hashing))
)
