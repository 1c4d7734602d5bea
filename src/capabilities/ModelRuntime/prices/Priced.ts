/** The cost of each call to a provider, by the operator's prices, else by the provider's list. */
import * as Chunk from "effect/Chunk"
import * as Stream from "effect/Stream"
import { urlOf } from "../../../domain/Address.ts"
import type { Bill } from "../../../domain/billing/Cost.ts"
import type { ModelPart, ModelRuntimeService } from "../../ModelRuntime.ts"
import { type ListedPrice, priceLists } from "./PriceList.ts"

/** Date suffixes of model names: `gpt-4.1-mini-2025-04-14`, `claude-haiku-4-5-20251001`. */
const dateSuffix = /-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$/u

/** How well `pattern` matches `model`: a higher number is better, null is no match. */
const fitOf = (pattern: string, model: string): number | null => {
  if (pattern === model) return Number.POSITIVE_INFINITY
  if (pattern.endsWith("*")) return model.startsWith(pattern.slice(0, -1)) ? pattern.length : null
  return model.replace(dateSuffix, "") === pattern ? Number.MAX_SAFE_INTEGER : null
}

const bestPrice = (prices: ReadonlyArray<ListedPrice>, model: string): ListedPrice | null => {
  let found: ListedPrice | null = null
  let bestFit = -1
  for (const price of prices) {
    const fit = fitOf(price.model, model)
    if (fit === null || fit <= bestFit) continue
    found = price
    bestFit = fit
  }
  return found
}

/** Converts US dollars per million tokens to billionths of a dollar. */
const nanoUsd = (usd: number): bigint => BigInt(Math.round(usd * 1e9))

const million = 1_000_000n

type UsedTokens = Pick<Bill, "inputTokens" | "cachedInputTokens" | "outputTokens">

/** In billionths of a US dollar, rounded once. */
const costOf = (price: ListedPrice, used: UsedTokens): number => {
  const { cachedInput, input, output } =
    price.long !== undefined && used.inputTokens > price.long.above ? price.long : price
  const total =
    BigInt(used.inputTokens - used.cachedInputTokens) * nanoUsd(input) +
    BigInt(used.cachedInputTokens) * nanoUsd(cachedInput) +
    BigInt(used.outputTokens) * nanoUsd(output)
  return Number((total + million / 2n) / million)
}

const hostOf = (address: string): string => urlOf(address)?.hostname ?? ""

/**
 * Adds the cost to the answers of `inner`, and the names of priced models. `operatorPrices` name their models
 * `provider/model`, and take precedence over the list of the provider at `baseUrl`.
 */
export const priced = (
  provider: string,
  baseUrl: string,
  operatorPrices: ReadonlyArray<ListedPrice>,
  inner: ModelRuntimeService
): ModelRuntimeService => {
  const list = priceLists.get(hostOf(baseUrl))
  const prefix = `${provider}/`
  const billedAs = (model: string | null) => `${prefix}${model ?? inner.defaultModel}`

  const withBill =
    (name: string) =>
    (part: ModelPart): ModelPart => {
      if (part._tag !== "Finish") return part
      const { cachedInputTokens = 0, inputTokens, isEstimated, outputTokens } = part
      const used = { inputTokens, cachedInputTokens: Math.min(cachedInputTokens, inputTokens), outputTokens }
      const price =
        bestPrice(operatorPrices, name) ?? bestPrice(list?.prices ?? [], name.slice(prefix.length))
      // Estimated tokens are not priced, because the provider may bill another number.
      const cost = price === null || isEstimated === true ? null : costOf(price, used)
      return { ...part, bill: { model: name, ...used, cost } }
    }

  const configured = operatorPrices.flatMap(({ model }) =>
    model.startsWith(prefix) ? [model.slice(prefix.length)] : []
  )
  const listed = list?.prices.map(({ model }) => model) ?? []

  return {
    ...inner,
    // A pattern of a list is no name.
    models: [...new Set([...configured, ...listed])].filter((model) => !model.endsWith("*")),
    billedAs,
    reply: (request) => Stream.mapChunks(inner.reply(request), Chunk.map(withBill(billedAs(request.model))))
  }
}
