/** Costs of models, in billionths of a US dollar: whole numbers, so that sums are exact. */
import * as Schema from "effect/Schema"
import { Count } from "../Count.ts"

/** The usage and the cost of one model call. */
export interface Bill {
  /** `provider/model` as configured. */
  readonly model: string
  /** Including cached tokens. */
  readonly inputTokens: number
  readonly cachedInputTokens: number
  readonly outputTokens: number
  /** Null if the price is not known, or the provider did not report the usage. */
  readonly cost: number | null
}

export const Cost = Schema.Struct({
  nanoUsd: Schema.NullOr(Count).annotations({
    description:
      "Billionths of a US dollar, without calls of unknown price; null if the price of all calls is unknown"
  }),
  unpricedCalls: Count.annotations({ description: "Calls of models of unknown price" })
}).annotations({ identifier: "Cost" })
export type Cost = typeof Cost.Type

/** The sum of the costs of calls; no calls cost 0. */
export const sumOf = (bills: ReadonlyArray<Pick<Bill, "cost">>): Cost => {
  const priced = bills.flatMap(({ cost }) => (cost === null ? [] : [cost]))
  const unpricedCalls = bills.length - priced.length
  return {
    nanoUsd: priced.length === 0 && unpricedCalls > 0 ? null : priced.reduce((sum, cost) => sum + cost, 0),
    unpricedCalls
  }
}

/** The sum of several costs. `nanoUsd` is null if there are costs and none of them is known. */
export const sumOfAll = (costs: ReadonlyArray<Cost>): Cost => {
  const known = costs.flatMap(({ nanoUsd }) => (nanoUsd === null ? [] : [nanoUsd]))
  return {
    nanoUsd: known.length === 0 && costs.length > 0 ? null : known.reduce((sum, nanoUsd) => sum + nanoUsd, 0),
    unpricedCalls: costs.reduce((sum, { unpricedCalls }) => sum + unpricedCalls, 0)
  }
}
