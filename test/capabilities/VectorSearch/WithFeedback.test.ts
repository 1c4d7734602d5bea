/** Relevance feedback over any backend: what is searched for, and how often. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import { type FoundChunk, type SearchQuery, VectorSearch } from "../../../src/capabilities/VectorSearch.ts"
import { layerWithFeedback } from "../../../src/capabilities/VectorSearch/WithFeedback.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import { AgentId, ChunkId, DocumentId, SourceId, TenantId } from "../../../src/domain/Ids.ts"

const long = "Which wing shapes reduce the drag of slender bodies near the speed of sound?"

const chunk = (place: number, text: string): FoundChunk => ({
  id: ChunkId.make(`chk_${place}`),
  documentId: DocumentId.make(`doc_${place}`),
  sourceId: SourceId.make("src_1"),
  sourceName: "Reports",
  title: "",
  heading: "",
  ordinal: 0,
  text,
  url: "https://example.test",
  score: 0.9 - place / 100,
  lexical: 0.5,
  semantic: 0.5
})

const words = (place: number) => Array.from({ length: 45 }, (_, at) => `own${at}of${place}`).join(" ")

const filter = { labels: ["a"] }
const keyScope = { labels: ["of the key"] }

/** A backend that finds `chunks`, as many as asked for, and keeps the queries. */
const asked = (
  chunks: ReadonlyArray<FoundChunk>,
  queries: ReadonlyArray<Pick<SearchQuery, "filter" | "text" | "topK">>
) =>
  Effect.gen(function* () {
    const seen = yield* Ref.make<ReadonlyArray<SearchQuery & Pick<ReadScope, "sourceScope">>>([])
    const backend = Layer.succeed(VectorSearch, {
      search: ({ sourceScope }, query) =>
        Effect.as(
          Ref.update(seen, (all) => [...all, { ...query, sourceScope }]),
          { chunks: chunks.slice(0, query.topK), degraded: false }
        ),
      warm: Effect.succeed(true)
    })
    const scope = { tenantId: TenantId.make("ten_1"), agentId: AgentId.make("agt_1"), sourceScope: keyScope }
    const found = yield* Effect.forEach(queries, (query) =>
      Effect.flatMap(VectorSearch, ({ search }) => search(scope, { ...query, minScore: 0.2 }))
    ).pipe(Effect.provide(Layer.provide(layerWithFeedback, backend)))
    return { seen: yield* Ref.get(seen), found }
  })

it.effect(
  "A long query is searched a second time, with the words that the first results have in common",
  () =>
    Effect.gen(function* () {
      const chunks = [0, 1, 2].map((place) => chunk(place, `transonic airfoil ${words(place)}`))
      const { found, seen } = yield* asked(chunks, [{ text: long, topK: 2, filter }])
      expect(seen.map(({ topK }) => topK)).toEqual([10, 2])
      // The words are those of the search without the filter, so that it changes no score; always within the key's scope.
      expect(seen.map((query) => [query.text, query.minScore, query.filter, query.sourceScope])).toEqual([
        [long, 0.2, undefined, keyScope],
        [long, 0.2, filter, keyScope]
      ])
      expect(seen[0]?.further).toBeUndefined()
      expect([...(seen[1]?.further?.keys() ?? [])]).toEqual(["airfoil", "transon"])
      expect(found[0]?.chunks).toHaveLength(2)
    })
)

it.effect("A short query is searched once, and a long one too whose results have nothing to add", () =>
  Effect.gen(function* () {
    const { found, seen } = yield* asked(
      [0, 1, 2].map((place) => chunk(place, words(place))),
      [
        { text: "How large is a wing?", topK: 2 },
        { text: long, topK: 2 }
      ]
    )
    expect(seen.map(({ topK }) => topK)).toEqual([2, 10])
    expect(found.map(({ chunks }) => chunks.length)).toEqual([2, 2])
  })
)

it.effect("Results of the search without the filter are not returned where a filter is asked for", () =>
  Effect.gen(function* () {
    const { found, seen } = yield* asked(
      [0, 1, 2].map((place) => chunk(place, words(place))),
      [{ text: long, topK: 2, filter }]
    )
    expect(seen.map((query) => [query.topK, query.filter])).toEqual([
      [10, undefined],
      [2, filter]
    ])
    expect(seen[1]?.further?.size ?? 0).toBe(0)
    expect(found.map(({ chunks }) => chunks.length)).toEqual([2])
  })
)
