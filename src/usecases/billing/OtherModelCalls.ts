/**
 * Calls of models that belong to no turn: they take from the same budgets as turns, and are counted by agent, kind and
 * day.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ModelError, ModelRuntime, type ModelRuntimeService } from "../../capabilities/ModelRuntime.ts"
import { retryDuringOutage } from "../../concurrency/DatabaseOutage.ts"
import { inOwnFiber } from "../../concurrency/InOwnFiber.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { ExhaustedBudget } from "../../domain/billing/Budget.ts"
import type { Bill } from "../../domain/billing/Cost.ts"
import { ModelCallKind } from "../../domain/billing/ModelCall.ts"
import { TurnLimitExceeded } from "../../domain/Errors.ts"
import { type KeyId, RunId, typeId } from "../../domain/Ids.ts"
import { OtherModelCallStore } from "../../store/billing/OtherModelCalls.ts"
import { retryDeadlocks } from "../../store/Deadlock.ts"
import { ProcessLease } from "../chat/ProcessLease.ts"
import { billed } from "./BilledModel.ts"

const calls = Metric.counter("spoke_other_model_calls_total", {
  description: "Calls of models that belong to no turn",
  incremental: true
})
const tokens = Metric.counter("spoke_other_model_tokens_total", {
  description: "Tokens of calls that belong to no turn, read and written",
  incremental: true
})

const seriesOf = (kind: ModelCallKind) => ({
  calls: Metric.tagged(calls, "kind", kind),
  read: tokens.pipe(Metric.tagged("kind", kind), Metric.tagged("direction", "input")),
  written: tokens.pipe(Metric.tagged("kind", kind), Metric.tagged("direction", "output"))
})
const series: Readonly<Record<ModelCallKind, ReturnType<typeof seriesOf>>> = {
  draft: seriesOf("draft"),
  experiment: seriesOf("experiment"),
  image: seriesOf("image"),
  judge: seriesOf("judge"),
  name: seriesOf("name"),
  replay: seriesOf("replay")
}

const countBills = (kind: ModelCallKind, bills: ReadonlyArray<Bill>): void => {
  const { calls: made, read, written } = series[kind]
  made.unsafeUpdate(bills.length, [])
  for (const { inputTokens, outputTokens } of bills) {
    read.unsafeUpdate(inputTokens, [])
    written.unsafeUpdate(outputTokens, [])
  }
}

const owners = { tenant: "the organisation", agent: "this agent", key: "this API key" }
const periods = { day: "the day", month: "the month" }

/** The refusal of a turn or another call for which a budget has nothing left. */
export const budgetSpent = (budget: ExhaustedBudget) =>
  new TurnLimitExceeded({
    message:
      `The budget of ${owners[budget.of]} for ${periods[budget.period]} is spent. It starts again at ${budget.resetsAt}. ` +
      "An admin can raise it in the dashboard under Usage.",
    details: { budget }
  })

/** Who calls the model: an agent's owner, or the holder of one of its keys. */
export interface ModelCaller extends AgentScope {
  readonly keyId?: KeyId
}

export class OtherModelCalls extends Effect.Service<OtherModelCalls>()("usecases/billing/OtherModelCalls", {
  effect: Effect.gen(function* () {
    const store = yield* OtherModelCallStore
    const { id: instanceId } = yield* ProcessLease
    const runtime = yield* ModelRuntime
    for (const kind of ModelCallKind.literals) {
      const { calls: made, read, written } = series[kind]
      for (const counter of [made, read, written]) counter.unsafeUpdate(0, [])
    }

    const settle = (caller: ModelCaller, kind: ModelCallKind, id: RunId, bills: ReadonlyArray<Bill>) =>
      Effect.suspend(() => {
        countBills(kind, bills)
        const settling = Effect.orDie(store.settle(caller, { id, kind, bills }))
        return inOwnFiber(retryDuringOutage(retryDeadlocks(settling)))
      }).pipe(
        // The reservation then ends by its time-out.
        Effect.catchAllCause((cause) => Effect.logWarning("Calls of a model could not be counted", cause))
      )

    /**
     * Makes a reservation for calls that take at most `timeout`. Add their bills to the returned list, which is counted
     * at the end of the scope. Fails with TURN_LIMIT_EXCEEDED if a budget is spent. Without a language model nothing is
     * reserved or counted.
     */
    const reserve = Effect.fn("OtherModelCalls.reserve")(function* (
      caller: ModelCaller,
      kind: ModelCallKind,
      timeout: Duration.DurationInput
    ): Effect.fn.Return<Array<Bill>, TurnLimitExceeded, Scope.Scope> {
      const bills: Array<Bill> = []
      if (runtime.readsPassages) return bills
      const id = RunId.make(typeId("mcl", yield* Clock.currentTimeMillis))
      const reservation = {
        ...caller,
        runId: id,
        instanceId,
        timeout: Duration.sum(Duration.decode(timeout), "1 minute")
      }
      yield* Effect.acquireRelease(
        Effect.flatMap(
          store.reserve(reservation),
          Option.match({ onNone: () => Effect.void, onSome: (budget) => Effect.fail(budgetSpent(budget)) })
        ),
        () => settle(caller, kind, id, bills)
      )
      return bills
    })

    /** The model, whose calls are reserved and counted. A spent budget is a `ModelError`, as a provider reports it. */
    const model = (
      caller: ModelCaller,
      kind: ModelCallKind,
      timeout: Duration.DurationInput
    ): ModelRuntimeService => ({
      ...runtime,
      reply: (request) =>
        reserve(caller, kind, timeout).pipe(
          Effect.mapError(
            ({ message }) =>
              new ModelError({ reason: "Rejected", problem: "quota_spent", message, retryable: false })
          ),
          Effect.map((bills) => billed(runtime, bills).reply(request)),
          Stream.unwrapScoped
        )
    })

    return { reserve, model } as const
  }),
  dependencies: [ProcessLease.Default]
}) {}
