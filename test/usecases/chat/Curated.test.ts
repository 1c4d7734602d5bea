import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it as plain } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import { extract } from "../../../src/capabilities/ModelRuntime/extractive/Extractive.ts"
import { Reranker } from "../../../src/capabilities/Reranker.ts"
import { type FoundChunk, VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import { layerReranked } from "../../../src/capabilities/VectorSearch/Reranked.ts"
import { AgentId, DocumentId, newId, TenantId } from "../../../src/domain/Ids.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { fitPassages, toRuntimePassages } from "../../../src/usecases/chat/grounding/Passages.ts"
import { prependCurated, find } from "../../../src/usecases/chat/grounding/Curated.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { chunk, request, says, Script, turnLayer } from "./TurnHarness.ts"

const asked = "How long does a refund take?"
const answer = (place: number, ordinal = 0) => ({
  ...chunk(place),
  documentId: DocumentId.make("doc_answer"),
  title: asked,
  ordinal,
  text: `Part ${ordinal} of the answer.`
})

const reader = { tenantId: TenantId.make("ten_1"), agentId: AgentId.make("agt_1"), sourceScope: null }

const noTexts = { questions: () => Effect.succeed([]), chunksOf: () => Effect.succeed([]) }

/** What is chosen of what a search finds. */
const chosen = (question: string, chunks: ReadonlyArray<FoundChunk>) => {
  const search = { search: () => Effect.succeed({ chunks, degraded: false }), warm: Effect.succeed(true) }
  return Effect.runSync(find({ search, texts: noTexts }, reader, question))
}

const onFreshData =
  <P, PE, PR>(process: Layer.Layer<P, PE, PR>) =>
  <A, E, R>(test: Effect.Effect<A, E, R>) =>
    Effect.zipRight(reset, Effect.provide(test, process))

plain("A curated answer comes first, complete and in reading order, before other found chunks", () => {
  const found = [chunk(1), answer(3, 1), chunk(2), answer(4, 0)]
  const curated = chosen("how long DOES a refund take", found)
  expect(curated).toMatchObject({ question: asked, likeness: 1 })
  expect(prependCurated(curated, found, 3).map(({ id, score }) => [id, score])).toEqual([
    ["chk_4", 1],
    ["chk_3", 1],
    ["chk_1", chunk(1).score]
  ])
  // The answer itself is never cut.
  expect(prependCurated(curated, found, 1).map(({ id }) => id)).toEqual(["chk_4", "chk_3"])
  expect(chosen("How long does it take to get a refund for shoes and hats?", found)).toBeNull()
  expect(prependCurated(null, found, 1)).toEqual(found)
})

plain("Its search uses no reranker, which might leave out the chunk of an exact question", () => {
  const wider = Array.from({ length: 4 * 20 }, (_, place) => chunk(place + 10))
  const backend = Layer.succeed(VectorSearch, {
    search: (_, { topK }) =>
      Effect.succeed({ chunks: [answer(3), ...wider].slice(0, topK), degraded: false }),
    warm: Effect.succeed(true)
  })
  let calls = 0
  const lastFirst = Layer.succeed(Reranker, {
    widen: 4,
    rerank: (_, passages) =>
      Effect.sync(() => {
        calls++
        return passages.map((__, place) => place / passages.length)
      })
  })
  const curated = Effect.flatMap(VectorSearch, (search) =>
    find({ search, texts: noTexts }, reader, asked)
  ).pipe(Effect.provide(layerReranked.pipe(Layer.provide([backend, lastFirst]))), Effect.runSync)
  expect(curated?.chunks.map(({ id }) => id)).toEqual(["chk_3"])
  expect(calls).toBe(0)
})

plain("Without a model the reply is only the answer, with every row of its tables", () => {
  const rows = Array.from({ length: 12 }, (_, row) => `| ${row} | ${row} days |`)
  const text = ["These:", "", "| Country | Time |", "|---|---|", ...rows].join("\n")
  const [first, second] = toRuntimePassages(fitPassages([{ ...answer(1), text }, chunk(2)], [], 6_000))
  const passages = first === undefined || second === undefined ? [] : [{ ...first, curated: true }, second]
  const reply = extract(asked, passages)
  expect(reply).toContain("| 11 | 11 days |")
  expect(reply).toContain("[1]")
  expect(reply).not.toContain("Fact number 2")
})

eachEngineLive("A question with a curated answer", (it) => {
  it.scoped("is the first passage for the model, is cited, and is in the trace with its similarity", () =>
    Effect.gen(function* () {
      const scope = yield* Fixtures.agent()
      const sql = yield* SqlClient.SqlClient
      const chat = yield* ChatTurn
      const { chunks, reply, requests } = yield* Script
      yield* Ref.set(chunks, [chunk(1), chunk(2), answer(3)])
      yield* Ref.set(reply, says("See [1]."))
      // The agent has no such source: nothing is looked for.
      yield* chat.complete(scope, request({ message: asked }))
      yield* sql`
        insert into sources (id, tenant_id, agent_id, type, name, config)
        values (${yield* newId.source}, ${scope.tenantId}, ${scope.agentId}, 'QA', 'Answers', '{}')`
      const { citations } = yield* chat.complete(scope, request({ message: asked }))
      expect(citations).toMatchObject([{ index: 1, chunkId: "chk_3", title: asked, score: 1 }])
      const passages = (yield* Ref.get(requests)).map((one) =>
        one.passages.map(({ curated, title }) => [title, curated])
      )
      expect(passages).toEqual([
        [
          ["Chapter 1", false],
          ["Chapter 2", false],
          [asked, false]
        ],
        [
          [asked, true],
          ["Chapter 1", false],
          ["Chapter 2", false]
        ]
      ])
      const traced = yield* sql<{ readonly curated: unknown }>`
        select payload -> 'curated' as curated from agent_run_events where type = 'retrieval.completed' order by at`
      expect(traced.map(({ curated }) => curated)).toEqual([null, { question: asked, likeness: 1 }])
    }).pipe(onFreshData(turnLayer()))
  )
})
