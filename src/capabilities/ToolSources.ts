/**
 * Where the tools of agents come from. A source knows one way to call a tool. What holds for every tool (time, parallelism,
 * the check of arguments, redaction, the trace, hand-over) is kept by the turn, which knows sources only by this interface.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Either from "effect/Either"
import type { AgentScope } from "../domain/accounts/Access.ts"
import type { Binding, ToolDefinition, ToolId } from "../domain/agents/Tool.ts"
import type { ToolFailure } from "../domain/agents/ToolFailure.ts"
import type { ConversationId, EndUserId, RunId } from "../domain/Ids.ts"
import type { JsonObject, JsonValue } from "../domain/Text.ts"
import type { ToolDeclaration } from "./ModelRuntime.ts"
import type { OutboundHttp } from "./OutboundHttp.ts"

/** The turn that a tool is called in. */
export interface CallingTurn {
  readonly scope: AgentScope
  readonly runId: RunId
  readonly conversationId: ConversationId | null
  readonly endUserId: EndUserId | null
}

/** A value of the request's `toolContext`, and its place in the request of the tool. */
export interface BoundValue {
  readonly to: Binding["to"]
  readonly value: JsonValue
}

/** A tool that is set up with an address, with what the turn brings for it. */
export interface ConfiguredTool {
  readonly id: ToolId
  readonly name: string
  /** Raised by each change of the definition or the secret. */
  readonly version: number
  readonly definition: ToolDefinition
  /** Empty for a tool without one. A missing credential is the failure of what needs it. */
  readonly credential: Either.Either<string, ToolFailure>
  readonly bound: Either.Either<ReadonlyArray<BoundValue>, ToolFailure>
}

/** A tool of an agent: one of the process, which the agent names, or one that is set up with an address. */
export type AgentTool =
  { readonly _tag: "Named"; readonly name: string } | ({ readonly _tag: "Configured" } & ConfiguredTool)

/** Tells those who follow the turn how far a call has come. */
export type Progress = (text: string) => Effect.Effect<void>

export interface SourcedTool {
  readonly declaration: ToolDeclaration
  /** Milliseconds that one call may take; the turn interrupts it then, and when the turn is cancelled. */
  readonly timeoutMillis: number
  /** Its answer is bounded in size. `input` fits the declared parameters. */
  readonly call: (input: JsonObject, progress: Progress) => Effect.Effect<JsonValue, ToolFailure>
}

export interface ToolSource {
  readonly name: string
  /** The tools that agents may name; empty for a source of tools with addresses. */
  readonly offered: ReadonlySet<string>
  readonly has: (tool: AgentTool) => boolean
  /**
   * The functions of a tool that it {@link has}, for one turn. Names may hold anything, descriptions are of any length: the
   * turn makes them fit for models. Fails when nothing of the tool can be offered, within seconds: the turn waits for it.
   */
  readonly open: (
    tool: AgentTool,
    turn: CallingTurn
  ) => Effect.Effect<ReadonlyArray<SourcedTool>, ToolFailure>
}

/** A tool belongs to the first source that has it; none without a registration. */
export class ToolSources extends Context.Reference<ToolSources>()("capabilities/ToolSources", {
  defaultValue: (): ReadonlyArray<ToolSource> => []
}) {}

/**
 * Sources that come beside ours; one of the same name takes the place of ours. Each is made when the service opens, and may
 * use the guarded client.
 */
export class OtherToolSources extends Context.Reference<OtherToolSources>()("capabilities/OtherToolSources", {
  defaultValue: (): ReadonlyArray<Effect.Effect<ToolSource, never, OutboundHttp>> => []
}) {}

/** Names that agents may switch on. */
export const offeredNames = (sources: ReadonlyArray<ToolSource>): ReadonlySet<string> =>
  new Set(sources.flatMap(({ offered }) => [...offered]))
