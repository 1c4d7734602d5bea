/** The tools of a replayed turn. Each call gets its recorded answer; no call reaches a real tool. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ToolDeclaration } from "../../../capabilities/ModelRuntime.ts"
import { canonical } from "../../../domain/Json.ts"
import { JsonObject, type JsonValue } from "../../../domain/Text.ts"
import type { RecordedEvent } from "../../../store/chat/RecordedRuns.ts"
import { type ToolFailure, ToolFailureCode } from "../../../domain/agents/ToolFailure.ts"
import { isFunctionOf } from "../tools/FunctionNames.ts"
import { Scrubber } from "../tools/Scrub.ts"
import type { TurnTools } from "../tools/Tools.ts"

/** Why a replay ended early: it asked for something that was not recorded. */
export interface Divergence {
  readonly reason: string
}

const Started = Schema.Struct({
  toolCallId: Schema.String,
  tool: Schema.String,
  input: JsonObject
})
const Completed = Schema.Struct({ toolCallId: Schema.String, output: Schema.Unknown })
const Failed = Schema.Struct({
  toolCallId: Schema.String,
  code: ToolFailureCode,
  message: Schema.String
})

const decodeStarted = Schema.decodeUnknownOption(Started)
const decodeCompleted = Schema.decodeUnknownOption(Completed)
const decodeFailed = Schema.decodeUnknownOption(Failed)

const isJsonObject = Schema.is(JsonObject)

/** A stored value as JSON. */
const asJson = (value: unknown): JsonValue => {
  const wrapped: unknown = { value }
  return isJsonObject(wrapped) ? (wrapped["value"] ?? null) : null
}

type Answered = Either.Either<JsonValue, ToolFailure>

/** The recorded answers by tool and input, in call order, and the names of all called tools. */
const recordedAnswersOf = (
  events: ReadonlyArray<RecordedEvent>,
  keyOf: (tool: string, input: JsonObject) => string
) => {
  const answers = new Map<string, Array<Answered>>()
  const names = new Set<string>()
  const open = new Map<string, Array<string>>()
  const close = (id: string, answer: Answered) => {
    const key = open.get(id)?.shift()
    if (key === undefined) return
    const earlier = answers.get(key)
    if (earlier === undefined) answers.set(key, [answer])
    else earlier.push(answer)
  }
  for (const { payload, type } of events) {
    if (type === "tool.started") {
      for (const { input, tool, toolCallId } of Option.toArray(decodeStarted(payload))) {
        names.add(tool)
        open.set(toolCallId, [...(open.get(toolCallId) ?? []), keyOf(tool, input)])
      }
    } else if (type === "tool.completed") {
      for (const { output, toolCallId } of Option.toArray(decodeCompleted(payload)))
        close(toolCallId, Either.right(asJson(output)))
    } else if (type === "tool.failed") {
      for (const { code, message, toolCallId } of Option.toArray(decodeFailed(payload)))
        close(toolCallId, Either.left({ code, message }))
    }
  }
  return { answers, names }
}

/** Declaration of a recorded function whose tool a replay does not ask for its functions. */
const undescribedTool = (name: string): ToolDeclaration => ({
  name,
  description: "A tool of this agent.",
  parameters: { type: "object", properties: {} }
})

/** The tools that a version of the agent offers. */
export interface OfferedTools {
  readonly described: ReadonlyArray<ToolDeclaration>
  /** As in a turn. */
  readonly sent: TurnTools["sent"]
  /** Names of tools whose functions only their servers know. The functions are named after the tool. */
  readonly others: ReadonlyArray<string>
}

/**
 * Tools that answer from `events`, each recorded call once. Of the recorded ones that are not described, only those of
 * `others` are offered. A call that was not recorded completes `divergence`, and its caller waits to be interrupted.
 */
export const make = (
  events: ReadonlyArray<RecordedEvent>,
  { described, others, sent }: OfferedTools,
  divergence: Deferred.Deferred<never, Divergence>
): TurnTools => {
  // Also of the recorded input: earlier versions sent and recorded everything that the model passed.
  const keyOf = (tool: string, input: JsonObject) => `${tool} ${canonical(sent(tool, input))}`
  const { answers, names } = recordedAnswersOf(events, keyOf)
  const known = new Set(described.map(({ name }) => name))
  const isOffered = (name: string) => !known.has(name) && others.some((tool) => isFunctionOf(tool, name))
  const diverge = (name: string) =>
    Effect.zipRight(
      Deferred.fail(divergence, { reason: `A call of the tool ${name} was not recorded.` }),
      Effect.never
    )
  return {
    declarations: [...described, ...[...names].filter(isOffered).map(undescribedTool)],
    unavailable: [],
    leftOut: [],
    isRecorded: true,
    sent,
    // Recorded answers were scrubbed before they were stored.
    scrubber: new Scrubber(new Set()),
    call: (name, input) =>
      Effect.suspend(() => {
        const answer = answers.get(keyOf(name, input ?? {}))?.shift()
        return answer === undefined ? diverge(name) : answer
      })
  }
}
