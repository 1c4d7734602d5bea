/**
 * What the default recipe of retrieval is worth on a labelled collection, beside its two halves alone. Everything under
 * test is what the service runs: the documents are uploaded as ZIPs of Markdown, ingested and embedded by the use-cases,
 * and asked for through the use-case behind `POST /v1/retrieve`; only the weight of the words differs between the rows.
 */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { zipSync } from "fflate"
import { bootstrap, mean } from "../../src/domain/agents/evaluation/Statistics.ts"
import * as Config from "../../src/app/config/Config.ts"
import * as Live from "../../src/app/Live.ts"
import { Embedder } from "../../src/capabilities/Embedder.ts"
import type { QueueJob } from "../../src/capabilities/JobQueue.ts"
import { layerInProcess } from "../../src/capabilities/VectorSearch/InProcess.ts"
import { layerWithFeedback } from "../../src/capabilities/VectorSearch/WithFeedback.ts"
import type { AgentScope } from "../../src/domain/accounts/Access.ts"
import { newId, QueueJobId } from "../../src/domain/Ids.ts"
import { Embed } from "../../src/usecases/knowledge/Embed.ts"
import { Ingest } from "../../src/usecases/knowledge/Ingest.ts"
import { AgentStore } from "../../src/store/agents/Agents.ts"
import { Retrieve } from "../../src/usecases/knowledge/Retrieve.ts"
import { Sources } from "../../src/usecases/knowledge/Sources.ts"
import { type Collection, read } from "./Collection.ts"
import { ndcg, recall } from "./Metrics.ts"

/** Documents of one ZIP, below the most that a source may have. */
const batch = 500
/** Chunks asked for: enough for ten documents, as the best chunk of each counts. */
const topK = 50

const createAgent = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const scope: AgentScope = { tenantId: yield* newId.tenant, agentId: yield* newId.agent }
  yield* sql`insert into tenants (id, name) values (${scope.tenantId}, 'Evaluation')`
  yield* sql`
    insert into subscriptions (tenant_id, plan, public_api, turns_limit, ingestion_jobs_limit, sources_limit, overage_enabled)
    values (${scope.tenantId}, 'self-hosted', true, 1000, 1000, 1000, false)`
  yield* sql`insert into agents (id, tenant_id, name) values (${scope.agentId}, ${scope.tenantId}, 'Evaluation')`
  return scope
})

const job = (queue: QueueJob["queue"], payload: QueueJob["payload"]): QueueJob => ({
  id: QueueJobId.make("evaluation"),
  queue,
  payload,
  attempt: 1,
  lastAttempt: true
})

/** Uploads, ingests and embeds the documents; file names are numbers, for an id may be anything. */
const uploadAndIngest = (scope: AgentScope, { documents }: Collection) =>
  Effect.gen(function* () {
    const sources = yield* Sources
    const ingest = yield* Ingest
    const embed = yield* Embed
    for (let from = 0; from < documents.length; from += batch) {
      const files = documents.slice(from, from + batch).map(({ text, title }, place) => {
        const heading = title === "" ? "" : `# ${title}\n\n`
        return [`${from + place}.md`, new TextEncoder().encode(`${heading}${text}\n`)] as const
      })
      const upload = {
        name: `From ${from}`,
        fileName: "documents.zip",
        bytes: zipSync(Object.fromEntries(files))
      }
      const { ingestionJob, source } = yield* sources.upload(scope, "BULK_UPLOAD", upload)
      yield* ingest.process(job("ingestion", { tenantId: scope.tenantId, jobId: ingestionJob?.id ?? "" }))
      process.stderr.write(`\r${from + files.length} of ${documents.length} documents read, embedding … `)
      yield* embed.process(job("embedding", { tenantId: scope.tenantId, sourceId: source.id }))
    }
    process.stderr.write("\n")
    const sql = yield* SqlClient.SqlClient
    const rows = yield* sql<{ readonly id: string; readonly uri: string }>`
      select id, uri from documents where agent_id = ${scope.agentId}`
    return new Map(
      rows.map(({ id, uri }) => [id, documents[Number(/(\d+)\.md$/u.exec(uri)?.[1] ?? -1)]?.id ?? uri])
    )
  })

/** The documents found for each query, best first: by the default recipe, or without feedback and with this weight of words. */
const rankings = (
  scope: AgentScope,
  { queries }: Collection,
  names: ReadonlyMap<string, string>,
  lexicalWeight?: number
) =>
  Effect.gen(function* () {
    const embedder = yield* Embedder
    const backend = layerInProcess({ maxBytes: 1e9, wordsFirstAbove: Infinity })
    const search =
      lexicalWeight === undefined
        ? Layer.provide(layerWithFeedback, backend)
        : Layer.provide(backend, Layer.succeed(Embedder, { ...embedder, lexicalWeight: () => lexicalWeight }))
    const runQueries = Effect.flatMap(Retrieve, ({ run }) =>
      Effect.forEach(queries, ({ text }) =>
        Effect.map(
          run({ ...scope, sourceScope: null }, { query: text.slice(0, 1_000), topK, minScore: 0 }),
          ({ chunks }) => [...new Set(chunks.map(({ documentId }) => names.get(documentId) ?? ""))]
        )
      )
    )
    return yield* Effect.provide(
      runQueries,
      Retrieve.Default.pipe(Layer.provide(search), Layer.provide(AgentStore.Default))
    )
  })

const rounded = (value: number): number => Math.round(value * 1_000) / 1_000

const evaluate = (name: string, collection: Collection) =>
  Effect.gen(function* () {
    const scope = yield* createAgent
    const names = yield* uploadAndIngest(scope, collection)
    const { profile } = yield* Embedder
    const measure = (weight?: number) =>
      Effect.map(rankings(scope, collection, names, weight), (found) => {
        const scores = collection.queries.map(({ relevant }, place) => ndcg(found[place] ?? [], relevant))
        const recalls = collection.queries.map(({ relevant }, place) => recall(found[place] ?? [], relevant))
        return { scores, ndcg10: rounded(mean(scores)), recall10: rounded(mean(recalls)) }
      })
    const hybrid = yield* measure()
    const words = yield* measure(1)
    const vectors = yield* measure(0)
    const differenceTo = (other: { readonly scores: ReadonlyArray<number> }) => {
      const differences = hybrid.scores.map((score, place) => score - (other.scores[place] ?? 0))
      const { high, low } = bootstrap(differences)
      return { mean: rounded(mean(differences)), interval95: [low, high].map(rounded) }
    }
    const [{ chunks = 0 } = {}] = yield* Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql<{ readonly chunks: number }>`
        select count(*)::int as chunks from chunks where agent_id = ${scope.agentId}`
    )
    const row = ({ ndcg10, recall10 }: typeof hybrid) => ({ ndcg10, recall10 })
    // Of queries whose ids begin with the name of a group, as `de-q1`.
    const groups = new Map<string, Array<number>>()
    for (const [place, { id }] of collection.queries.entries()) {
      const [, group] = /^(\p{Letter}+)-/u.exec(id) ?? []
      if (group === undefined) continue
      groups.set(group, [...(groups.get(group) ?? []), hybrid.scores[place] ?? 0])
    }
    return {
      collection: name,
      documents: collection.documents.length,
      chunks,
      queries: collection.queries.length,
      embedder: profile,
      default: row(hybrid),
      bm25: row(words),
      vectors: row(vectors),
      ...(groups.size > 1 && {
        ndcg10By: Object.fromEntries([...groups].map(([group, scores]) => [group, rounded(mean(scores))]))
      }),
      defaultOverBm25: differenceTo(words),
      defaultOverVectors: differenceTo(vectors)
    }
  })

/** Runs on an embedded database of its own with the offline model, in a folder that is removed. */
export const run = async (folder: string, name: string) => {
  const dataDir = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-retrieval-"))
  const program = Effect.gen(function* () {
    const settings = yield* Config.fromRecord({ SPOKE_DATA_DIR: dataDir }, false)
    return yield* Effect.provide(evaluate(name, read(folder)), Live.layer(settings))
  })
  return Effect.runPromise(Effect.scoped(program)).finally(() =>
    fs.rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
  )
}
