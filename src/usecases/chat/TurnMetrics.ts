/** Metrics of turns for `/metrics`: count, outcome, duration, and the model's tokens. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { currentTrace, DurationHistogram } from "../../concurrency/DurationHistogram.ts"
import type { Turn } from "./Turn.ts"

const turns = Metric.counter("spoke_turns_total", {
  description: "Turns that ended: complete, failed, timed out, or taken over by somebody else",
  incremental: true
})
const tokens = Metric.counter("spoke_turn_tokens_total", {
  description: "Tokens of turns as the model's provider counted them, read and written",
  incremental: true
})

// Each turn costs three counter updates and two histogram updates.
const ended = {
  complete: Metric.tagged(turns, "outcome", "complete"),
  failed: Metric.tagged(turns, "outcome", "failed"),
  timed_out: Metric.tagged(turns, "outcome", "timed_out"),
  taken_over: Metric.tagged(turns, "outcome", "taken_over")
}
const read = Metric.tagged(tokens, "direction", "input")
const written = Metric.tagged(tokens, "direction", "output")

export type End = keyof typeof ended

const durations = new DurationHistogram<{ readonly outcome: End }>(
  "spoke_turn_duration_seconds",
  "From the request of a turn to its end, by how it ended"
)
const firstTexts = new DurationHistogram<Readonly<Record<string, never>>>(
  "spoke_turn_first_text_seconds",
  "From the request of a turn to the first text of its reply"
)

/** Registers every outcome with 0, so that all series exist from the start. */
export const begin = (): void => {
  for (const counter of [...Object.values(ended), read, written]) counter.unsafeUpdate(0, [])
  const ends: ReadonlyArray<End> = ["complete", "failed", "timed_out", "taken_over"]
  for (const outcome of ends) durations.begin({ outcome })
  firstTexts.begin({})
}

/** Call once for each turn, when it is settled. */
export const count = (
  { opening, summary }: Pick<Turn, "opening" | "summary">,
  end: End,
  { inputTokens, outputTokens }: { readonly inputTokens: number; readonly outputTokens: number }
): Effect.Effect<void> =>
  Effect.zipWith(Clock.currentTimeMillis, currentTrace, (now, trace) => {
    ended[end].unsafeUpdate(1, [])
    read.unsafeUpdate(inputTokens, [])
    written.unsafeUpdate(outputTokens, [])
    durations.observe(now - opening.startedAt.epochMillis, { outcome: end }, trace)
    if (summary.firstTextMs !== null) firstTexts.observe(summary.firstTextMs, {}, trace)
  })
