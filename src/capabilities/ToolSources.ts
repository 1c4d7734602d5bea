/**
 * Sources of agents' tools. A source implements one way to call a tool. The turn implements what holds for every tool
 * (time-outs, parallelism, validation of arguments, redaction, the trace, handoff), and uses sources only through this
 * interface.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Either from "effect/Either"
import type * as Scope from "effect/Scope"
import type { AgentScope } from "../domain/accounts/Access.ts"
import type { Binding, ToolDefinition, ToolId } from "../domain/agents/Tool.ts"
import type { ToolFailure } from "../domain/agents/ToolFailure.ts"
import type { ConversationId, EndUserId, RunId } from "../domain/Ids.ts"
import type { JsonObject, JsonValue } from "../domain/Text.ts"
import type { ToolDeclaration } from "./ModelRuntime.ts"
import type { OutboundHttp } from "./OutboundHttp.ts"

/** The turn of a tool call. */
export interface CallingTurn {
  readonly scope: AgentScope
  readonly runId: RunId
  readonly conversationId: ConversationId | null
  readonly endUserId: EndUserId | null
}

/** A value of the request's `toolContext`, and the place in the tool's request that it goes to. */
export interface BoundValue {
  readonly to: Binding["to"]
  readonly value: JsonValue
}

/** Access to a server by tokens that expire. */
export interface ToolAccess {
  /** Another token, after the server has not accepted `token`. */
  readonly renew: (token: string) => Effect.Effect<string, ToolFailure>
  /** The failure of the call if the server does not accept the renewed `token` either. */
  readonly refused: (token: string) => Effect.Effect<ToolFailure>
  /**
   * A token that also has `scopes`, which the server demands and `token` lacks. Fails with TOOL_SCOPE_REQUIRED when a
   * person has to connect the tool again, or these scopes were requested before.
   */
  readonly widened: (token: string, scopes: ReadonlyArray<string>) => Effect.Effect<string, ToolFailure>
}

/** A tool with an address, with the turn's data for it. */
export interface ConfiguredTool {
  readonly id: ToolId
  readonly name: string
  /** Increases with each change of the definition or the secret. */
  readonly version: number
  readonly definition: ToolDefinition
  /** Empty for a tool without a credential. If it is missing, only a call that needs it fails. */
  readonly credential: Either.Either<string, ToolFailure>
  readonly bound: Either.Either<ReadonlyArray<BoundValue>, ToolFailure>
  /** Of a tool with OAuth: its connection. */
  readonly connection?: ToolAccess
}

/** A tool of an agent: one of the process, by name, or one with an address. */
export type AgentTool =
  { readonly _tag: "Named"; readonly name: string } | ({ readonly _tag: "Configured" } & ConfiguredTool)

/** Reports the progress of a call to clients that follow the turn. */
export type Progress = (text: string) => Effect.Effect<void>

export interface SourcedTool {
  readonly declaration: ToolDeclaration
  /** Time-out of one call, in milliseconds. The turn interrupts the call then, and when the turn is cancelled. */
  readonly timeoutMillis: number
  /** The arguments that are sent, of those of the model. All by default. */
  readonly sent?: (input: JsonObject) => JsonObject
  /** Its answer is bounded in size. `input` fits the declared parameters, and has only what is sent. */
  readonly call: (input: JsonObject, progress: Progress) => Effect.Effect<JsonValue, ToolFailure>
}

export interface ToolSource {
  readonly name: string
  /** The tools that agents may name; empty for a source of tools with addresses. */
  readonly offered: ReadonlySet<string>
  readonly has: (tool: AgentTool) => boolean
  /**
   * The functions of a tool for which {@link has} is true, for one turn. Names may contain any characters, and
   * descriptions may have any length: the turn adapts them for models. A replay offers recorded functions whose name is
   * the tool's, or begins with it and `_`. It must return within seconds, because the turn waits for it. Fails when no
   * function can be offered. The scope closes when the turn calls no more tools.
   */
  readonly open: (
    tool: AgentTool,
    turn: CallingTurn
  ) => Effect.Effect<ReadonlyArray<SourcedTool>, ToolFailure, Scope.Scope>
}

/** A tool belongs to the first source that has it. Default: no sources. */
export class ToolSources extends Context.Reference<ToolSources>()("capabilities/ToolSources", {
  defaultValue: (): ReadonlyArray<ToolSource> => []
}) {}

/**
 * Additional sources. One with the name of a built-in source replaces it. Each is created when the service opens, and
 * may use the guarded HTTP client.
 */
export class OtherToolSources extends Context.Reference<OtherToolSources>()("capabilities/OtherToolSources", {
  defaultValue: (): ReadonlyArray<Effect.Effect<ToolSource, never, OutboundHttp>> => []
}) {}

/** Names of tools that agents may use. */
export const offeredNames = (sources: ReadonlyArray<ToolSource>): ReadonlySet<string> =>
  new Set(sources.flatMap(({ offered }) => [...offered]))
