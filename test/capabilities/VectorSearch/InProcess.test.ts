import { expect, it } from "@effect/vitest"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import { VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import { layerInProcess } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import { makeAgents } from "../../../src/capabilities/VectorSearch/InProcessAgents.ts"
import { InProcessIndex } from "../../../src/capabilities/VectorSearch/InProcessIndex.ts"
import { LruCache } from "../../../src/concurrency/LruCache.ts"
import type { Rows } from "../../../src/capabilities/VectorSearch/InProcessRows.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { roundVector } from "../../../src/domain/knowledge/StoredVector.ts"
import { AgentId, TenantId } from "../../../src/domain/Ids.ts"
import { indexRow } from "../../../src/search/IndexRow.ts"
import { queryWords } from "../../../src/search/Query.ts"
import * as Fixtures from "../../Fixtures.ts"
import { dimensions, hashVector, makeHashing } from "../../HashingEmbedder.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { known, page, source, ingest, stores } from "./Knowledge.ts"

const search = (scope: ReadScope, text: string) =>
  Effect.flatMap(VectorSearch, ({ search }) => search(scope, { text, topK: 5, minScore: 0 }))

/** The names of the spans that `effect` begins, in order. */
const spansOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const names: Array<string> = []
    const tracer = yield* Effect.tracer
    const recording = Tracer.make({
      span: (name, ...rest) => {
        names.push(name)
        return tracer.span(name, ...rest)
      },
      context: tracer.context
    })
    yield* Effect.withTracer(effect, recording)
    return names
  })
const count = (names: ReadonlyArray<string>, name: string) => names.filter((other) => other === name).length

const embedded: Array<string> = []
const counting = Layer.sync(Embedder, () => {
  embedded.length = 0
  const hashing = makeHashing()
  return Embedder.of({
    ...hashing,
    embedQuery: (text) => {
      embedded.push(text)
      return hashing.embedQuery(text)
    }
  })
})

const live = Layer.provideMerge(
  Layer.merge(layerInProcess({ maxBytes: 1e8, wordsFirstAbove: Infinity }), stores),
  counting
)

eachEngineLive("VectorSearch in process", (it) => {
  it.scoped("asks the database once for a search when nothing has changed", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const id = yield* known(scope, [page("backup")])
      yield* search(scope, "backup")
      const again = yield* spansOf(search(scope, "restore a backup"))
      expect(count(again, "sql.execute")).toBe(1)
      expect(count(again, "VectorSearch.catchUp")).toBe(0)
      yield* known(scope, [page("another backup")])
      expect(count(yield* spansOf(search(scope, "backup")), "VectorSearch.catchUp")).toBe(1)
      yield* ingest(scope, id, [page("a new backup")])
      expect(count(yield* spansOf(search(scope, "backup")), "VectorSearch.catchUp")).toBe(1)
    }).pipe(Effect.provide(live))
  )

  it.scoped("reads an agent once for all its first searches", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      const chunks = Array.from({ length: 700 }, (_, place) => ({ heading: "", content: `backup ${place}` }))
      yield* known(scope, [{ title: "", chunks }])
      const all = Effect.all(
        Array.from({ length: 20 }, (_, place) => search(scope, `backup ${place}`)),
        { concurrency: "unbounded" }
      )
      const names = yield* spansOf(
        Effect.map(all, (found) =>
          expect(found.map(({ chunks }) => chunks[0]?.text)).toEqual(
            Array.from({ length: 20 }, (_, place) => `backup ${place}`)
          )
        )
      )
      expect(count(names, "VectorSearch.catchUp")).toBe(1)
    }).pipe(Effect.provide(live))
  )

  it.scoped("asks the database once for searches that come at the same time, of any agents", () =>
    Effect.gen(function* () {
      yield* reset
      const scopes = yield* Effect.all([Fixtures.agent(), Fixtures.agent(), Fixtures.agent()])
      for (const [place, scope] of scopes.entries()) {
        yield* known(scope, [page(`backup of ${place}`), page(`restore of ${place}`)])
        yield* search(scope, "backup")
      }
      const asked = scopes.flatMap((scope) => [search(scope, "backup"), search(scope, "restore")])
      const names = yield* spansOf(
        Effect.map(Effect.all(asked, { concurrency: "unbounded" }), (found) =>
          expect(found.map(({ chunks }) => chunks[0]?.text)).toEqual(
            scopes.flatMap((_, place) => [`backup of ${place}`, `restore of ${place}`])
          )
        )
      )
      // The first by itself, and the others together.
      expect(count(names, "sql.execute")).toBe(2)
    }).pipe(Effect.provide(live))
  )

  it.scoped("embeds the same question once, and none when there is nothing to compare it with", () =>
    Effect.gen(function* () {
      yield* reset
      const scope = yield* Fixtures.agent()
      yield* search(scope, "backup")
      const id = yield* source(scope)
      yield* ingest(scope, id, [page("words alone")])
      yield* search(scope, "words")
      expect(embedded).toEqual([])
      yield* known(scope, [page("backup")])
      for (const text of ["a backup", "  a  backup\n", "a backup", "   "]) yield* search(scope, text)
      expect(embedded).toEqual(["a backup"])
    }).pipe(Effect.provide(live))
  )

  it.scoped("starts anew when the database has gone back to an older state", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const id = yield* source(scope)
      for (const text of ["one", "two", "three"]) yield* ingest(scope, id, [page(text)])
      yield* search(scope, "three")
      yield* sql`update agent_stats set version = 1`
      yield* sql`update chunks set version = 1, content = 'restored'`
      const { chunks } = yield* search(scope, "three")
      expect(chunks.map(({ text }) => text)).toEqual(["restored"])
    }).pipe(Effect.provide(live))
  )
})

const agentId = AgentId.make("agt_1")
const agent = { tenantId: TenantId.make("ten_1"), agentId }
const profile = "hashing-128"

const row = (id: string, content: string) => ({
  id,
  sourceId: "src_1",
  generation: "1",
  ...indexRow({ title: "", heading: "", content, english: true }),
  embedding: null
})

const options = { maxBytes: 1e8, wordsFirstAbove: Infinity }

/** Rows of one agent, as a test says. */
const rowsOf = (over: Partial<Rows>): Rows => ({
  visible: () => Effect.succeed(new Set(["src_1"])),
  changes: () =>
    Effect.succeed({ version: 1, profile, live: [["src_1", "1"]], chunks: ["a"], vectors: [], excluded: [] }),
  chunks: (_, __, ids) => Effect.succeed(ids.map((id) => row(id, "backup"))),
  words: (_, ids) => Effect.succeed(ids.map((id) => row(id, "backup"))),
  vectors: () => Effect.succeed([]),
  hits: () => Effect.succeed([]),
  ...over
})

it.scoped("A search that goes away leaves the reading of the index to the others", () =>
  Effect.gen(function* () {
    const reading = yield* Deferred.make<void>()
    const gate = yield* Deferred.make<void>()
    let reads = 0
    const rows = rowsOf({
      chunks: (_, __, ids) =>
        Effect.gen(function* () {
          reads++
          yield* Deferred.succeed(reading, undefined)
          yield* Deferred.await(gate)
          return ids.map((id) => row(id, "backup"))
        })
    })
    const agents = yield* makeAgents(rows, () => Effect.succeed(dimensions), options)
    const held = agents.entryOf(agentId)
    const first = yield* Effect.fork(agents.refresh(agent, held, { rebuild: true }))
    yield* Deferred.await(reading)
    const second = yield* Effect.fork(agents.refresh(agent, held, { rebuild: true }))
    yield* Fiber.interrupt(first)
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.join(second)
    expect(reads).toBe(1)
    expect(held.index?.size).toBe(1)
  })
)

it.scoped("A reading that failed half-way is repeated by the next search, and nothing is there twice", () =>
  Effect.gen(function* () {
    const ids = Array.from({ length: 1_200 }, (_, place) => `chk_${place}`)
    let reads = 0
    const rows = rowsOf({
      changes: (_, seen) =>
        Effect.succeed({
          version: seen + 1,
          profile,
          live: [["src_1", "1"]],
          chunks: seen === 0 ? ["a"] : ids,
          vectors: [],
          excluded: []
        }),
      chunks: (_, __, some) =>
        ++reads === 3 ? Effect.die("connection lost") : Effect.succeed(some.map((id) => row(id, "backup")))
    })
    const agents = yield* makeAgents(rows, () => Effect.succeed(dimensions), options)
    const held = agents.entryOf(agentId)
    yield* agents.refresh(agent, held, { rebuild: true })
    const failed = yield* Effect.exit(agents.refresh(agent, held, { rebuild: false }))
    expect(Exit.isFailure(failed)).toBe(true)
    expect(held.index?.version).toBe(1)
    yield* agents.refresh(agent, held, { rebuild: false })
    expect([held.index?.version, held.index?.size]).toEqual([2, 1_201])
  })
)

it.scoped("Indexes that were not used for longest are forgotten when memory is short", () =>
  Effect.gen(function* () {
    const agents = yield* makeAgents(rowsOf({}), () => Effect.succeed(dimensions), {
      ...options,
      maxBytes: 3 * 5_000
    })
    const ids = ["one", "two", "three", "four"].map((name) => AgentId.make(name))
    const [one, two, ...others] = ids.map(agents.entryOf)
    const fill = (place: number, held: typeof one) => {
      const id = ids[place]
      return id === undefined || held === undefined
        ? Effect.void
        : agents.refresh({ ...agent, agentId: id }, held, { rebuild: true })
    }
    yield* fill(0, one)
    yield* fill(1, two)
    agents.entryOf(AgentId.make("one"))
    for (const [place, held] of others.entries()) {
      yield* fill(place + 2, held)
      agents.entryOf(AgentId.make("one"))
    }
    expect(agents.entryOf(AgentId.make("one"))).toBe(one)
    expect(agents.entryOf(AgentId.make("two"))).not.toBe(two)
  })
)

it("A map of recent things keeps the last one however large it is", () => {
  const recent = new LruCache<number>()
  for (const size of [1, 2, 100]) recent.set(String(size), size)
  recent.trimToCost(10, (size) => size)
  expect([recent.get("1"), recent.get("2"), recent.get("100")]).toEqual([undefined, undefined, 100])
})

/** Vectors as of a real model: topics of few dimensions around a common mean. */
const topical = (count: number, size: number) => {
  let state = 5
  const uniform = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  const normal = () => Math.sqrt(-2 * Math.log(uniform() + 1e-12)) * Math.cos(2 * Math.PI * uniform())
  const gaussian = (length: number) => Float32Array.from({ length }, normal)
  const basis = Array.from({ length: 24 }, () => gaussian(size))
  const topics = Array.from({ length: 60 }, () => gaussian(basis.length))
  const mean = gaussian(size).map((value) => value * 2)
  return Array.from({ length: count }, (_, place) => {
    const vector = Float32Array.from(mean)
    for (const [axis, direction] of basis.entries()) {
      const amount = (topics[place % topics.length]?.[axis] ?? 0) + 0.6 * normal()
      for (let at = 0; at < size; at++) vector[at] = (vector[at] ?? 0) + amount * (direction[at] ?? 0)
    }
    const norm = Math.hypot(...vector)
    return vector.map((value) => value / norm)
  })
}

it("Above the size that is scored whole, the best are still exactly the best", { timeout: 60_000 }, () => {
  const size = 256
  const total = 9_000
  const vectors = topical(total + 20, size)
  const words = Array.from({ length: 300 }, (_, place) => `w${place}`)
  const index = new InProcessIndex(size)
  const whole = Array.from({ length: total }, (_, place) => {
    const content = Array.from(
      { length: 12 },
      (_, at) => words[((place + 1) * (at * at + 7)) % (at % 3 === 0 ? 300 : 20)]
    )
    return {
      ...row(`chk_${String(place).padStart(5, "0")}`, content.join(" ")),
      sourceId: place % 3 === 0 ? "src_2" : "src_1",
      // As it is stored.
      vector: roundVector(vectors[place] ?? hashVector("", size))
    }
  })
  for (const { vector, ...chunk } of whole) index.add({ ...chunk, embedding: new Uint8Array(vector.buffer) })
  for (const [place, vector] of vectors.slice(total).entries()) {
    const cosines = whole.map((chunk) =>
      chunk.vector.reduce((sum, value, at) => sum + value * (vector[at] ?? 0), 0)
    )
    for (const lexicalWeight of [0, 0.5, 0.7]) {
      const words = queryWords(place % 4 === 0 ? "" : `w${place} w${place * 13} w3`)
      const asked = { words, lexicalWeight, minScore: 0 }
      const lexical = new Map(
        index.rank({ ...asked, vector: undefined, topK: total }).map((ranked) => [ranked.id, ranked.lexical])
      )
      const expected = whole
        .map(({ id, sourceId }, at) => ({
          id,
          sourceId,
          score: lexicalWeight * (lexical.get(id) ?? 0) + (1 - lexicalWeight) * Math.max(0, cosines[at] ?? 0)
        }))
        .toSorted((one, other) => other.score - one.score || (one.id < other.id ? -1 : 1))
      for (const [sources, wanted] of [
        [undefined, expected],
        [new Set(["src_1"]), expected.filter(({ sourceId }) => sourceId === "src_1")]
      ] as const) {
        const found = index.rank({ ...asked, vector, topK: 20, sources })
        expect(found.map(({ id }) => id)).toEqual(wanted.slice(0, 20).map(({ id }) => id))
      }
    }
  }
})
