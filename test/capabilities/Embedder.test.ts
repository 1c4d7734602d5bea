/** The contract of embedders, run on each backend. */
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Embedder } from "../../src/capabilities/Embedder.ts"
import { layerHashing } from "../../src/capabilities/Embedder/Hashing.ts"
import { layerUniversalSentenceEncoder } from "../../src/capabilities/Embedder/Offline.ts"
import { layerOpenAi } from "../../src/capabilities/Embedder/OpenAi.ts"
import { exchange } from "../../src/app/Providers.ts"
import * as ModelStub from "../servers/ModelStub.ts"

const openAi = Layer.unwrapScoped(
  Effect.map(ModelStub.make, ({ url: baseUrl }) =>
    layerOpenAi({ apiKey: Redacted.make("sk-test"), baseUrl, model: "text-embedding-3-small" })
  )
).pipe(Layer.provide(exchange))

const offline = layerUniversalSentenceEncoder({
  script: new URL("../../dist/workers/embed.js", import.meta.url)
})

const dot = (one: Float32Array, other: Float32Array): number =>
  one.reduce((sum, value, place) => sum + value * (other[place] ?? 0), 0)

const odd = [
  "",
  " ",
  "\n\t",
  "\u0000",
  "👋🏽",
  "\ud800 lone",
  "日本語のテキスト",
  "x".repeat(30_000),
  "a ".repeat(9_000)
]

const backends = [
  ["Hashing", layerHashing(64)],
  ["OpenAi", openAi],
  ["Offline", offline]
] as const

for (const [name, backend] of backends) {
  layer(backend, { excludeTestServices: true, timeout: 60_000 })(`Embedder, ${name}`, (it) => {
    it.effect("says what its vectors are, and how far words and meaning count", () =>
      Effect.gen(function* () {
        const { profile, dimensions, lexicalWeight, minScore, maxBatch } = yield* Embedder
        expect(profile.endsWith(`/${dimensions}`)).toBe(true)
        for (const share of [lexicalWeight(0), lexicalWeight(6), lexicalWeight(128), minScore]) {
          expect(share).toBeGreaterThan(0)
          expect(share).toBeLessThan(1)
        }
        expect(maxBatch).toBeGreaterThanOrEqual(1)
        expect(maxBatch).toBeLessThanOrEqual(256)
      })
    )

    it.effect("any text has a vector of length one, with as many numbers as were promised", () =>
      Effect.gen(function* () {
        const embedder = yield* Embedder
        const vectors = yield* embedder.embedAll(odd)
        for (const vector of [...vectors, yield* embedder.embedQuery("")]) {
          expect(vector).toBeInstanceOf(Float32Array)
          expect(vector.length).toBe(embedder.dimensions)
          expect(Math.sqrt(dot(vector, vector))).toBeCloseTo(1, 5)
        }
        expect(vectors).toHaveLength(odd.length)
      })
    )

    it.effect("vectors come in the order of the texts, and alike for a query and a document", () =>
      Effect.gen(function* () {
        const embedder = yield* Embedder
        const texts = ["refund policy", "opening hours", "shipping to Norway", "refund policy", "a password"]
        const vectors = yield* embedder.embedAll(texts)
        for (const [place, text] of texts.entries()) {
          const alone = yield* embedder.embedQuery(text)
          expect(dot(alone, vectors[place] ?? new Float32Array())).toBeCloseTo(1, 4)
        }
      })
    )

    it.effect("texts about one thing are nearer than texts about two", () =>
      Effect.gen(function* () {
        const { embedAll } = yield* Embedder
        const [question = new Float32Array(), near = new Float32Array(), far = new Float32Array()] =
          yield* embedAll([
            "How long does a refund take?",
            "A refund takes five working days.",
            "The printer uses black ink."
          ])
        expect(dot(question, near)).toBeGreaterThan(dot(question, far) + 0.1)
      })
    )

    it.effect("a full batch is taken, and an empty one", () =>
      Effect.gen(function* () {
        const { embedAll, maxBatch } = yield* Embedder
        const texts = Array.from({ length: maxBatch }, (_, place) => `text ${place}`)
        expect(yield* embedAll(texts)).toHaveLength(maxBatch)
        expect(yield* embedAll([])).toEqual([])
      })
    )
  })
}
