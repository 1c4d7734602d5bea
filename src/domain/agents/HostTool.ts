/** A tool that the host of the library brings along and that runs in this process. */
import type { JsonObject } from "../Text.ts"

/** What a call knows of its turn. */
export interface ToolCallContext {
  /** Aborted when the turn is stopped or its time is up, and when the tool has taken longer than its time-out. */
  readonly signal: AbortSignal
  readonly agentId: string
  readonly runId: string
  /** Null for a turn that stands in no conversation. */
  readonly conversationId: string | null
  /** Null for an anonymous turn. */
  readonly endUserId: string | null
  /**
   * Tells those who stream the turn, and may read its trace, how far the call has come: up to 500 characters, 100 times a
   * call. Nothing of it is stored or told to the model.
   */
  readonly progress: (text: string) => void
}

/** What came of a call: `invalid` says in words what is wrong with the input. */
type HostToolOutcome = { readonly answer: unknown } | { readonly invalid: ReadonlyArray<string> }

export interface HostTool {
  readonly description: string
  /** JSON Schema of the input, of type `object`. */
  readonly parameters: JsonObject
  /** Milliseconds that one call may take. */
  readonly timeoutMillis: number
  readonly call: (input: JsonObject, context: ToolCallContext) => Promise<HostToolOutcome>
}
