/** Behaviour of pgvector beyond the contract of `VectorSearch`. */
import * as SqlClient from "@effect/sql/SqlClient"
import type { Vitest } from "@effect/vitest"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Tracer from "effect/Tracer"
import { Embedder, OtherEmbedders } from "../../../src/capabilities/Embedder.ts"
import { type SearchResult, VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import { layerInProcess } from "../../../src/capabilities/VectorSearch/InProcess.ts"
import { layerPgvector } from "../../../src/capabilities/VectorSearch/Pgvector.ts"
import { recallMetric } from "../../../src/capabilities/VectorSearch/PgvectorRecall.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import type { ChunkId, SourceId } from "../../../src/domain/Ids.ts"
import type { Database } from "../../../src/store/Database.ts"
import { roundVector, vectorText } from "../../../src/domain/knowledge/StoredVector.ts"
import { EmbeddingStore } from "../../../src/store/knowledge/Embeddings.ts"
import { conversionStart, VectorEncodingStore } from "../../../src/store/knowledge/VectorEncoding.ts"
import * as Fixtures from "../../Fixtures.ts"
import { makeHashing } from "../../HashingEmbedder.ts"
import { reset } from "../../TestDatabase.ts"
import { corpus, embed, ingest, keepVectors, known, page, source, stores, vocabulary } from "./Knowledge.ts"

type Each = (name: string, suite: (it: Vitest.MethodsNonLive<Database, true>) => void) => void

const dimensions = 32
/** Vectors lie around so many centres. */
const centres = 40
const weight = 0.2

/** A unit vector near a centre, the same for the same numbers. */
const clustered = (centre: number, member: number): Float32Array => {
  const vector = Float32Array.from(
    { length: dimensions },
    (_, place) =>
      Math.sin(centre * 12.9898 + place * 78.233) + 0.6 * Math.sin(member * 4.1414 + place * 37.719 + centre)
  )
  const norm = Math.hypot(...vector)
  return vector.map((value) => value / norm)
}

/** Embeds "centre 3 member 7" where that vector lies. */
const embedder = (profile = "clustered") => {
  const vectorOf = (text: string) => {
    const [centre = 0, member = 0] = Array.from(text.matchAll(/\d+/gu), ([number]) => Number(number))
    return clustered(centre, member + 0.5)
  }
  return Layer.succeed(
    Embedder,
    Embedder.of({
      ...makeHashing({ lexicalWeight: weight }),
      profile,
      dimensions,
      embedQuery: (text) => Effect.sync(() => vectorOf(text)),
      embedAll: (texts) => Effect.sync(() => texts.map(vectorOf))
    })
  )
}

/** Chunks written in bulk into a source that is live, as 0.1.0 did, each with a vector near one of the centres. */
const bulk = (scope: ReadScope, sourceId: SourceId, count: number, prefix: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const document = `doc_${prefix}`
    yield* sql`update sources set live_generation = 1 where id = ${sourceId}`
    yield* sql`
      insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash)
      values (${document}, ${scope.tenantId}, ${scope.agentId}, ${sourceId}, 1, ${prefix}, '', '')`
    yield* sql`
      insert into chunks (id, tenant_id, agent_id, source_id, generation, document_id, ordinal, content, content_hash, tsv, length, version)
      select ${prefix} || lpad(i::text, 8, '0'), ${scope.tenantId}, ${scope.agentId}, ${sourceId}, 1, ${document}, i, 'chunk ' || i, '',
        ('''chunk'' ''c' || i % ${centres}::int || '''')::tsvector, 2, 1
      from generate_series(0, ${count - 1}::int) i`
    yield* sql`
      insert into agent_stats (tenant_id, agent_id, chunk_count, length_sum, version, profile)
      values (${scope.tenantId}, ${scope.agentId}, ${count}, ${2 * count}, 1, 'clustered')
      on conflict (tenant_id, agent_id) do update set chunk_count = agent_stats.chunk_count + excluded.chunk_count,
        length_sum = agent_stats.length_sum + excluded.length_sum`
    const size = 2_000
    for (let from = 0; from < count; from += size) {
      const vectors = Array.from({ length: Math.min(size, count - from) }, (_, place) =>
        Buffer.from(clustered((from + place) % centres, from + place).buffer).toString("base64")
      )
      yield* sql`
        insert into chunk_embeddings (tenant_id, chunk_id, profile, agent_id, version, embedding)
        select ${scope.tenantId}, ${prefix} || lpad((v.place + ${from}::int - 1)::text, 8, '0'), 'clustered', ${scope.agentId}, 1,
          decode(v.vector, 'base64')
        from jsonb_array_elements_text(${JSON.stringify(vectors)}::jsonb) with ordinality as v (vector, place)`
    }
  })

const search = (scope: ReadScope, text: string, topK = 10, sourceIds?: ReadonlyArray<SourceId>) =>
  Effect.flatMap(VectorSearch, ({ search }) =>
    search(scope, { text, topK, minScore: 0, filter: sourceIds === undefined ? undefined : { sourceIds } })
  )

const ids = (scope: ReadScope, text: string, topK?: number, sourceIds?: ReadonlyArray<SourceId>) =>
  Effect.map(search(scope, text, topK, sourceIds), ({ chunks }) => chunks.map(({ id }) => id))

/** What `effect` gives, and which searches in the database it took. */
const statements = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const spans: Array<Tracer.Span> = []
    const tracer = yield* Effect.tracer
    const noting = Tracer.make({
      span: (name, ...rest) => {
        const span = tracer.span(name, ...rest)
        if (name === "VectorSearch.statement") spans.push(span)
        return span
      },
      context: tracer.context
    })
    const result = yield* Effect.withTracer(effect, noting)
    return { count: spans.length, spans, result }
  })

/** Runs on databases with pgvector; `large` chunks are more than `exactUpTo`. */
export const pgvectorSuite = (
  each: Each,
  { exactUpTo, large }: { readonly exactUpTo: number; readonly large: number }
): void => {
  const over = (limit: number, sampleRate = 0, profile?: string) =>
    Layer.provideMerge(
      Layer.merge(
        layerPgvector({ maxBytes: 1e8, wordsFirstAbove: Infinity, exactUpTo: limit, sampleRate }),
        stores
      ),
      embedder(profile)
    )

  each("VectorSearch by pgvector, beyond the others", (it) => {
    it.scoped(
      "finds in a large agent at least 95 % of what an exact search does, and never fewer rows than there are",
      () =>
        Effect.gen(function* () {
          yield* reset
          const big = yield* Fixtures.agent()
          const bigSource = yield* source(big)
          yield* bulk(big, bigSource, large, "chk_big")
          const rare = yield* source(big)
          yield* bulk(big, rare, 12, "chk_rare")
          const small = yield* Effect.forEach(Array.from({ length: 5 }), (_, place) =>
            Effect.gen(function* () {
              const scope = yield* Fixtures.agent()
              yield* bulk(scope, yield* source(scope), 15, `chk_small${place}_`)
              return scope
            })
          )
          yield* keepVectors(exactUpTo)
          const queries = Array.from({ length: 20 }, (_, place) => `centre ${place * 2} member ${place * 31}`)
          const measure = (limit: number) =>
            Effect.provide(
              Effect.forEach(queries, (text) => ids(big, text)),
              over(limit)
            )
          const approximate = yield* measure(exactUpTo)
          const exact = yield* measure(10_000_000)
          const shares = exact.map((wanted, place) => {
            expect(approximate[place]?.length).toBe(10)
            return wanted.filter((id) => approximate[place]?.includes(id)).length / wanted.length
          })
          expect(shares.reduce((sum, share) => sum + share, 0) / shares.length).toBeGreaterThanOrEqual(0.95)
          yield* Effect.gen(function* () {
            for (const scope of small) expect((yield* ids(scope, "chunk centre 1", 20)).length).toBe(15)
            // A source of a few chunks in the large agent: the index names too few, an exact search follows.
            expect((yield* ids(big, "chunk centre 1 member 3", 20, [rare])).length).toBe(12)
          }).pipe(Effect.provide(over(exactUpTo)))
        }),
      120_000
    )

    it.scoped(
      "finds more with a larger breadth, also beyond the candidates that pgvector yields at a time, sorted by distance",
      () =>
        Effect.gen(function* () {
          yield* reset
          const sql = yield* SqlClient.SqlClient
          const scope = yield* Fixtures.agent()
          const [most, some] = [yield* source(scope), yield* source(scope)]
          yield* bulk(scope, most, large, "chk_most")
          yield* bulk(scope, some, 50, "chk_some")
          yield* keepVectors(exactUpTo)
          const asked = vectorText(clustered(7, 3.5))
          const exact = yield* sql<{ readonly id: string; readonly distance: number }>`
            select chunk_id as id, vector <=> ${asked}::halfvec as distance from chunk_embeddings
            where agent_id = ${scope.agentId} order by (vector <=> ${asked}::halfvec) + 0 limit 1000`
          const distances = new Map(exact.map(({ distance, id }) => [id, distance]))
          const found = (wanted: number, breadth: number, sources: ReadonlyArray<SourceId> | null = null) =>
            Effect.map(
              sql<{ readonly id: string }>`
                select nearest_chunks(${scope.tenantId}, ${scope.agentId}, 'clustered', ${dimensions}::int, ${asked},
                  ${sources === null ? null : JSON.stringify(sources)}::jsonb, ${wanted}::int, ${breadth}::int) as id`,
              (rows) => rows.map(({ id }) => id)
            )
          const shareOf = (ids: ReadonlyArray<string>) => ids.filter((id) => distances.has(id)).length / 1_000
          const narrow = yield* found(1_000, 200)
          const wide = yield* found(1_000, 2_500)
          expect(wide).toHaveLength(1_000)
          expect(shareOf(wide)).toBeGreaterThanOrEqual(0.99)
          expect(shareOf(wide)).toBeGreaterThanOrEqual(shareOf(narrow))
          const sorted = wide.map((id) => distances.get(id) ?? Infinity)
          expect(sorted).toEqual(sorted.toSorted((one, other) => one - other))
          expect(yield* found(10, 2_500)).toEqual(wide.slice(0, 10))
          const within = yield* found(50, 2_500, [some])
          expect(within).toHaveLength(50)
          expect(within.every((id) => id.startsWith("chk_some"))).toBe(true)
        }),
      120_000
    )

    it.scoped(
      "compares every vector of up to 20,000 chunks, as agent_stats counts them, and not of more",
      () =>
        Effect.gen(function* () {
          yield* reset
          const sql = yield* SqlClient.SqlClient
          const scope = yield* Fixtures.agent()
          const id = yield* source(scope)
          const byDefault = Layer.provideMerge(
            Layer.merge(
              layerPgvector({ maxBytes: 1e8, wordsFirstAbove: Infinity, sampleRate: 0, heldUpTo: 0 }),
              stores
            ),
            embedder()
          )
          yield* bulk(scope, id, 100, "chk_counted")
          yield* sql`update agent_stats set chunk_count = 20001 where agent_id = ${scope.agentId}`
          yield* keepVectors(20_000)
          const ways = (chunks: number) =>
            Effect.gen(function* () {
              yield* sql`update agent_stats set chunk_count = ${chunks} where agent_id = ${scope.agentId}`
              const { result, spans } = yield* statements(search(scope, "centre 1 member 2"))
              expect(result.chunks.length).toBe(10)
              return spans.map(({ attributes }) => attributes.get("approximate"))
            })
          yield* Effect.gen(function* () {
            expect(yield* ways(100)).toEqual([false])
            expect(yield* ways(20_000)).toEqual([false])
            expect(yield* ways(20_001)).toEqual([true])
          }).pipe(Effect.provide(byDefault))
        })
    )

    it.scoped(
      "finds in an agent of thousands of chunks what the search in memory finds, with the same scores",
      () =>
        Effect.gen(function* () {
          yield* reset
          const scope = yield* Fixtures.agent()
          const words = Layer.succeed(Embedder, makeHashing({ lexicalWeight: 0.5 }))
          const options = { maxBytes: 1e8, wordsFirstAbove: Infinity, sampleRate: 0, heldUpTo: 0 }
          const byDatabase = Layer.provideMerge(Layer.merge(layerPgvector(options), stores), words)
          const inMemory = Layer.provide(layerInProcess({ maxBytes: 1e8, wordsFirstAbove: Infinity }), words)
          const [one, two] = yield* Effect.gen(function* () {
            const first = yield* known(scope, corpus(60, 20))
            const second = yield* source(scope)
            // Chunks whose vectors are still to come.
            yield* ingest(scope, second, corpus(80, 20).slice(60))
            return [first, second] as const
          }).pipe(Effect.provide(byDatabase))
          const queries = [
            "How do I restore the database from a backup?",
            "rotate the secret token",
            "zeppelin upgrade",
            "what is it about",
            "invoice invoice refund",
            vocabulary.slice(0, 12).join(" "),
            vocabulary.join(" ")
          ]
          const asked = queries.flatMap((text) => [
            { text, topK: 3, minScore: 0 },
            { text, topK: 20, minScore: 0.2 },
            { text, topK: 80, minScore: 0, filter: { sourceIds: [one] } },
            { text, topK: 10, minScore: 0, filter: { sourceIds: [two] } }
          ])
          const answers = Effect.forEach(asked, (query) =>
            Effect.flatMap(VectorSearch, (searcher) => searcher.search(scope, query))
          )
          const wanted = yield* Effect.provide(answers, inMemory)
          const found = yield* Effect.provide(answers, byDatabase)
          for (const [place, { chunks }] of wanted.entries()) {
            const its = new Map(found[place]?.chunks.map(({ id, score }) => [id, score]))
            // What differs by less than a vector's last bit may change places.
            expect([asked[place], [...its.keys()].toSorted()]).toEqual([
              asked[place],
              chunks.map(({ id }) => id).toSorted()
            ])
            for (const { id, score } of chunks) {
              expect(Math.abs(score - (its.get(id) ?? Number.NaN))).toBeLessThan(1e-4)
            }
          }
          expect(wanted.reduce((sum, { chunks }) => sum + chunks.length, 0)).toBeGreaterThan(500)
        }),
      120_000
    )

    it.scoped("measures the recall of sampled approximate searches, for the process and for the agent", () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        const id = yield* source(scope)
        yield* bulk(scope, id, 400, "chk_sampled")
        yield* keepVectors(200)
        const before = yield* Metric.value(recallMetric)
        const recorded = sql<{ readonly sampled: number; readonly mean: number }>`
          select sampled::int as sampled, recall_sum / sampled as mean from retrieval_recall
          where agent_id = ${scope.agentId}`
        yield* Effect.gen(function* () {
          yield* search(scope, "centre 1 member 2")
          const [row] = yield* recorded.pipe(
            Effect.delay("20 millis"),
            Effect.repeat({ until: (rows) => rows.length > 0 }),
            Effect.timeout("20 seconds")
          )
          expect(row?.sampled).toBe(1)
          expect(row?.mean).toBeGreaterThan(0.9)
          expect((yield* Metric.value(recallMetric)).count).toBe(before.count + 1)
        }).pipe(Effect.provide(over(200, 1)))
        // Exact searches have nothing to measure.
        yield* Effect.provide(search(scope, "centre 1 member 2"), over(1_000, 1))
        expect((yield* recorded)[0]?.sampled).toBe(1)
      })
    )

    it.scoped("finds the same before, while and after vectors are converted, and keeps each once", () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        yield* bulk(scope, yield* source(scope), 600, "chk_before")
        const encodings = sql<{ readonly encoding: number; readonly count: number }>`
          select encoding, count(*)::int as count from chunk_embeddings group by encoding order by encoding`
        const encoding = yield* Effect.provide(VectorEncodingStore, VectorEncodingStore.Default)
        const asked = "centre 3 member 43"
        const found = ({ chunks }: SearchResult) => chunks.map(({ id, score }) => [id, score.toFixed(3)])
        const before = yield* Effect.gen(function* () {
          const first = yield* search(scope, asked)
          expect(first.chunks.length).toBe(10)
          expect(first.degraded).toBe(false)
          expect(yield* encodings).toEqual([{ encoding: 0, count: 600 }])
          expect((yield* encoding.convert(conversionStart, 250)).count).toBe(250)
          expect(yield* encodings).toEqual([
            { encoding: 0, count: 350 },
            { encoding: 2, count: 250 }
          ])
          return first
        }).pipe(Effect.provide(over(exactUpTo)))
        // Each by processes that have nothing in memory.
        const during = yield* Effect.provide(statements(search(scope, asked)), over(exactUpTo))
        expect([during.count, found(during.result)]).toEqual([0, found(before)])
        yield* keepVectors(exactUpTo)
        expect(yield* encodings).toEqual([{ encoding: 2, count: 600 }])
        const after = yield* Effect.provide(statements(search(scope, asked)), over(exactUpTo))
        expect([after.count, found(after.result)]).toEqual([1, found(before)])
        const wrong = yield* sql<{ readonly id: string; readonly vector: string }>`
          select chunk_id as id, vector::text as vector from chunk_embeddings`
        for (const { id, vector } of wrong) {
          const place = Number(id.replace("chk_before", ""))
          expect(roundVector(Float32Array.from(JSON.parse(vector)))).toEqual(
            roundVector(clustered(place % centres, place))
          )
        }
      })
    )

    it.scoped(
      "writes vectors as 0.1.0 reads them while one of its processes is running, and finds them",
      () =>
        Effect.gen(function* () {
          yield* reset
          const sql = yield* SqlClient.SqlClient
          const scope = yield* Fixtures.agent()
          const encodings = sql`
          select encoding, count(*)::int as count from chunk_embeddings group by encoding order by encoding`
          const pages = Array.from({ length: 60 }, (_, place) =>
            page(`centre ${place % centres} member ${place}`)
          )
          const asked = "centre 3 member 43"
          const during = yield* Effect.gen(function* () {
            yield* sql`insert into instances (id, lease_until) values ('ins_former', now() + interval '1 hour')`
            yield* known(scope, pages)
            yield* keepVectors(exactUpTo)
            expect(yield* encodings).toEqual([{ encoding: 0, count: 60 }])
            // Also over one that was converted before that process took up its work again.
            const first = sql<{
              readonly id: ChunkId
              readonly encoding: number
              readonly embedding: Uint8Array
            }>`
            select chunk_id as id, encoding, embedding from chunk_embeddings order by chunk_id limit 1`
            const [before] = yield* first
            if (before === undefined) return expect.unreachable()
            yield* sql`
            update chunk_embeddings set encoding = 2, embedding = null, source_id = '', vector = '[1]'
            where chunk_id = ${before.id}`
            const vector = new Float32Array(Uint8Array.from(before.embedding).buffer)
            const { addVectors } = yield* EmbeddingStore
            yield* addVectors(scope, "clustered", [{ id: before.id, vector }])
            expect(yield* first).toEqual([before])
            return yield* search(scope, asked)
          }).pipe(Effect.provide(over(exactUpTo)))
          expect([during.chunks.length, during.degraded]).toEqual([10, false])
          yield* sql`delete from instances`
          yield* keepVectors(exactUpTo)
          expect(yield* encodings).toEqual([{ encoding: 2, count: 60 }])
          const after = yield* Effect.provide(search(scope, asked), over(exactUpTo))
          const found = ({ chunks }: SearchResult) => chunks.map(({ id, score }) => [id, score.toFixed(3)])
          expect(found(after)).toEqual(found(during))
        })
    )

    it.scoped("searches a large agent with the vectors that are converted, and says so", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        yield* bulk(scope, yield* source(scope), 600, "chk_partly")
        const encoding = yield* Effect.provide(VectorEncodingStore, VectorEncodingStore.Default)
        yield* encoding.convert(conversionStart, 100)
        yield* Effect.gen(function* () {
          const during = yield* search(scope, "chunk centre 3")
          expect([during.chunks.length, during.degraded]).toEqual([10, true])
          yield* keepVectors(1_000)
          const after = yield* search(scope, "chunk centre 3")
          expect([after.chunks.length, after.degraded]).toEqual([10, false])
        }).pipe(Effect.provide(over(200)))
      })
    )

    it.scoped(
      "gives a large agent an index, and takes it back when the agent is not large any more or gone",
      () =>
        Effect.gen(function* () {
          yield* reset
          const sql = yield* SqlClient.SqlClient
          const large = yield* Fixtures.agent()
          const small = yield* Fixtures.agent()
          yield* bulk(large, yield* source(large), 300, "chk_large")
          yield* bulk(small, yield* source(small), 100, "chk_small")
          const indexes = Effect.map(
            sql<{ readonly definition: string }>`
            select indexdef as definition from pg_indexes where indexname like 'vectors\_of\_%'`,
            (rows) => rows.map(({ definition }) => definition)
          )
          yield* keepVectors(200)
          const [definition, ...others] = yield* indexes
          expect(definition).toContain(`agent_id = '${large.agentId}'`)
          expect(others).toEqual([])
          // What a killed process leaves is built again.
          yield* sql`update pg_index set indisvalid = false where indexrelid::regclass::text like 'vectors\_of\_%'`
          yield* keepVectors(200)
          const [state] = yield* sql`
          select count(*)::int as count, bool_and(indisvalid) as valid from pg_index
          where indexrelid::regclass::text like 'vectors\_of\_%'`
          expect(state).toEqual({ count: 1, valid: true })
          yield* sql`update agent_stats set chunk_count = 110 where agent_id = ${large.agentId}`
          yield* keepVectors(200)
          expect((yield* indexes).length).toBe(1)
          yield* sql`update agent_stats set chunk_count = 99 where agent_id = ${large.agentId}`
          yield* keepVectors(200)
          expect(yield* indexes).toEqual([])
          yield* sql`update agent_stats set chunk_count = 300 where agent_id = ${large.agentId}`
          yield* keepVectors(200)
          yield* sql`delete from agents where id = ${large.agentId}`
          yield* keepVectors(200)
          expect(yield* indexes).toEqual([])
        })
    )

    it.scoped(
      "answers for an agent that is asked often from memory, alike and never with what was before",
      () =>
        Effect.gen(function* () {
          yield* reset
          const scope = yield* Fixtures.agent()
          const other = yield* Fixtures.agent()
          const id = yield* source(scope)
          const pages = Array.from({ length: 60 }, (_, place) =>
            page(`centre ${place % centres} member ${place}`)
          )
          const held = Layer.provideMerge(
            Layer.merge(
              layerPgvector({
                maxBytes: 1e8,
                wordsFirstAbove: Infinity,
                exactUpTo,
                sampleRate: 0,
                often: 2,
                heldUpTo: 100
              }),
              stores
            ),
            embedder()
          )
          yield* Effect.gen(function* () {
            yield* ingest(scope, id, pages)
            yield* embed(scope, id)
            yield* known(other, [page("centre 3 member 43 of another")])
            const asked = "centre 3 member 43"
            const byDatabase = yield* search(scope, asked)
            const fromMemory = Effect.map(
              Effect.flatMap(statements(search(scope, asked)), ({ count, result }) =>
                count === 0 ? Effect.succeed(result) : Effect.fail("by the database" as const)
              ),
              ({ chunks }) => chunks
            ).pipe(Effect.retry({ schedule: Schedule.spaced("20 millis") }), Effect.timeout("20 seconds"))
            const first = yield* fromMemory
            expect(first.map(({ id }) => id)).toEqual(byDatabase.chunks.map(({ id }) => id))
            for (const [place, { score }] of first.entries()) {
              expect(Math.abs(score - (byDatabase.chunks[place]?.score ?? 0))).toBeLessThan(1e-4)
            }
            // Whatever is committed is there at the next search, and what is gone is not.
            const fresh = "centre 3 member 43 of a new page"
            const more = yield* known(scope, [page(fresh)])
            expect((yield* search(scope, asked)).chunks.map(({ text }) => text)).toContain(fresh)
            expect((yield* fromMemory).map(({ text }) => text)).toContain(fresh)
            const sql = yield* SqlClient.SqlClient
            yield* sql`delete from sources where id = ${more}`
            expect((yield* search(scope, asked)).chunks.map(({ text }) => text)).not.toContain(fresh)
            // Once it is larger than what is held, the database searches.
            yield* known(
              scope,
              Array.from({ length: 60 }, (_, place) =>
                page(`centre ${place % centres} member ${place + 500}`)
              )
            )
            for (let times = 0; times < 4; times++) yield* search(scope, asked)
            expect((yield* statements(search(scope, asked))).count).toBe(1)
          }).pipe(Effect.provide(held))
        })
    )

    it.scoped("removes a chunk's vector with the chunk, and keeps vectors in their rows", () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        yield* Effect.gen(function* () {
          const kept = yield* known(scope, [page("centre 1 member 1")])
          const gone = yield* known(scope, [page("centre 2 member 2")])
          yield* sql`delete from sources where id = ${gone}`
          expect(yield* sql`select encoding, source_id as source from chunk_embeddings`).toEqual([
            { encoding: 2, source: kept }
          ])
          // Outside of their rows they would be compressed or moved when a row exceeds 2,000 bytes.
          const wide = `[${Array.from({ length: 3_900 }, (_, place) => Math.sin(place * place).toFixed(4)).join(",")}]`
          yield* sql`update chunk_embeddings set vector = ${wide}::halfvec`
          expect(yield* sql`select pg_column_size(vector) as bytes from chunk_embeddings`).toEqual([
            { bytes: 7_808 }
          ])
          const [outside] = yield* sql<{ readonly name: string }>`
            select reltoastrelid::regclass::text as name from pg_class where oid = 'chunk_embeddings'::regclass`
          expect(yield* sql.unsafe(`select from ${outside?.name ?? ""}`)).toEqual([])
        }).pipe(Effect.provide(over(exactUpTo)))
      })
    )

    it.scoped("searches an agent that still answers with the vectors of another model", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const pages = Array.from({ length: 60 }, (_, place) =>
          page(`centre ${place % centres} member ${place}`)
        )
        const asked = "centre 3 member 43"
        const before = yield* Effect.provide(
          Effect.zipRight(known(scope, pages), search(scope, asked)),
          over(exactUpTo, 0, "former")
        )
        const others = Layer.effect(
          OtherEmbedders,
          Effect.map(Embedder, (former) => ({
            of: (profile: string) =>
              Effect.succeed(profile === "former" ? Option.some(former) : Option.none())
          }))
        ).pipe(Layer.provide(embedder("former")))
        const during = yield* Effect.provide(search(scope, asked), Layer.provide(over(exactUpTo), others))
        expect(during).toEqual(before)
        // Without that model words alone decide.
        const without = yield* Effect.provide(search(scope, asked), over(exactUpTo))
        expect([without.chunks.length, without.degraded]).toEqual([10, true])
        expect(without.chunks.every(({ semantic }) => semantic === 0)).toBe(true)
      })
    )
  })
}
