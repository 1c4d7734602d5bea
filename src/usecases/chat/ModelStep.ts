/** One model call inside a turn. It is retried only before its first byte. A reply without a finish part fails. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import {
  type FinishReason,
  type ModelError,
  type ModelPart,
  type ModelRequest,
  type ModelRuntimeService,
  problemOf
} from "../../capabilities/ModelRuntime.ts"
import type { Bill } from "../../domain/billing/Cost.ts"
import type { ProviderProblem } from "../../domain/chat/AgentRun.ts"
import { RuntimeTimeout, TurnFailed } from "../../domain/Errors.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"

/** Reasoning of the model, in the form that its provider wants back. `afterText` is true when text came before it. */
export interface ReasoningBlock extends Pick<
  Extract<ModelPart, { readonly _tag: "Reasoning" }>,
  "text" | "options"
> {
  readonly afterText: boolean
}

export interface StepResult {
  readonly text: string
  readonly calls: ReadonlyArray<Extract<ModelPart, { readonly _tag: "ToolCall" }>>
  readonly reasoning: ReadonlyArray<ReasoningBlock>
  readonly reason: FinishReason
  readonly inputTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly bill: Bill | undefined
}

export const runtimeTimeout = () => new RuntimeTimeout({ message: "The chat runtime took too long." })

export const turnFailed = () =>
  new TurnFailed({ message: "The chat runtime failed. The turn was not completed." })

/** The error of a run whose process stopped. */
export const turnInterrupted = () =>
  new TurnFailed({
    message:
      "The process that ran the turn stopped before the turn ended. Send it again with a new Idempotency-Key."
  })

/** Longest delay that a provider may request. For a longer one the turn fails. */
const maxRetryDelay = Duration.seconds(5)

/** Delays before the second and the third attempt, in milliseconds. */
const retryDelaysMs = [250, 500]

/**
 * Retries `attempt` while no part of its answer has come and the provider requests no delay longer than {@link
 * maxRetryDelay}.
 */
const withRetries = <R>(
  attempt: Effect.Effect<void, ModelError, R>,
  attempts = 0
): Effect.Effect<void, ModelError, R> =>
  Effect.catchAll(attempt, (error) => {
    const delay = retryDelaysMs[attempts]
    const requested = error.retryAfter ?? Duration.zero
    if (!error.retryable || delay === undefined || Duration.greaterThan(requested, maxRetryDelay))
      return Effect.fail(error)
    return Effect.zipRight(
      Effect.sleep(Duration.sum(requested, Duration.millis(delay))),
      withRetries(attempt, attempts + 1)
    )
  })

const toTurnFailure = (error: ModelError, onProblem: (problem: ProviderProblem) => void) =>
  Effect.zipRight(
    Effect.logWarning("The model failed").pipe(
      Effect.annotateLogs({ reason: error.reason, cause: error.message })
    ),
    Effect.suspend(() => {
      onProblem(problemOf(error))
      return Effect.fail(error.reason === "TimedOut" ? runtimeTimeout() : turnFailed())
    })
  )

/** Callbacks of one reply. */
export interface ReplyCallbacks {
  /** Called with each piece of text, before the next one is read. */
  readonly onDelta: (delta: string) => Effect.Effect<void>
  /** Called with each piece of reasoning, before the next one is read. */
  readonly onReasoning: (delta: string) => Effect.Effect<void>
  /** Called with the problem that operators may see, before the call fails. */
  readonly onProblem: (problem: ProviderProblem) => void
  /** Called before the reply when another model answers than the requested one. */
  readonly onAnswering: (model: string) => void
}

/** Streams one reply. `repeatable` is false once a tool has run: a second attempt could call the tool twice. */
export const run = CheapSpans.fn("ModelStep.run")(function* (
  runtime: ModelRuntimeService,
  request: ModelRequest,
  { onAnswering, onDelta, onProblem, onReasoning }: ReplyCallbacks,
  repeatable: boolean
) {
  let text = ""
  const reasoning: Array<ReasoningBlock> = []
  const calls: Array<Extract<ModelPart, { readonly _tag: "ToolCall" }>> = []
  const finishes: Array<Extract<ModelPart, { readonly _tag: "Finish" }>> = []
  // Parts that arrive together are emitted together: each emitted piece has a fixed cost.
  const onParts = (parts: Iterable<ModelPart>) => {
    let delta = ""
    let emitting = Effect.void
    for (const part of parts) {
      if (part._tag === "TextDelta") delta += part.delta
      else if (part._tag === "ReasoningDelta") {
        const [textBefore, reasoningDelta] = [delta, part.delta]
        text += textBefore
        delta = ""
        const before = textBefore === "" ? emitting : Effect.zipRight(emitting, onDelta(textBefore))
        emitting = Effect.zipRight(before, onReasoning(reasoningDelta))
      } else if (part._tag === "Reasoning") {
        reasoning.push({ text: part.text, options: part.options, afterText: text + delta !== "" })
      } else if (part._tag === "ToolCall") calls.push(part)
      else if (part._tag === "Finish") finishes.push(part)
      else onAnswering(part.model)
    }
    text += delta
    return delta === "" ? emitting : Effect.zipRight(emitting, onDelta(delta))
  }
  const attempt = Stream.runForEachChunk(runtime.reply(request), onParts)
  yield* Effect.catchAll(repeatable ? withRetries(attempt) : attempt, (error) =>
    toTurnFailure(error, onProblem)
  )
  const ended = finishes.at(-1)
  if (ended === undefined) return yield* turnFailed()
  const { bill, reason, inputTokens, outputTokens, reasoningTokens = 0 } = ended
  const result: StepResult = {
    text,
    calls,
    reasoning,
    reason,
    inputTokens,
    outputTokens,
    reasoningTokens,
    bill
  }
  return result
})
