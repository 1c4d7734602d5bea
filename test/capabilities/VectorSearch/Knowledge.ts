/** Writes knowledge as ingestion does, for suites that search it. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { newId, type SourceId } from "../../../src/domain/Ids.ts"
import { indexChunk } from "../../../src/search/Indexing.ts"
import { embeddingText } from "../../../src/search/Packer.ts"
import { ContentStore } from "../../../src/store/knowledge/Contents.ts"
import { EmbeddingStore } from "../../../src/store/knowledge/Embeddings.ts"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { KnowledgeStore } from "../../../src/store/knowledge/Knowledge.ts"
import { VectorCopiesStore } from "../../../src/store/knowledge/VectorCopies.ts"
import { VectorEncodingStore } from "../../../src/store/knowledge/VectorEncoding.ts"
import { VectorIndexStore } from "../../../src/store/knowledge/VectorIndexes.ts"
import { VectorStorage } from "../../../src/usecases/knowledge/VectorStorage.ts"

export interface Written {
  readonly title: string
  readonly chunks: ReadonlyArray<{ readonly heading: string; readonly content: string }>
}

/** One document of one chunk. */
export const page = (content: string, title = "Page", heading = ""): Written => ({
  title,
  chunks: [{ heading, content }]
})

export const vocabulary = (
  "backup restore database connection pool timeout server client install upgrade version license invoice payment " +
  "refund customer widget channel message webhook signature token secret rotate agent source crawl sitemap chunk " +
  "vector score citation answer stream browser cookie session password login role tenant usage limit plan quota don't"
).split(" ")

/** Numbers that look random and are the same every time. */
const dice = (seed: number) => {
  let state = seed
  return (sides: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * sides)
  }
}

/** The same documents every time, of common words. */
export const corpus = (documents: number, chunks: number): ReadonlyArray<Written> => {
  const roll = dice(7)
  const word = () => vocabulary[Math.min(roll(vocabulary.length), roll(vocabulary.length))] ?? ""
  const words = (count: number) => Array.from({ length: count }, word).join(" ")
  return Array.from({ length: documents }, () => ({
    title: words(2),
    chunks: Array.from({ length: chunks }, () => ({
      heading: roll(3) === 0 ? words(2) : "",
      content: words(5 + roll(60))
    }))
  }))
}

const digest = "00".repeat(32)

export const stores = Layer.mergeAll(
  ContentStore.Default,
  KnowledgeStore.Default,
  IngestionJobStore.Default,
  EmbeddingStore.Default
)

export const source = (scope: AgentScope, name = "Source") =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const id = yield* newId.source
    yield* sql`
      insert into sources (id, tenant_id, agent_id, type, name, config)
      values (${id}, ${scope.tenantId}, ${scope.agentId}, 'URL', ${name}, '{}')`
    return id
  }).pipe(Effect.orDie)

/** Builds a generation and leaves it aside; `goLive` makes it the one that answers. */
export const build = (scope: AgentScope, sourceId: SourceId, documents: ReadonlyArray<Written>) =>
  Effect.gen(function* () {
    const jobs = yield* IngestionJobStore
    const knowledge = yield* KnowledgeStore
    const sql = yield* SqlClient.SqlClient
    const embedder = yield* Embedder
    const { id } = yield* jobs.insert(scope, { id: yield* newId.ingestionJob, sourceId, type: "REINDEX" })
    const task = yield* Effect.flatMap(Effect.flatten(jobs.task(scope, id)), jobs.start).pipe(
      Effect.flatten,
      Effect.orDie
    )
    for (const [place, { title, chunks }] of documents.entries()) {
      const rows = yield* Effect.forEach(chunks, ({ heading, content }, ordinal) =>
        Effect.map(newId.chunk, (chunkId) => ({
          id: chunkId,
          ordinal,
          heading,
          content,
          contentHash: digest,
          ...indexChunk({ title, heading, content }, true)
        }))
      )
      const uri = `https://example.com/${place}`
      yield* knowledge.addDocuments(task, [
        {
          id: yield* newId.document,
          uri,
          title,
          contentHash: digest,
          chunks: rows
        }
      ])
    }
    const goLive = Effect.gen(function* () {
      const { chunks } = yield* knowledge.swap(task, embedder)
      yield* jobs.succeed(task, chunks)
    }).pipe(sql.withTransaction, Effect.orDie)
    return goLive
  })

/** Replaces what the source says. */
export const ingest = (scope: AgentScope, sourceId: SourceId, documents: ReadonlyArray<Written>) =>
  Effect.flatten(build(scope, sourceId, documents))

/** Adds the vectors that are missing. */
export const embed = (scope: AgentScope, sourceId: SourceId) =>
  Effect.gen(function* () {
    const embeddings = yield* EmbeddingStore
    const embedder = yield* Embedder
    const missing = yield* embeddings.chunksWithoutVector(scope, sourceId, embedder, 100_000)
    const vectors = yield* Effect.orDie(embedder.embedAll(missing.map(embeddingText)))
    yield* embeddings.addVectors(
      scope,
      embedder.profile,
      missing.flatMap(({ id }, place) =>
        Option.match(Option.fromNullable(vectors[place]), {
          onNone: () => [],
          onSome: (vector) => [{ id, vector }]
        })
      )
    )
  })

/** A source that says `documents`, with vectors. */
export const known = (scope: AgentScope, documents: ReadonlyArray<Written>, name?: string) =>
  Effect.gen(function* () {
    const id = yield* source(scope, name)
    yield* ingest(scope, id, documents)
    yield* embed(scope, id)
    return id
  })

/** What workers do in the background: vectors are converted, and agents of more than so many chunks have an index. */
export const keepVectors = (largerThan: number) =>
  Effect.flatMap(VectorStorage, ({ convert, maintainIndexes }) =>
    Effect.zipRight(convert, maintainIndexes(largerThan))
  ).pipe(
    Effect.provide(
      VectorStorage.Default.pipe(
        Layer.provide([VectorCopiesStore.Default, VectorEncodingStore.Default, VectorIndexStore.Default])
      )
    )
  )
