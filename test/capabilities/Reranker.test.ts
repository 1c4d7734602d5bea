import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/TestClock"
import { Reranker, RerankerError } from "../../src/capabilities/Reranker.ts"
import { layerHttp } from "../../src/capabilities/Reranker/Http.ts"
import { layerNone } from "../../src/capabilities/Reranker/None.ts"
import { type FoundChunk, type SearchQuery, VectorSearch } from "../../src/capabilities/VectorSearch.ts"
import { layerReranked } from "../../src/capabilities/VectorSearch/Reranked.ts"
import { AgentId, ChunkId, DocumentId, SourceId, TenantId } from "../../src/domain/Ids.ts"

const key = "sk-rerank-secret"

interface Seen {
  readonly headers: IncomingMessage["headers"]
  readonly body: unknown
}

const bodyOf = async (request: IncomingMessage): Promise<unknown> => {
  let text = ""
  for await (const part of request) text += String(part)
  return JSON.parse(text)
}

/** A provider that answers as `answer` says; undefined: never. */
const stub = (answer: () => { readonly status?: number; readonly body: unknown } | undefined) =>
  Effect.acquireRelease(
    Effect.async<{ readonly url: string; readonly seen: Array<Seen>; readonly close: () => void }>(
      (resume) => {
        const seen: Array<Seen> = []
        const respond = async (request: IncomingMessage, response: ServerResponse) => {
          seen.push({ headers: request.headers, body: await bodyOf(request) })
          const given = answer()
          if (given === undefined) return
          response.writeHead(given.status ?? 200, { "content-type": "application/json" })
          response.end(typeof given.body === "string" ? given.body : JSON.stringify(given.body))
        }
        const server = createServer((request, response) => void respond(request, response))
        const close = () => {
          server.closeAllConnections()
          server.close()
        }
        server.listen(0, "127.0.0.1", () => {
          const address = server.address()
          const port = typeof address === "object" && address !== null ? address.port : 0
          resume(Effect.succeed({ url: `http://127.0.0.1:${port}/v1/rerank`, seen, close }))
        })
      }
    ),
    ({ close }) => Effect.sync(close)
  )

const over = (url: string, timeout = "5 seconds" as const) =>
  Layer.provide(
    layerHttp({ url, model: "tiny-rerank", apiKey: Redacted.make(key), timeout }),
    NodeHttpClient.layer
  )

const rerank = (query: string, passages: ReadonlyArray<string>) =>
  Effect.flatMap(Reranker, ({ rerank: run }) => run(query, passages))

it.scopedLive("A reranker is asked in the widespread form and answers in the order of the passages", () =>
  Effect.gen(function* () {
    const { seen, url } = yield* stub(() => ({
      body: {
        id: "other fields do not matter",
        results: [
          { index: 2, relevance_score: 0.9, document: { text: "c" } },
          { index: 0, relevance_score: 0.25 }
        ]
      }
    }))
    expect(yield* rerank("question", ["a", "b", "c"]).pipe(Effect.provide(over(url)))).toEqual([0.25, 0, 0.9])
    expect(seen.map(({ body }) => body)).toEqual([
      { model: "tiny-rerank", query: "question", documents: ["a", "b", "c"], top_n: 3 }
    ])
    expect(seen[0]?.headers.authorization).toBe(`Bearer ${key}`)
  })
)

it.scopedLive("Scores that are no shares are brought between 0 and 1 in their order", () =>
  Effect.gen(function* () {
    const scores = [-11.2, 3.5, 0.4]
    const { url } = yield* stub(() => ({
      body: { results: scores.map((score, index) => ({ index, relevance_score: score })) }
    }))
    const shares = yield* rerank("question", ["a", "b", "c"]).pipe(Effect.provide(over(url)))
    expect(shares.every((share) => share >= 0 && share <= 1)).toBe(true)
    expect(shares.toSorted((one, other) => one - other)).toEqual([shares[0], shares[2], shares[1]])
  })
)

it.scopedLive("An answer that does not fit, a status and a silence are typed failures without the key", () =>
  Effect.gen(function* () {
    const result = (index: number) => ({ index, relevance_score: 0.5 })
    for (const [answer, message] of [
      [{ body: "not json" }, "The reranker's answer cannot be read."],
      [{ body: { results: "none" } }, "The reranker's answer cannot be read."],
      [{ body: { results: [{ index: 0 }] } }, "The reranker's answer cannot be read."],
      [{ body: { results: [] } }, "The reranker's answer does not fit the request."],
      [{ body: { results: [result(0), result(0)] } }, "The reranker's answer does not fit the request."],
      [{ body: { results: [result(2)] } }, "The reranker's answer does not fit the request."],
      [{ status: 401, body: { error: `bad key ${key}` } }, "The reranker answered with status 401."],
      [{ status: 503, body: "" }, "The reranker answered with status 503."]
    ] as const) {
      const { url } = yield* stub(() => answer)
      const failed = yield* Effect.exit(rerank("q", ["a", "b"]).pipe(Effect.provide(over(url))))
      expect(failed).toEqual(Exit.fail(new RerankerError({ message })))
      expect(JSON.stringify(failed)).not.toContain(key)
    }
    const { url } = yield* stub(() => undefined)
    const layer = Layer.provide(
      layerHttp({ url, model: "tiny-rerank", timeout: "50 millis" }),
      NodeHttpClient.layer
    )
    expect(yield* Effect.exit(rerank("q", ["a"]).pipe(Effect.provide(layer)))).toEqual(
      Exit.fail(new RerankerError({ message: "The reranker did not answer in time." }))
    )
  })
)

const good = { body: { results: [{ index: 0, relevance_score: 1 }] } }

it.scoped("A request that the reranker refuses does not keep others from it", () =>
  Effect.gen(function* () {
    for (const refused of [
      { status: 400, body: "" },
      { status: 413, body: "" },
      { status: 422, body: "" },
      { body: { results: [] } },
      { body: "not json" }
    ]) {
      let first = true
      const { seen, url } = yield* stub(() => {
        const answer = first ? refused : good
        first = false
        return answer
      })
      yield* Effect.gen(function* () {
        expect(Exit.isFailure(yield* Effect.exit(rerank("q", ["a"])))).toBe(true)
        expect(yield* rerank("q", ["a"])).toEqual([1])
        expect(seen.length).toBe(2)
      }).pipe(Effect.provide(over(url)))
    }
  })
)

it.scoped.each([500, 503, 429])("A reranker that answered with %s is left alone for ten seconds", (status) =>
  Effect.gen(function* () {
    let broken = true
    const { seen, url } = yield* stub(() => (broken ? { status, body: "" } : good))
    yield* Effect.gen(function* () {
      expect(Exit.isFailure(yield* Effect.exit(rerank("q", ["a"])))).toBe(true)
      broken = false
      yield* TestClock.adjust("9 seconds")
      expect(Exit.isFailure(yield* Effect.exit(rerank("q", ["a"])))).toBe(true)
      expect(seen.length).toBe(1)
      yield* TestClock.adjust("1 seconds")
      expect(yield* rerank("q", ["a"])).toEqual([1])
    }).pipe(Effect.provide(over(url)))
  })
)

const scope = { tenantId: TenantId.make("ten_1"), agentId: AgentId.make("agt_1"), sourceScope: null }

const found = (place: number): FoundChunk => ({
  id: ChunkId.make(`chk_${place}`),
  documentId: DocumentId.make("doc_1"),
  sourceId: SourceId.make("src_1"),
  sourceName: "Handbook",
  title: "Backups",
  ordinal: 0,
  heading: "Disks",
  text: `passage ${place}`,
  url: "https://example.com/",
  score: 1 - place / 100,
  lexical: 0.5,
  semantic: 0.5
})

/** A search that finds `passage 0`, `passage 1` and so on, and notes what it was asked. */
const searching = (asked: Ref.Ref<ReadonlyArray<SearchQuery>>, reranker: Layer.Layer<Reranker>) =>
  layerReranked.pipe(
    Layer.provide(
      Layer.succeed(VectorSearch, {
        warm: Effect.succeed(true),
        search: (_, query) =>
          Effect.as(
            Ref.update(asked, (before) => [...before, query]),
            { chunks: Array.from({ length: query.topK }, (__, place) => found(place)), degraded: false }
          )
      })
    ),
    Layer.provide(reranker)
  )

const query: SearchQuery = {
  text: "question",
  topK: 3,
  minScore: 0.2,
  filter: { sourceIds: [SourceId.make("src_1")] }
}

const searched = (reranker: Layer.Layer<Reranker>) =>
  Effect.gen(function* () {
    const asked = yield* Ref.make<ReadonlyArray<SearchQuery>>([])
    const { chunks } = yield* Effect.flatMap(VectorSearch, ({ search }) => search(scope, query)).pipe(
      Effect.provide(searching(asked, reranker))
    )
    return { chunks, asked: yield* Ref.get(asked) }
  })

it.effect("A reranker puts four candidates for each wanted chunk in order, and their scores stay", () =>
  Effect.gen(function* () {
    const read: Array<string> = []
    const lastFirst = Layer.succeed(Reranker, {
      widen: 4,
      rerank: (_, passages) => {
        read.push(...passages)
        return Effect.succeed(passages.map((__, place) => place / 100))
      }
    })
    const { asked, chunks } = yield* searched(lastFirst)
    expect(asked).toEqual([{ ...query, topK: 12 }])
    expect(read[11]).toBe("Backups\nDisks\npassage 11")
    expect(chunks).toEqual([found(11), found(10), found(9)])
  })
)

it.effect(
  "A search whose order is not used asks no reranker, and the backend for no more than is wanted",
  () =>
    Effect.gen(function* () {
      const asked = yield* Ref.make<ReadonlyArray<SearchQuery>>([])
      let calls = 0
      const counting = Layer.succeed(Reranker, {
        widen: 4,
        rerank: (_, passages) =>
          Effect.sync(() => {
            calls++
            return passages.map((__, place) => place / 100)
          })
      })
      const unordered = { ...query, rerank: false }
      const { chunks } = yield* Effect.flatMap(VectorSearch, ({ search }) => search(scope, unordered)).pipe(
        Effect.provide(searching(asked, counting))
      )
      expect(calls).toBe(0)
      expect((yield* Ref.get(asked)).map(({ topK }) => topK)).toEqual([3])
      expect(chunks).toEqual([found(0), found(1), found(2)])
    })
)

it.effect("A reranker that fails leaves the order of the scores, and no search fails by it", () =>
  Effect.gen(function* () {
    const failing = Layer.succeed(Reranker, {
      widen: 4,
      rerank: () => Effect.fail(new RerankerError({ message: "down" }))
    })
    expect((yield* searched(failing)).chunks).toEqual([found(0), found(1), found(2)])
  })
)

it.effect("Without a reranker the search is asked for what is wanted and nothing more", () =>
  Effect.gen(function* () {
    const { asked, chunks } = yield* searched(layerNone)
    expect(asked).toEqual([query])
    expect(chunks).toEqual([found(0), found(1), found(2)])
  })
)
