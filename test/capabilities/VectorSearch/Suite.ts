/** The contract of `VectorSearch`, on both database engines. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Embedder, EmbedderError } from "../../../src/capabilities/Embedder.ts"
import { type SearchQuery, VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { embeddingText } from "../../../src/search/Packer.ts"
import { ChunkId, newId, type SourceId } from "../../../src/domain/Ids.ts"
import { ContentStore } from "../../../src/store/knowledge/Contents.ts"
import * as Fixtures from "../../Fixtures.ts"
import { hashVector, makeHashing } from "../../HashingEmbedder.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { build, corpus, embed, ingest, known, page, source, stores, vocabulary } from "./Knowledge.ts"
import { reference, type ReferenceChunk } from "./Reference.ts"

const weight = 0.7

export type SearchLayer = Layer.Layer<VectorSearch, never, SqlClient.SqlClient | Embedder>

const search = (scope: ReadScope, text: string, options: Partial<SearchQuery> = {}) =>
  Effect.flatMap(VectorSearch, ({ search }) => search(scope, { text, topK: 10, minScore: 0, ...options }))

const texts = (scope: ReadScope, text: string, options: Partial<SearchQuery> = {}) =>
  Effect.map(search(scope, text, options), ({ chunks }) => chunks.map((chunk) => chunk.text))

const only = (sourceIds: ReadonlyArray<SourceId> | undefined) =>
  sourceIds === undefined ? undefined : { sourceIds }

const stored = (scope: ReadScope) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{
      id: string
      sourceId: string
      title: string
      heading: string
      content: string
      embedded: boolean
    }>`
      select c.id, c.source_id as "sourceId", d.title, c.heading, c.content, e.chunk_id is not null as embedded
      from chunks c join documents d on d.id = c.document_id left join chunk_embeddings e on e.chunk_id = c.id
      where c.agent_id = ${scope.agentId} and not c.excluded`
    return rows.map((row): ReferenceChunk => ({
      ...row,
      vector: row.embedded ? hashVector(embeddingText(row)) : null
    }))
  })

/** Rows that were read by index, or with the whole table, until now. A session reports them when it has been idle. */
const settledReads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const reads = sql<{ readonly reads: number }>`
    select sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::float8 as reads from pg_stat_user_tables
    where relname in ('chunks', 'chunk_embeddings', 'documents', 'sources')`.pipe(
    Effect.map(([row]) => row?.reads ?? 0)
  )
  yield* sql`select pg_stat_force_next_flush()`
  let last = -1
  let next = yield* reads
  while (next !== last) {
    yield* Effect.sleep("1500 millis")
    last = next
    next = yield* reads
  }
  return next
})

const foreign = [
  "Die Datenbank wird aus einer Sicherung wiederhergestellt, und zwar von der Verwaltung.",
  "Eine Rückzahlung dauert fünf Tage, wenn die Rechnung nicht älter als ein Jahr ist.",
  "База данных восстанавливается из резервной копии.",
  "数据库可以从备份中恢复。",
  "दुकान कल खुली रहेगी।",
  "पुराने काल की कला",
  "Ilık su kullanın."
]

const broken = Layer.succeed(
  Embedder,
  Embedder.of({
    ...makeHashing(),
    embedQuery: () => Effect.fail(new EmbedderError({ message: "down", retryable: true }))
  })
)
const silent = Layer.succeed(
  Embedder,
  Embedder.of({ ...makeHashing(), queryTimeout: "20 millis", embedQuery: () => Effect.never })
)

/** Runs the suite on a backend, on the databases of `each`; each test gets a fresh one over an empty database. */
export const vectorSearchSuite = (name: string, layer: SearchLayer, each = eachEngineLive): void => {
  const over = (embedder: Layer.Layer<Embedder>) => Layer.provideMerge(Layer.merge(layer, stores), embedder)
  const live = over(Layer.succeed(Embedder, makeHashing({ lexicalWeight: weight })))

  each(`VectorSearch ${name}`, (it) => {
    it.scoped("ranks 500 chunks exactly as the documented formulas say", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const documents = corpus(25, 20)
        yield* known(scope, documents.slice(0, 20))
        // Chunks whose vectors are still to come.
        yield* ingest(scope, yield* source(scope), documents.slice(20))
        yield* ingest(
          scope,
          yield* source(scope),
          foreign.map((text) => page(text))
        )
        const chunks = yield* stored(scope)
        expect(chunks.length).toBe(500 + foreign.length)
        const queries = [
          "How do I restore the database from a backup?",
          "rotate the secret token",
          "what is it about",
          "zeppelin upgrade",
          "don't 'quote' \\ the \"pool\" & | ! : * ()",
          "invoice invoice invoice refund",
          "数据库",
          "Wie kann man die Datenbank wiederherstellen?",
          "Как восстановить базу данных?",
          "दुकान कल कब खुलेगी?",
          "ILIK SU",
          vocabulary.join(" ")
        ]
        for (const text of queries) {
          for (const [topK, minScore] of [
            [10, 0],
            [3, 0.25],
            [20, 0.5]
          ] as const) {
            const found = yield* search(scope, text, { topK, minScore })
            const expected = reference(chunks, { text, vector: hashVector(text), topK, minScore }, weight)
            expect(found.degraded).toBe(false)
            expect(found.chunks.map(({ id }) => id)).toEqual(expected.map(({ id }) => id))
            for (const [place, { score }] of found.chunks.entries()) {
              expect(Math.abs(score - (expected[place]?.score ?? Number.NaN))).toBeLessThan(1e-4)
            }
          }
        }
      }).pipe(Effect.provide(live))
    )

    it.scoped("adds further terms to a query, which weigh as the formulas say", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        yield* known(scope, corpus(25, 20))
        const chunks = yield* stored(scope)
        const text = "How do I restore the database?"
        const further = new Map([
          ["refund", 0.7],
          ["databas", 0.25],
          ["zeppelin", 0.1]
        ])
        const found = yield* search(scope, text, { topK: 10, further })
        const query = { text, vector: hashVector(text), topK: 10, minScore: 0, further }
        const expected = reference(chunks, query, weight)
        expect(found.chunks.map(({ id }) => id)).toEqual(expected.map(({ id }) => id))
        for (const [place, { score }] of found.chunks.entries()) {
          expect(Math.abs(score - (expected[place]?.score ?? Number.NaN))).toBeLessThan(1e-4)
        }
        const plain = yield* search(scope, text, { topK: 10 })
        expect(plain.chunks.map(({ id }) => id)).not.toEqual(found.chunks.map(({ id }) => id))
      }).pipe(Effect.provide(live))
    )

    it.scoped("reads each row a few times, also of a tenant that came after the last analysis", () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        yield* known(yield* Fixtures.agent(), corpus(5, 20))
        yield* sql`analyze chunks, chunk_embeddings, documents, sources`
        const scope = yield* Fixtures.agent()
        const chunks = 800
        yield* known(scope, corpus(40, 20))
        const before = yield* settledReads
        const { length } = yield* texts(scope, "restore the backup")
        expect(length).toBe(10)
        const reads = (yield* settledReads) - before
        expect(reads).toBeGreaterThanOrEqual(chunks)
        expect(reads).toBeLessThan(20 * chunks)
      }).pipe(Effect.provide(live))
    )

    it.scoped("leaves out what a filter by source does not name, and scores the rest as without it", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const documents = corpus(12, 10)
        const one = yield* known(scope, documents.slice(0, 4))
        const two = yield* known(scope, documents.slice(4, 8))
        yield* known(scope, documents.slice(8))
        const chunks = yield* stored(scope)
        for (const text of ["restore the database from a backup", "invoice refund", "zeppelin", "数据库"]) {
          const whole = yield* search(scope, text, { topK: 200 })
          const scores = new Map(whole.chunks.map(({ id, score }) => [id, score]))
          for (const sourceIds of [[one], [two, one], undefined]) {
            const found = yield* search(scope, text, { topK: 15, minScore: 0.1, filter: only(sourceIds) })
            const query = { text, vector: hashVector(text), topK: 15, minScore: 0.1, sourceIds }
            expect(found.chunks.map(({ id }) => id)).toEqual(
              reference(chunks, query, weight).map(({ id }) => id)
            )
            for (const { id, score, sourceId } of found.chunks) {
              expect(sourceIds?.includes(sourceId) ?? true).toBe(true)
              expect(score).toBeCloseTo(scores.get(id) ?? Number.NaN, 6)
            }
          }
        }
      }).pipe(Effect.provide(live))
    )

    it.scoped("fills the result from a small source beside a large one", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        yield* known(scope, corpus(10, 30))
        const own = ["restore a backup", "backup tokens", "a vector database"]
        const small = yield* known(
          scope,
          own.map((text) => page(text))
        )
        const found = yield* texts(scope, "database backup", { topK: 3, filter: { sourceIds: [small] } })
        expect(found.toSorted()).toEqual(own.toSorted())
      }).pipe(Effect.provide(live))
    )

    it.scoped("finds nothing in no source, in an unknown one and in another agent's", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        yield* known(scope, [page("backup")])
        const other = yield* known(yield* Fixtures.agent(), [page("backup of another")])
        const unknown = yield* newId.source
        for (const sourceIds of [[], [unknown], [other]]) {
          expect(yield* search(scope, "backup", { filter: { sourceIds } })).toEqual({
            chunks: [],
            degraded: false
          })
        }
        expect(yield* texts(scope, "backup", { filter: {} })).toEqual(["backup"])
      }).pipe(Effect.provide(live))
    )

    it.scoped("says what was found where: text, titles, source, address and the parts of the score", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const sourceId = yield* known(
          scope,
          [page("Backups run daily.", "Operations", "Data > Backups")],
          "Handbook"
        )
        const { chunks } = yield* search(scope, "daily backups")
        expect(chunks).toMatchObject([
          {
            sourceId,
            sourceName: "Handbook",
            title: "Operations",
            heading: "Data > Backups",
            text: "Backups run daily.",
            url: "https://example.com/0"
          }
        ])
        for (const { score, lexical, semantic } of chunks) {
          expect(lexical).toBeGreaterThan(0)
          expect(semantic).toBeGreaterThan(0)
          expect(score).toBeCloseTo(weight * lexical + (1 - weight) * semantic, 10)
        }
      }).pipe(Effect.provide(live))
    )

    it.scoped("finds Chinese, Japanese, Korean and Thai text by parts of it", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const passages = [
          "如何恢复数据库备份",
          "データベースの復元方法",
          "데이터베이스를 복원하는 방법",
          "วิธีกู้คืนฐานข้อมูล"
        ]
        const id = yield* source(scope)
        yield* ingest(
          scope,
          id,
          [...passages, "An English page"].map((passage) => page(passage))
        )
        for (const [place, part] of ["数据库", "復元", "복원", "ฐานข้อมูล"].entries()) {
          expect(yield* texts(scope, part)).toEqual([passages[place]])
        }
      }).pipe(Effect.provide(live))
    )

    it.scoped("never returns what has been deleted, even when the deletion raised no version", () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        const kept = yield* known(scope, [page("backup kept")])
        const gone = yield* known(scope, [page("backup gone"), page("backup one more")])
        expect((yield* texts(scope, "backup")).length).toBe(3)
        yield* sql`delete from sources where id = ${gone}`
        expect(yield* texts(scope, "backup", { topK: 1 })).toEqual(["backup kept"])
        yield* sql`delete from documents where source_id = ${kept}`
        expect(yield* texts(scope, "backup")).toEqual([])
      }).pipe(Effect.provide(live))
    )

    it.scoped("returns after a re-sync the new chunks once and no old ones", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const id = yield* known(scope, [page("backup old one"), page("backup old two")])
        expect((yield* texts(scope, "backup")).toSorted()).toEqual(["backup old one", "backup old two"])
        const goLive = yield* build(scope, id, [page("backup new")])
        expect((yield* texts(scope, "backup")).length).toBe(2)
        yield* goLive
        expect(yield* texts(scope, "backup")).toEqual(["backup new"])
        yield* ingest(scope, id, [page("backup new")])
        expect(yield* texts(scope, "backup")).toEqual(["backup new"])
      }).pipe(Effect.provide(live))
    )

    it.scoped(
      "ranks what is left as if excluded passages were not there, and finds them again when restored",
      () =>
        Effect.gen(function* () {
          yield* reset
          const contents = yield* ContentStore
          const scope = yield* Fixtures.agent()
          const documents = corpus(10, 12)
          const id = yield* known(scope, documents)
          const queries = ["How do I restore the database from a backup?", "rotate the secret token"]
          const ranked = Effect.forEach(queries, (text) => search(scope, text, { topK: 20 }))
          const expected = (chunks: ReadonlyArray<ReferenceChunk>) =>
            queries.map((text) =>
              reference(chunks, { text, vector: hashVector(text), topK: 20, minScore: 0 }, weight).map(
                ({ id }) => id
              )
            )
          const all = yield* stored(scope)
          const before = yield* ranked
          expect(before.map(({ chunks }) => chunks.map(({ id }) => id))).toEqual(expected(all))
          const gone = before.flatMap(({ chunks }) => chunks.slice(0, 3).map((chunk) => chunk.id))
          for (const chunk of gone) yield* contents.exclude(scope, id, chunk)
          const left = yield* stored(scope)
          expect(left.length).toBe(all.length - new Set(gone).size)
          const without = yield* ranked
          expect(without.map(({ chunks }) => chunks.map(({ id }) => id))).toEqual(expected(left))
          // Chunks of a re-sync are new ones; what they say is the same.
          yield* ingest(scope, id, documents)
          yield* embed(scope, id)
          const again = yield* stored(scope)
          expect(again.length).toBe(left.length)
          const afterSync = yield* ranked
          expect(afterSync.map(({ chunks }) => chunks.map(({ id }) => id))).toEqual(expected(again))
          const sql = yield* SqlClient.SqlClient
          const excluded = yield* sql<{ readonly id: string }>`
          select id from chunks where source_id = ${id} and excluded`
          for (const chunk of excluded) yield* contents.restore(scope, id, ChunkId.make(chunk.id))
          yield* embed(scope, id)
          const whole = yield* stored(scope)
          expect(whole.length).toBe(all.length)
          const restored = yield* ranked
          expect(restored.map(({ chunks }) => chunks.map(({ id }) => id))).toEqual(expected(whole))
        }).pipe(Effect.provide(live))
    )

    it.scoped(
      "finds excluded text in no place of its source, in other sources, and no more once it is read again",
      () =>
        Effect.gen(function* () {
          yield* reset
          const contents = yield* ContentStore
          const scope = yield* Fixtures.agent()
          const twice = [page("backup alike", "One"), page("backup alike", "Two"), page("backup other")]
          const id = yield* known(scope, twice)
          yield* known(scope, [page("backup alike", "Elsewhere")])
          const titles = Effect.map(search(scope, "backup alike"), ({ chunks }) =>
            chunks.map(({ text, title }) => `${title}: ${text}`).toSorted()
          )
          expect(yield* titles).toEqual([
            "Elsewhere: backup alike",
            "One: backup alike",
            "Page: backup other",
            "Two: backup alike"
          ])
          const [one] = (yield* search(scope, "backup alike", { filter: { sourceIds: [id] }, topK: 1 }))
            .chunks
          const chunk = one?.id ?? ChunkId.make("none")
          expect(yield* contents.exclude(scope, id, chunk)).toBe("changed")
          expect(yield* contents.exclude(scope, id, chunk)).toBe("unchanged")
          const left = ["Elsewhere: backup alike", "Page: backup other"]
          expect(yield* titles).toEqual(left)
          // Vectors that were being made meanwhile find nothing to belong to.
          yield* embed(scope, id)
          expect(yield* titles).toEqual(left)
          // The page is away for one sync.
          yield* ingest(scope, id, [page("backup other")])
          yield* ingest(scope, id, twice)
          expect(yield* titles).toEqual(left)
          yield* ingest(scope, id, [page("backup alike, but changed", "One")])
          expect(yield* titles).toEqual(["Elsewhere: backup alike", "One: backup alike, but changed"])
          const other = { ...scope, tenantId: (yield* Fixtures.agent()).tenantId }
          expect(yield* contents.restore(other, id, chunk)).toBe("missing")
          expect(yield* contents.exclude(other, id, chunk)).toBe("missing")
        }).pipe(Effect.provide(live))
    )

    it.scoped("finds chunks by their words until their vectors come, then by both", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const id = yield* source(scope)
        yield* ingest(scope, id, [page("Restoring backups", "Page one")])
        const before = yield* search(scope, "restoring")
        expect(before.degraded).toBe(false)
        expect(before.chunks.map(({ score, lexical, semantic }) => [score - lexical, semantic])).toEqual([
          [0, 0]
        ])
        yield* embed(scope, id)
        const [after] = (yield* search(scope, "restoring")).chunks
        expect(after?.semantic).toBeGreaterThan(0)
        expect(after?.lexical).toBe(before.chunks[0]?.lexical)
      }).pipe(Effect.provide(live))
    )

    it.scoped("has a minimum of its own for scores that words alone decide", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const id = yield* source(scope)
        yield* ingest(scope, id, [page("Restoring backups", "Page one")]).pipe(Effect.provide(live))
        const found = Effect.all([
          texts(scope, "restoring", { minScore: 1, minWordScore: 0 }),
          texts(scope, "restoring", { minScore: 0, minWordScore: 1 })
        ])
        expect(yield* Effect.provide(found, live)).toEqual([["Restoring backups"], []])
        yield* embed(scope, id).pipe(Effect.provide(live))
        expect(yield* Effect.provide(found, live)).toEqual([[], ["Restoring backups"]])
        expect(yield* Effect.provide(found, over(broken))).toEqual([["Restoring backups"], []])
      })
    )

    it.scoped("shows a source's new name at once", () =>
      Effect.gen(function* () {
        yield* reset
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        const id = yield* known(scope, [page("backup")], "Old")
        const names = Effect.map(search(scope, "backup"), ({ chunks }) =>
          chunks.map(({ sourceName }) => sourceName)
        )
        expect(yield* names).toEqual(["Old"])
        yield* sql`update sources set name = 'New' where id = ${id}`
        expect(yield* names).toEqual(["New"])
      }).pipe(Effect.provide(live))
    )

    it.scoped("gives a small agent all it has beside a large one, and nothing of another's", () =>
      Effect.gen(function* () {
        yield* reset
        const large = yield* Fixtures.agent()
        const small = yield* Fixtures.agent()
        yield* known(large, corpus(10, 30))
        const own = ["restore a backup", "backup tokens", "database backup"]
        yield* known(
          small,
          own.map((text) => page(text))
        )
        expect((yield* texts(small, "backup", { topK: 20 })).toSorted()).toEqual(own.toSorted())
        const ofLarge = yield* texts(large, "backup", { topK: 20 })
        expect(ofLarge.length).toBe(20)
        expect(ofLarge.filter((text) => own.includes(text))).toEqual([])
        expect(yield* texts({ ...small, tenantId: large.tenantId }, "backup")).toEqual([])
        expect(yield* texts(yield* Fixtures.agent(), "backup")).toEqual([])
      }).pipe(Effect.provide(live))
    )

    it.scoped("answers by words alone and says so when the query cannot be embedded, or not in time", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        yield* known(scope, [page("backup"), page("unrelated")]).pipe(Effect.provide(live))
        for (const embedder of [broken, silent]) {
          const { chunks, degraded } = yield* search(scope, "backup").pipe(Effect.provide(over(embedder)))
          expect(degraded).toBe(true)
          expect(
            chunks.map(({ text, score, lexical, semantic }) => [text, score - lexical, semantic])
          ).toEqual([["backup", 0, 0]])
        }
      })
    )

    it.scoped("never compares vectors of two models", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        yield* known(scope, [page("backup")]).pipe(Effect.provide(live))
        const other = over(Layer.succeed(Embedder, makeHashing({ dimensions: 64 })))
        const { chunks } = yield* search(scope, "backup").pipe(Effect.provide(other))
        expect(chunks.map(({ semantic }) => semantic)).toEqual([0])
      })
    )

    it.scoped("sees at every search all that was committed before it, whoever writes meanwhile", () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const writer = (name: string) =>
          Effect.gen(function* () {
            const id = yield* source(scope, name)
            for (let round = 0; round < 5; round++) {
              yield* ingest(scope, id, [page(`backup ${name}${round}`)])
              expect(yield* texts(scope, `${name}${round}`, { topK: 1 })).toEqual([`backup ${name}${round}`])
              yield* embed(scope, id)
              const [found] = (yield* search(scope, `${name}${round}`, { topK: 1 })).chunks
              expect([found?.text, (found?.semantic ?? 0) > 0]).toEqual([`backup ${name}${round}`, true])
            }
          })
        yield* Effect.all(["alpha", "beta", "gamma"].map(writer), { concurrency: "unbounded", discard: true })
        expect((yield* texts(scope, "backup")).toSorted()).toEqual([
          "backup alpha4",
          "backup beta4",
          "backup gamma4"
        ])
      }).pipe(Effect.provide(live))
    )
  })
}
