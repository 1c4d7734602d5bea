/** One round with the model inside a turn: repeated only before its first byte, never ended without a finish. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { Context } from "effect"
import type {
  FinishReason,
  ModelError,
  ModelPart,
  ModelRequest,
  ModelRuntime
} from "../../capabilities/ModelRuntime.ts"
import { RuntimeTimeout, TurnFailed } from "../../domain/Errors.ts"
import * as Traced from "../../domain/Traced.ts"

export interface StepResult {
  readonly text: string
  readonly calls: ReadonlyArray<Extract<ModelPart, { readonly _tag: "ToolCall" }>>
  readonly reason: FinishReason
  readonly inputTokens: number
  readonly outputTokens: number
}

export const turnFailed = () =>
  new TurnFailed({ message: "The chat runtime failed. The turn was not completed." })
export const runtimeTimeout = () => new RuntimeTimeout({ message: "The chat runtime took too long." })

/** Longest pause that a provider may ask for before the turn gives up on it. */
const patience = Duration.seconds(5)

const retries = Schedule.exponential("250 millis").pipe(
  Schedule.intersect(Schedule.recurs(2)),
  Schedule.whileInput(
    ({ retryable, retryAfter }: ModelError) =>
      retryable && (retryAfter === undefined || Duration.lessThanOrEqualTo(retryAfter, patience))
  )
)

const pause = ({ retryable, retryAfter }: ModelError) =>
  retryable && retryAfter !== undefined && Duration.lessThanOrEqualTo(retryAfter, patience)
    ? Effect.sleep(retryAfter)
    : Effect.void

const documented = (error: ModelError) =>
  Effect.zipRight(
    Effect.logWarning("The model failed").pipe(
      Effect.annotateLogs({ reason: error.reason, cause: error.message })
    ),
    Effect.fail(error.reason === "TimedOut" ? runtimeTimeout() : turnFailed())
  )

/**
 * Streams one reply; `onDelta` sees each piece of text as it arrives. `repeatable` is false once a tool has run: what the
 * turn has done by then must not be put at risk of being done twice.
 */
export const run = Traced.fn("ModelStep.run")(function* (
  runtime: Context.Tag.Service<typeof ModelRuntime>,
  request: ModelRequest,
  onDelta: (delta: string) => Effect.Effect<unknown>,
  repeatable: boolean
) {
  let text = ""
  const calls: Array<Extract<ModelPart, { readonly _tag: "ToolCall" }>> = []
  let finish = Option.none<Extract<ModelPart, { readonly _tag: "Finish" }>>()
  yield* runtime.stream(request).pipe(
    // What arrived together goes on together: each piece costs the turn as much as a frame of its own.
    Stream.runForEachChunk((parts) => {
      let delta = ""
      for (const part of parts) {
        if (part._tag === "TextDelta") delta += part.delta
        else if (part._tag === "ToolCall") calls.push(part)
        else finish = Option.some(part)
      }
      text += delta
      return delta === "" ? Effect.void : onDelta(delta)
    }),
    repeatable ? (round) => round.pipe(Effect.tapError(pause), Effect.retry(retries)) : identity,
    Effect.catchAll(documented)
  )
  if (Option.isNone(finish)) return yield* turnFailed()
  const { reason, inputTokens, outputTokens } = finish.value
  const result: StepResult = { text, calls, reason, inputTokens, outputTokens }
  return result
})
