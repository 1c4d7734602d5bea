/** Durations and outcomes of calls to model providers, for `/metrics`. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { monotonicMillis } from "../domain/MonotonicClock.ts"
import { currentTrace, DurationHistogram } from "./DurationHistogram.ts"

/** `stopped`: the caller cancelled the request, for example at its own time-out. */
export type Outcome = "ok" | "failed" | "rate_limited" | "timed_out" | "stopped"

export interface ProviderCall {
  readonly operation: "chat" | "embeddings" | "rerank" | "grounding"
  /** The configured name, so that the number of names is bounded. */
  readonly provider: string
}

const durations = new DurationHistogram<
  Pick<ProviderCall, "operation" | "provider"> & { readonly outcome: Outcome }
>(
  "spoke_provider_request_duration_seconds",
  "From a request to a provider to the end of its answer, by operation, provider and outcome"
)

/** Registers the metrics of a call before its first observation. */
export const register = ({ operation, provider }: ProviderCall): void => {
  const outcomes: ReadonlyArray<Outcome> = ["ok", "failed", "rate_limited", "timed_out", "stopped"]
  for (const outcome of outcomes) durations.register({ operation, provider, outcome })
}

const outcomeOf = <E>(exit: Exit.Exit<unknown, E>, ofError: (error: E) => Outcome): Outcome =>
  Exit.match(exit, {
    onSuccess: () => "ok",
    onFailure: (cause) =>
      Option.match(Cause.failureOption(cause), {
        onSome: ofError,
        onNone: () => (Cause.isInterruptedOnly(cause) ? "stopped" : "failed")
      })
  })

/** `began` is a time of {@link monotonicMillis}. */
export const observe = <E>(
  { operation, provider }: ProviderCall,
  began: number,
  exit: Exit.Exit<unknown, E>,
  ofError: (error: E) => Outcome
): Effect.Effect<void> =>
  Effect.zipWith(monotonicMillis, currentTrace, (now, trace) =>
    durations.observe(now - began, { operation, provider, outcome: outcomeOf(exit, ofError) }, trace)
  )

/** Measures one call. */
export const timed =
  <E>(call: ProviderCall, ofError: (error: E) => Outcome) =>
  <A, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(monotonicMillis, (began) =>
      Effect.onExit(self, (exit) => observe(call, began, exit, ofError))
    )
