/** Functions of the host as tools. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import type { HostTool } from "../../domain/agents/HostTool.ts"
import * as Json from "../../domain/Json.ts"
import { isError } from "../../domain/Thrown.ts"
import { type SourcedTool, ToolSource, ToolSourceError } from "../ToolSource.ts"

/** Most characters of an answer, written as JSON. */
const maxAnswerLength = 256 * 1024

const failed = (message: string) => new ToolSourceError({ reason: "Failed", message })

/** As JSON: what the host answers may hold anything. */
const jsonOf = (answer: unknown) =>
  Effect.try({
    try: () => JSON.stringify(answer) ?? "null",
    catch: () => failed("the answer cannot be written as JSON")
  }).pipe(
    Effect.filterOrFail(
      (text) => text.length <= maxAnswerLength,
      () => failed(`the answer is longer than ${maxAnswerLength} characters`)
    ),
    Effect.flatMap((text) =>
      Either.mapLeft(Json.parse(text), ({ message }) => failed(`the answer cannot be used: ${message}`))
    )
  )

const sourced = (name: string, { call, description, parameters, timeoutMillis }: HostTool): SourcedTool => ({
  declaration: { name, description, parameters },
  call: (input, { conversationId, endUserId, runId, scope: { agentId } }, progress) =>
    Effect.flatMap(Effect.runtime<never>(), (runtime) =>
      Effect.tryPromise({
        try: (signal) =>
          call(input, {
            signal,
            agentId,
            runId,
            conversationId,
            endUserId,
            progress: (text) => void Runtime.runFork(runtime)(progress(String(text)))
          }),
        catch: (thrown) => failed(isError(thrown) ? thrown.message : "it failed without saying why")
      })
    ).pipe(
      Effect.timeoutFail({
        duration: timeoutMillis,
        onTimeout: () =>
          new ToolSourceError({
            reason: "TimedOut",
            message: `no answer within ${timeoutMillis / 1_000} seconds`
          })
      }),
      Effect.flatMap((outcome) =>
        "answer" in outcome
          ? jsonOf(outcome.answer)
          : new ToolSourceError({ reason: "InvalidInput", message: outcome.invalid.join("; ") })
      ),
      Effect.withSpan("ToolSource.call", { attributes: { tool: name } })
    )
})

/** Offers `tools` under their names. */
export const layerInProcess = (tools: Readonly<Record<string, HostTool>>): Layer.Layer<ToolSource> =>
  Layer.succeed(
    ToolSource,
    new Map(Object.entries(tools).map(([name, tool]) => [name, sourced(name, tool)] as const))
  )
