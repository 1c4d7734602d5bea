/** The cost of a provider's call: whole billionths of a dollar, or unknown. */
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { describe, expect, it } from "@effect/vitest"
import type { ModelPart, ModelRuntimeService } from "../../../src/capabilities/ModelRuntime.ts"
import { priced } from "../../../src/capabilities/ModelRuntime/prices/Priced.ts"
import { type ListedPrice, priceLists } from "../../../src/capabilities/ModelRuntime/prices/PriceList.ts"
import { requestOf } from "./Harness.ts"

type Finish = Extract<ModelPart, { readonly _tag: "Finish" }>

const openai = "https://api.openai.com/v1"

const billOf = (
  model: string,
  finish: Partial<Finish> = {},
  {
    baseUrl = openai,
    own = [],
    provider = "openai"
  }: Partial<{
    baseUrl: string
    own: ReadonlyArray<ListedPrice>
    provider: string
  }> = {}
) => {
  const inner: ModelRuntimeService = {
    defaultModel: "none",
    contextWindow: 1_000,
    readsPassages: false,
    acceptsImages: false,
    readable: () => [],
    reply: () =>
      Stream.make<ModelPart[]>({
        _tag: "Finish",
        reason: "stop",
        inputTokens: 1_000_000,
        outputTokens: 1_000_000,
        ...finish
      })
  }
  return Effect.map(
    Stream.runCollect(priced(provider, baseUrl, own, inner).reply(requestOf({ model }))),
    (parts) => {
      const [part] = Chunk.toReadonlyArray(parts)
      return part?._tag === "Finish" ? part.bill : undefined
    }
  )
}

describe("The cost of a call", () => {
  it.effect("is by the provider's list, in whole billionths of a dollar", () =>
    Effect.gen(function* () {
      expect(yield* billOf("gpt-4.1-mini")).toEqual({
        model: "openai/gpt-4.1-mini",
        inputTokens: 1_000_000,
        cachedInputTokens: 0,
        outputTokens: 1_000_000,
        cost: 2_000_000_000
      })
      // The model of one day costs as the model does; another model that begins alike does not.
      expect((yield* billOf("gpt-4.1-mini-2025-04-14"))?.cost).toBe(2_000_000_000)
      expect((yield* billOf("gpt-4.1-mini-special"))?.cost).toBeNull()
      expect((yield* billOf("gpt-6-luna", { inputTokens: 1, outputTokens: 1 }))?.cost).toBe(600)
      const claude = { provider: "claude", baseUrl: "https://api.anthropic.com/v1" }
      expect((yield* billOf("claude-haiku-4-5-20251001", {}, claude))?.cost).toBe(6_000_000_000)
    })
  )

  it.effect("takes less for what was cached, and more for the whole of a long request", () =>
    Effect.gen(function* () {
      const short = { inputTokens: 200_000, outputTokens: 0 }
      expect((yield* billOf("gpt-6-luna", short))?.cost).toBe(20_000_000)
      expect((yield* billOf("gpt-6-luna", { ...short, cachedInputTokens: 100_000 }))?.cost).toBe(11_000_000)
      expect((yield* billOf("gpt-6-luna", { ...short, inputTokens: 300_000 }))?.cost).toBe(60_000_000)
      // More cached than read is a provider's mistake that must not become a credit.
      const wrong = yield* billOf("gpt-6-luna", { inputTokens: 10, cachedInputTokens: 50, outputTokens: 0 })
      expect(wrong).toMatchObject({ cachedInputTokens: 10, cost: 100 })
    })
  )

  it.effect("is unknown, not nothing, for models that are not listed and tokens that were not counted", () =>
    Effect.gen(function* () {
      const unknown = [
        billOf("my-fine-tune"),
        billOf("gpt-4.1-mini", { isEstimated: true }),
        // The same name at another address is another provider's.
        billOf("gpt-4.1-mini", {}, { baseUrl: "http://127.0.0.1:8000/v1" }),
        billOf("gpt-4.1-mini", {}, { baseUrl: "https://api.openai.com.example.test/v1" })
      ]
      expect((yield* Effect.all(unknown)).map((bill) => bill?.cost)).toEqual([null, null, null, null])
    })
  )

  it.effect(
    "is by the operator's prices first: a whole name before a beginning, a longer one before a shorter",
    () =>
      Effect.gen(function* () {
        const price = (model: string, output: number): ListedPrice => ({
          model,
          input: 0,
          cachedInput: 0,
          output
        })
        const own = [
          price("openai/*", 1),
          price("openai/gpt-6*", 2),
          price("openai/gpt-6-luna", 3),
          price("azure/*", 4)
        ]
        const costs = yield* Effect.forEach(["gpt-6-luna", "gpt-6-sol", "gpt-4.1"], (model) =>
          billOf(model, {}, { own })
        )
        expect(costs.map((bill) => bill?.cost)).toEqual([3e9, 2e9, 1e9])
        expect((yield* billOf("gpt-4.1", {}, { own: [price("azure/*", 4)] }))?.cost).toBe(10_000_000_000)
      })
  )

  it.effect("is rounded once, and exact for numbers that a float cannot hold", () =>
    Effect.gen(function* () {
      const own = [{ model: "openai/m", input: 0.0375, cachedInput: 0.0375, output: 50 }]
      const costs = yield* Effect.forEach(
        [
          { inputTokens: 1, outputTokens: 0 },
          { inputTokens: 1_000_001, outputTokens: 2_147_483_647 }
        ],
        (used) => billOf("m", used, { own })
      )
      expect(costs.map((bill) => bill?.cost)).toEqual([38, 107_374_219_850_038])
    })
  )

  it("has lists with a date, and a price once for each model", () => {
    for (const { asOf, name, prices } of priceLists.values()) {
      expect(asOf).toMatch(/^\d{4}-\d{2}-\d{2}$/u)
      expect(name).toMatch(/^https:/u)
      expect(new Set(prices.map(({ model }) => model)).size).toBe(prices.length)
      for (const { cachedInput, input, output } of prices)
        expect(cachedInput <= input && input <= output).toBe(true)
    }
  })
})
