/** Functions of the host as tools, which agents name. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import type { HostTool } from "../../domain/agents/HostTool.ts"
import * as LongIntegers from "../../domain/agents/LongIntegers.ts"
import { toolFailure } from "../../domain/agents/ToolFailure.ts"
import * as Json from "../../domain/Json.ts"
import { isError } from "../../domain/ThrownErrors.ts"
import { type CallingTurn, OtherToolSources, type SourcedTool, type ToolSource } from "../ToolSources.ts"

/** Maximum number of characters of an answer as JSON. */
const maxAnswerLength = 256 * 1024

const failed = (message: string) => toolFailure("TOOL_FAILED", message)

/** Converts to JSON, because the host may return any value. */
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

const toSourcedTool = (
  name: string,
  { call, description, parameters, timeoutMillis }: HostTool,
  { conversationId, endUserId, runId, scope: { agentId } }: CallingTurn
): SourcedTool => ({
  declaration: { name, description, parameters },
  timeoutMillis,
  call: (input, progress) =>
    Effect.flatMap(Effect.runtime<never>(), (runtime) =>
      Effect.tryPromise({
        try: (signal) =>
          call(LongIntegers.toExactDoubles(parameters, input), {
            signal,
            agentId,
            runId,
            conversationId,
            endUserId,
            progress: (text) => void Runtime.runFork(runtime)(progress(String(text)))
          }),
        catch: (thrown) => failed(isError(thrown) ? thrown.message : "it failed without a reason")
      })
    ).pipe(
      Effect.flatMap((outcome) =>
        "answer" in outcome
          ? jsonOf(outcome.answer)
          : Effect.fail(toolFailure("INVALID_ARGUMENTS", outcome.invalid.join("; ")))
      ),
      Effect.withSpan("ToolSources.inProcess", { attributes: { tool: name } })
    )
})

/** Offers `tools` under their names. */
export const inProcessSource = (tools: Readonly<Record<string, HostTool>>): ToolSource => ({
  name: "in-process",
  offered: new Set(Object.keys(tools)),
  has: ({ _tag, name }) => _tag === "Named" && Object.hasOwn(tools, name),
  open: ({ name }, turn) => {
    const tool = Object.hasOwn(tools, name) ? tools[name] : undefined
    return Effect.succeed(tool === undefined ? [] : [toSourcedTool(name, tool, turn)])
  }
})

/** Registers `tools` beside the built-in sources. */
export const layerInProcess = (tools: Readonly<Record<string, HostTool>>): Layer.Layer<OtherToolSources> =>
  Layer.succeed(OtherToolSources, [Effect.succeed(inProcessSource(tools))])
