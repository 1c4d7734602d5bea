/** The cost of each call to a provider, by the operator's prices, else by the provider's list. */
import * as Chunk from "effect/Chunk"
import * as Stream from "effect/Stream"
import { urlOf } from "../../../domain/Address.ts"
import type { Bill } from "../../../domain/billing/Cost.ts"
import type { ModelPart, ModelRuntimeService } from "../../ModelRuntime.ts"
import { type ListedPrice, priceLists } from "./PriceList.ts"

/** How providers name the models of one day: `gpt-4.1-mini-2025-04-14`, `claude-haiku-4-5-20251001`. */
const ofOneDay = /-(?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$/u

/** How well `pattern` names `model`: more is better, null when it does not. */
const fitOf = (pattern: string, model: string): number | null => {
  if (pattern === model) return Number.POSITIVE_INFINITY
  if (pattern.endsWith("*")) return model.startsWith(pattern.slice(0, -1)) ? pattern.length : null
  return model.replace(ofOneDay, "") === pattern ? Number.MAX_SAFE_INTEGER : null
}

const best = (prices: ReadonlyArray<ListedPrice>, model: string): ListedPrice | null => {
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

/** US dollars for a million tokens, as billionths of a dollar. */
const nano = (usd: number): bigint => BigInt(Math.round(usd * 1e9))

const million = 1_000_000n

type Used = Pick<Bill, "inputTokens" | "cachedInputTokens" | "outputTokens">

/** In billionths of a US dollar, rounded once. */
const costOf = (price: ListedPrice, used: Used): number => {
  const { cachedInput, input, output } =
    price.long !== undefined && used.inputTokens > price.long.above ? price.long : price
  const total =
    BigInt(used.inputTokens - used.cachedInputTokens) * nano(input) +
    BigInt(used.cachedInputTokens) * nano(cachedInput) +
    BigInt(used.outputTokens) * nano(output)
  return Number((total + million / 2n) / million)
}

const hostOf = (address: string): string => urlOf(address)?.hostname ?? ""

/**
 * `inner`, whose answers tell what they cost. `own` are prices for models as they are configured, `provider/model`, and come before the
 * list of the provider at `baseUrl`.
 */
export const priced = (
  provider: string,
  baseUrl: string,
  own: ReadonlyArray<ListedPrice>,
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
      const price = best(own, name) ?? best(list?.prices ?? [], name.slice(prefix.length))
      // What the provider did not count is not known to be what it bills.
      const cost = price === null || isEstimated === true ? null : costOf(price, used)
      return { ...part, bill: { model: name, ...used, cost } }
    }

  return {
    ...inner,
    billedAs,
    reply: (request) => Stream.mapChunks(inner.reply(request), Chunk.map(withBill(billedAs(request.model))))
  }
}
