/** Tools that the process offers to its agents by name, beside those that are set up with an address. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../domain/accounts/Access.ts"
import type { ConversationId, EndUserId, RunId } from "../domain/Ids.ts"
import type { JsonObject, JsonValue } from "../domain/Text.ts"
import type { ToolDeclaration } from "./ModelRuntime.ts"

/** Why a call has no answer, in words that the model is told. */
export class ToolSourceError extends Schema.TaggedError<ToolSourceError>()("ToolSourceError", {
  reason: Schema.Literal("InvalidInput", "TimedOut", "Failed"),
  message: Schema.String
}) {}

/** The turn that a tool is called in. */
export interface CallingTurn {
  readonly scope: AgentScope
  readonly runId: RunId
  readonly conversationId: ConversationId | null
  readonly endUserId: EndUserId | null
}

/** Tells those who follow the turn how far a call has come. */
export type Progress = (text: string) => Effect.Effect<void>

export interface SourcedTool {
  readonly declaration: ToolDeclaration
  /** Bounded in time and in the size of its answer; interrupted when the turn is cancelled. */
  readonly call: (
    input: JsonObject,
    turn: CallingTurn,
    progress: Progress
  ) => Effect.Effect<JsonValue, ToolSourceError>
}

/** By name; none unless a host provides them. */
export class ToolSource extends Context.Reference<ToolSource>()("capabilities/ToolSource", {
  defaultValue: (): ReadonlyMap<string, SourcedTool> => new Map()
}) {}
