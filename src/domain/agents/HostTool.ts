/** A tool of the library's host, which runs in this process. */
import type { JsonObject } from "../JsonValue.ts"

/** Context of a call: its turn. */
export interface ToolCallContext {
  /** Aborted when the turn is stopped or times out, and at the tool's own time-out. */
  readonly signal: AbortSignal
  readonly agentId: string
  readonly runId: string
  /** Null for a turn without a conversation. */
  readonly conversationId: string | null
  /** Null for an anonymous turn. */
  readonly endUserId: string | null
  /**
   * Reports progress to clients that stream the turn and may read its trace: up to 500 characters, 100 times a call.
   * Progress is not stored and not sent to the model.
   */
  readonly progress: (text: string) => void
}

/** Result of a call; `invalid` lists what is wrong with the input. */
type HostToolOutcome = { readonly answer: unknown } | { readonly invalid: ReadonlyArray<string> }

export interface HostTool {
  readonly description: string
  /** JSON Schema of the input, of type `object`. */
  readonly parameters: JsonObject
  /** Milliseconds that one call may take. */
  readonly timeoutMillis: number
  readonly call: (input: JsonObject, context: ToolCallContext) => Promise<HostToolOutcome>
}
