/**
 * A model of the AI SDK as an object, by what the second and the third version of its specification have in common. Nothing of the SDK
 * is named here: whoever has such an object has the SDK.
 */

type Json = null | string | number | boolean | Array<Json> | { [name: string]: Json | undefined }
/** What a provider has said of a part of its own, by its name. */
export type AiSdkProviderOptions = Record<string, { [name: string]: Json | undefined }>

export type AiSdkUserPart =
  | { type: "text"; text: string }
  | { type: "file"; data: Uint8Array | string | URL; mediaType: string; filename?: string }
export type AiSdkAssistantPart =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string; providerOptions?: AiSdkProviderOptions }
  | { type: "tool-call"; toolCallId: string; toolName: string; input: unknown }
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

/** What a model is asked. */
export interface AiSdkCall {
  prompt: Array<AiSdkMessage>
  tools?: Array<{ type: "function"; name: string; description: string; inputSchema: Record<string, unknown> }>
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
