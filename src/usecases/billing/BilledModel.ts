/** A model whose calls add their usage to a list. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Bill } from "../../domain/billing/Cost.ts"
import {
  type ModelRequest,
  type ModelRuntimeService,
  problemOf,
  unbilledProblems
} from "../../capabilities/ModelRuntime.ts"

/** The name under which calls of `model` (null: the default one) are counted. */
export const nameOf = (runtime: ModelRuntimeService, model: string | null): string =>
  runtime.billedAs?.(model) ?? model ?? runtime.defaultModel

/** The bill of a call without a known price or usage. */
export const unpricedBill = (model: string): Bill => ({
  model,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  cost: null
})

/**
 * `runtime` with a bill in `bills` for each call: unpriced from the start of the call, so that an interrupted call
 * counts, then with its usage. A call that the provider refused has none.
 */
export const billed = (runtime: ModelRuntimeService, bills: Array<Bill>): ModelRuntimeService => ({
  ...runtime,
  reply: (request: ModelRequest) =>
    Stream.suspend(() => {
      let own = unpricedBill(nameOf(runtime, request.model))
      bills.push(own)
      const replace = (bill: Bill) => {
        bills.splice(bills.indexOf(own), 1, bill)
        own = bill
      }
      return runtime.reply(request).pipe(
        Stream.mapChunks((parts) => {
          for (const part of parts) {
            if (part._tag === "Answering") replace({ ...own, model: part.model })
            if (part._tag !== "Finish") continue
            const { bill, inputTokens, outputTokens } = part
            replace(bill ?? { ...own, inputTokens, outputTokens })
          }
          return parts
        }),
        Stream.tapError((error) =>
          Effect.sync(() => {
            if (unbilledProblems.has(problemOf(error))) bills.splice(bills.indexOf(own), 1)
          })
        )
      )
    })
})
