/** The parts of a streamed turn, as the HTTP stream sends them. */
import type { RunEvent } from "./AgentRun.ts"
import type { ChatTurnResult } from "./ChatTurn.ts"

/**
 * `index` is the number of the mark in the text. The source of `[2]` comes before the bracket that ends the first
 * `[2]`.
 */
interface SourceMetadata {
  readonly spoke: { readonly index: number }
}

/** An AI SDK UI-message part. Only `data-done` means that the turn is settled. Nothing follows an `error`. */
export type StreamPart =
  | { readonly type: "start" }
  | { readonly type: "start-step" }
  | { readonly type: "finish-step" }
  | { readonly type: "text-start"; readonly id: string }
  | { readonly type: "text-delta"; readonly id: string; readonly delta: string }
  | { readonly type: "text-end"; readonly id: string }
  /** The model's reasoning, if the agent streams it. An open text part may continue after it. */
  | { readonly type: "reasoning-start"; readonly id: string }
  | { readonly type: "reasoning-delta"; readonly id: string; readonly delta: string }
  | { readonly type: "reasoning-end"; readonly id: string }
  | {
      readonly type: "source-url"
      /** The chunk's id. */
      readonly sourceId: string
      readonly url: string
      readonly title: string
      readonly providerMetadata: SourceMetadata
    }
  | {
      readonly type: "source-document"
      readonly sourceId: string
      readonly mediaType: string
      readonly title: string
      readonly providerMetadata: SourceMetadata
    }
  | {
      readonly type: "tool-input-available"
      readonly toolCallId: string
      readonly toolName: string
      readonly input: unknown
      readonly dynamic: true
    }
  | {
      readonly type: "tool-output-available"
      readonly toolCallId: string
      readonly output: unknown
      readonly dynamic: true
      /** True for progress of a running call; `output` is `{ progress }`. */
      readonly preliminary?: true
    }
  | {
      readonly type: "tool-output-error"
      readonly toolCallId: string
      readonly errorText: string
      readonly dynamic: true
    }
  | {
      readonly type: "data-agent-run-event"
      readonly data: typeof RunEvent.Encoded
      readonly transient: true
    }
  | { readonly type: "file"; readonly url: string; readonly mediaType: string }
  | { readonly type: "finish"; readonly finishReason: "stop" }
  | { readonly type: "data-done"; readonly data: { readonly result: typeof ChatTurnResult.Encoded } }
  | { readonly type: "error"; readonly errorText: "TURN_FAILED" | "RUNTIME_TIMEOUT" }
