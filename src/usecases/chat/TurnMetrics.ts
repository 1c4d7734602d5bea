/**
 * Metrics of turns for `/metrics`: count, outcome, duration, the model's tokens, what the sources support, ratings, and
 * requests for a human.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import { currentTrace, DurationHistogram } from "../../concurrency/DurationHistogram.ts"
import { sumOf } from "../../domain/billing/Cost.ts"
import type { Citation } from "../../domain/chat/ChatTurn.ts"
import type { Turn } from "./Turn.ts"

const turns = Metric.counter("spoke_turns_total", {
  description: "Turns that ended: complete, failed, timed out, or taken over by somebody else",
  incremental: true
})
const tokens = Metric.counter("spoke_turn_tokens_total", {
  description: "Tokens of turns as the model's provider counted them, read and written",
  incremental: true
})
const cost = Metric.counter("spoke_turn_cost_usd_total", {
  description: "Cost of the models that turns called, in US dollars, without calls of unknown price",
  incremental: true
})
const unpriced = Metric.counter("spoke_turn_unpriced_calls_total", {
  description: "Calls of models of unknown price by turns",
  incremental: true
})
const refused = Metric.counter("spoke_turns_refused_total", {
  description: "Turns in which nothing was found, or whose reply the sources do not support",
  incremental: true
})
const citations = Metric.counter("spoke_turn_citations_total", {
  description: "Checked citations of replies, by whether the source supports the statement",
  incremental: true
})
const ratings = Metric.counter("spoke_ratings_total", {
  description: "Ratings of replies, changed ones again",
  incremental: true
})
const handoffs = Metric.counter("spoke_handoffs_total", {
  description: "Conversations for which a human was requested, by who requested one",
  incremental: true
})

// Each turn costs about six counter updates, one for each checked citation, and two histogram updates.
const ended = {
  complete: Metric.tagged(turns, "outcome", "complete"),
  failed: Metric.tagged(turns, "outcome", "failed"),
  timed_out: Metric.tagged(turns, "outcome", "timed_out"),
  taken_over: Metric.tagged(turns, "outcome", "taken_over")
}
const read = Metric.tagged(tokens, "direction", "input")
const written = Metric.tagged(tokens, "direction", "output")
const supported = {
  yes: Metric.tagged(citations, "supported", "yes"),
  partly: Metric.tagged(citations, "supported", "partly"),
  no: Metric.tagged(citations, "supported", "no")
}
const ratedBy = {
  up: Metric.tagged(ratings, "rating", "up"),
  down: Metric.tagged(ratings, "rating", "down")
}
/** The agent in its reply, the person, or the service: the agent cannot answer, or its reply cannot be delivered. */
const requestedBy = {
  agent: Metric.tagged(handoffs, "by", "agent"),
  person: Metric.tagged(handoffs, "by", "person"),
  service: Metric.tagged(handoffs, "by", "service")
}

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
export const register = (): void => {
  for (const series of [ended, supported, ratedBy, requestedBy, { read, written, cost, unpriced, refused }])
    for (const counter of Object.values(series)) counter.unsafeUpdate(0, [])
  const ends: ReadonlyArray<End> = ["complete", "failed", "timed_out", "taken_over"]
  for (const outcome of ends) durations.register({ outcome })
  firstTexts.register({})
}

interface Result {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Null when the turn has no reply. */
  readonly reply: { readonly citations: ReadonlyArray<Citation> } | null
}

/** Call once for each turn, when it is settled. */
export const count = (
  { bills, handoff, opening, summary }: Pick<Turn, "bills" | "handoff" | "opening" | "summary">,
  end: End,
  { inputTokens, outputTokens, reply }: Result
): Effect.Effect<void> =>
  Effect.zipWith(Clock.currentTimeMillis, currentTrace, (now, trace) => {
    ended[end].unsafeUpdate(1, [])
    read.unsafeUpdate(inputTokens, [])
    written.unsafeUpdate(outputTokens, [])
    const { nanoUsd, unpricedCalls } = sumOf(bills)
    cost.unsafeUpdate((nanoUsd ?? 0) / 1e9, [])
    unpriced.unsafeUpdate(unpricedCalls, [])
    if (summary.unanswered) refused.unsafeUpdate(1, [])
    for (const citation of reply?.citations ?? [])
      if (citation.supported !== undefined) supported[citation.supported].unsafeUpdate(1, [])
    if (reply !== null && handoff !== null) requestedBy.agent.unsafeUpdate(1, [])
    durations.observe(now - opening.startedAt.epochMillis, { outcome: end }, trace)
    if (summary.firstTextMs !== null) firstTexts.observe(summary.firstTextMs, {}, trace)
  })

/** Call when a reply has been rated. */
export const rated = (rating: -1 | 1): Effect.Effect<void> =>
  Effect.sync(() => void ratedBy[rating === 1 ? "up" : "down"].unsafeUpdate(1, []))

/** Call when a human has been requested by somebody other than the agent. */
export const handedOver = (by: "person" | "service"): Effect.Effect<void> =>
  Effect.sync(() => void requestedBy[by].unsafeUpdate(1, []))
