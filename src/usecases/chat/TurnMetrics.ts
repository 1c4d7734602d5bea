/** How many turns ended, and how, and the model's tokens that they took: told at `/metrics`. */
import * as Metric from "effect/Metric"

const turns = Metric.counter("spoke_turns_total", {
  description: "Turns that ended: complete, failed, timed out, or taken over by somebody else",
  incremental: true
})
const tokens = Metric.counter("spoke_turn_tokens_total", {
  description: "Tokens of turns as the model's provider counted them, read and written",
  incremental: true
})

// A turn costs three additions.
const ended = {
  complete: Metric.tagged(turns, "outcome", "complete"),
  failed: Metric.tagged(turns, "outcome", "failed"),
  timed_out: Metric.tagged(turns, "outcome", "timed_out"),
  taken_over: Metric.tagged(turns, "outcome", "taken_over")
}
const read = Metric.tagged(tokens, "direction", "input")
const written = Metric.tagged(tokens, "direction", "output")

export type End = keyof typeof ended

/** Every outcome is told from the start, with 0. */
export const begin = (): void => {
  for (const counter of [...Object.values(ended), read, written]) counter.unsafeUpdate(0, [])
}

/** To be called once for each turn, when it is settled. */
export const count = (end: End, inputTokens: number, outputTokens: number): void => {
  ended[end].unsafeUpdate(1, [])
  read.unsafeUpdate(inputTokens, [])
  written.unsafeUpdate(outputTokens, [])
}
