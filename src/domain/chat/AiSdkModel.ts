/**
 * The common parts of a model object in the second and third version of the AI SDK's specification. Nothing is imported
 * from the SDK, so it is not a dependency.
 */

type Json = null | string | number | boolean | Array<Json> | { [name: string]: Json | undefined }
/** Provider-specific data of a part, by provider name. */
export type AiSdkProviderOptions = Record<string, { [name: string]: Json | undefined }>

export type AiSdkUserPart =
  | { type: "text"; text: string }
  | { type: "file"; data: Uint8Array | string | URL; mediaType: string; filename?: string }
export type AiSdkAssistantPart =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string; providerOptions?: AiSdkProviderOptions }
  | {
      type: "tool-call"
      toolCallId: string
      toolName: string
      input: unknown
      providerOptions?: AiSdkProviderOptions
    }
export interface AiSdkToolPart {
  type: "tool-result"
  toolCallId: string
  toolName: string
  output: { type: "text" | "error-text"; value: string }
}
export type AiSdkMessage =
  | { role: "system"; content: string }
  | { role: "user"; content: Array<AiSdkUserPart> }
  | { role: "assistant"; content: Array<AiSdkAssistantPart> }
  | { role: "tool"; content: Array<AiSdkToolPart> }

/** Input of a model call. */
export interface AiSdkCall {
  prompt: Array<AiSdkMessage>
  tools?: Array<{ type: "function"; name: string; description: string; inputSchema: Record<string, unknown> }>
  /** The declared tools may not be called. */
  toolChoice?: { type: "none" }
  responseFormat?: { type: "json"; schema: Record<string, unknown>; name: string }
  abortSignal: AbortSignal
}

/** A `LanguageModel` of the AI SDK, such as `openai("gpt-6-luna")`. */
export interface AiSdkModel {
  readonly specificationVersion: string
  /** Such as `openai.responses`. */
  readonly provider: string
  readonly modelId: string
  doStream(call: AiSdkCall): PromiseLike<{ readonly stream: ReadableStream<unknown> }>
}
