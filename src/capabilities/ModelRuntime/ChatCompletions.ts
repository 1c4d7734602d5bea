/** Any provider with `POST /chat/completions`, streamed. */
import {
  type FinishReason,
  type ModelError,
  type ModelPart,
  type ModelRequest,
  type ToolDeclaration
} from "../ModelRuntime.ts"
import { accepts, chatMessages, type ReasoningField, reasoningFields } from "./ChatMessages.ts"
import type { Decoder } from "./ProviderAnswer.ts"
import { versioned } from "./ProviderApi.ts"
import * as Failure from "./ProviderFailure.ts"
import * as ProviderStream from "./ProviderStream.ts"
import { ReplyText } from "./ReplyText.ts"
import * as Structured from "./Structured.ts"
import { usageOf } from "./Tokens.ts"
import { type CallPiece, ToolCalls } from "./ToolCalls.ts"
import { isAbsent, isObject, parseObject, type WireObject } from "./WireJson.ts"
import { itemsOf } from "../../domain/JsonValue.ts"

const reasons: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  length: "length",
  max_tokens: "length",
  model_length: "length",
  content_filter: "content-filter",
  tool_calls: "tool-calls",
  function_call: "tool-calls"
}

/** Errors for the finish reasons of replies that were broken off. */
const brokenReasons: ReadonlyMap<string, WireObject | null> = new Map([
  ["error", null],
  ["insufficient_system_resource", { type: "server_error" }]
])

/** The text of a content's part; null when it has a wrong shape. Mistral sends parts, also in its thinking. */
const textIn = (content: unknown): string | null => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return null
  const texts = itemsOf(content).map((part) => (isObject(part) && part.type === "text" ? part.text : ""))
  return texts.every((text) => typeof text === "string") ? texts.join("") : null
}

/** Null when the piece has an invalid shape. `provider` is its address. */
const pieceOf = (value: unknown, position: number, provider: string): CallPiece | null => {
  if (!isObject(value)) return null
  const { index, id, extra_content: extraContent } = value
  const call = isAbsent(value.function) ? {} : value.function
  if (!isObject(call)) return null
  const name = call.name ?? ""
  // Mistral allows an object.
  const rawInput = isObject(call.arguments) ? JSON.stringify(call.arguments) : (call.arguments ?? "")
  if (typeof name !== "string" || typeof rawInput !== "string") return null
  return {
    slot: typeof index === "number" ? index : position,
    id: typeof id === "string" ? id : "",
    name,
    rawInput,
    ...(isObject(extraContent) ? { options: { chatCompletions: { provider, extraContent } } } : {})
  }
}

class ChatDecoder implements Decoder {
  readonly #request: ModelRequest
  readonly #provider: string
  readonly #calls = new ToolCalls()
  readonly #text = new ReplyText()
  readonly #reasoning = new ReplyText("ReasoningDelta")
  #reasoningField: ReasoningField | null = null
  #reason: string | null = null
  #usage: WireObject | null = null
  isFinished = false

  constructor(request: ModelRequest, provider: string) {
    this.#request = request
    this.#provider = provider
  }

  read(data: string, parts: Array<ModelPart>): ModelError | null {
    if (data === "[DONE]") return this.end(parts)
    const event = parseObject(data)
    const error = event === null || !Array.isArray(event.choices) ? Failure.errorIn(data) : event.error
    if (!isAbsent(error)) return Failure.fromStreamedError(error)
    if (event === null) return Failure.malformed("a frame is not JSON")
    if (isObject(event.usage)) this.#usage = event.usage
    if (!Array.isArray(event.choices)) {
      return isAbsent(event.choices) && this.#usage !== null
        ? null
        : Failure.malformed("a frame has no choices")
    }
    const choice: unknown = event.choices[0]
    if (choice === undefined) return null
    return isObject(choice)
      ? this.#readChoice(choice, parts)
      : Failure.malformed("a choice has a wrong shape")
  }

  end(parts: Array<ModelPart>): ModelError | null {
    if (this.#reason === null) return Failure.truncated()
    this.#reasoning.end(parts)
    if (this.#reasoningField !== null) {
      const options = { chatCompletions: { field: this.#reasoningField } }
      parts.push({ _tag: "Reasoning", text: this.#reasoning.text, options })
    }
    this.#text.end(parts)
    parts.push(...this.#calls.finished())
    const details = this.#usage?.prompt_tokens_details
    const outputDetails = this.#usage?.completion_tokens_details
    const stopped = this.#reason === "stop" && !this.#calls.isEmpty
    parts.push({
      _tag: "Finish",
      reason: stopped ? "tool-calls" : (reasons[this.#reason] ?? "other"),
      ...usageOf(
        this.#request,
        this.#text.text,
        this.#usage?.prompt_tokens,
        this.#usage?.completion_tokens,
        isObject(details) ? details.cached_tokens : null,
        isObject(outputDetails) ? outputDetails.reasoning_tokens : null
      )
    })
    this.isFinished = true
    return null
  }

  #readChoice({ delta, finish_reason }: WireObject, parts: Array<ModelPart>): ModelError | null {
    if (!isAbsent(delta)) {
      if (!isObject(delta)) return Failure.malformed("a delta has a wrong shape")
      if (!this.#addReasoning(delta, parts)) return Failure.malformed("the reasoning is too long")
      const failure = this.#addContent(delta.content, parts) ?? this.#addContent(delta.refusal, parts)
      if (failure !== null) return failure
      if (!isAbsent(delta.tool_calls) && !this.#addCalls(delta.tool_calls)) {
        return Failure.malformed("a tool call has a wrong shape")
      }
    }
    if (typeof finish_reason === "string" && finish_reason !== "") this.#reason = finish_reason
    const broken = brokenReasons.get(this.#reason ?? "")
    return broken === undefined ? null : Failure.fromStreamedError(broken)
  }

  #addContent(content: unknown, parts: Array<ModelPart>): ModelError | null {
    if (isAbsent(content) || content === "") return null
    if (typeof content === "string") return this.#addText(content, parts)
    if (!Array.isArray(content)) return Failure.malformed("a delta's text has a wrong shape")
    for (const part of itemsOf(content)) {
      const failure = this.#addPart(part, parts)
      if (failure !== null) return failure
    }
    return null
  }

  /** Thinking in the content is not expected back. Parts such as references are not part of the reply. */
  #addPart(part: unknown, parts: Array<ModelPart>): ModelError | null {
    if (!isObject(part)) return Failure.malformed("a part of the content has a wrong shape")
    if (part.type !== "thinking" && part.type !== "text") return null
    const text = part.type === "thinking" ? textIn(part.thinking) : part.text
    if (typeof text !== "string") return Failure.malformed("a delta's text has a wrong shape")
    if (part.type === "text") return this.#addText(text, parts)
    return this.#reasoning.add(text, parts) ? null : Failure.malformed("the reasoning is too long")
  }

  #addText(text: string, parts: Array<ModelPart>): ModelError | null {
    return this.#text.add(text, parts) ? null : Failure.malformed("the reply is too long")
  }

  /** The field's name differs between services; some send both. */
  #addReasoning(delta: WireObject, parts: Array<ModelPart>): boolean {
    for (const field of reasoningFields) {
      const text = delta[field]
      if (typeof text !== "string" || text === "") continue
      this.#reasoningField = field
      return this.#reasoning.add(text, parts)
    }
    return true
  }

  #addCalls(pieces: unknown): boolean {
    return (
      Array.isArray(pieces) &&
      itemsOf(pieces).every((value, position) => {
        const piece = pieceOf(value, position, this.#provider)
        return piece !== null && this.#calls.add(piece)
      })
    )
  }
}

const toTool = ({ name, description, parameters }: ToolDeclaration) => ({
  type: "function",
  function: { name, description, parameters, strict: false }
})

const bodyOf = (
  request: ModelRequest,
  { baseUrl, defaultModel }: Pick<ProviderStream.ProviderOptions, "baseUrl" | "defaultModel">
) => ({
  model: request.model ?? defaultModel,
  messages: chatMessages(request.prompt, baseUrl),
  stream: true,
  stream_options: { include_usage: true },
  ...(request.tools.length > 0 && { tools: request.tools.map(toTool) }),
  ...(request.responseSchema !== undefined && {
    response_format: { type: "json_schema", json_schema: Structured.formatOf(request.responseSchema) }
  })
})

/** Azure's dated API has a path for each deployment. */
const pathOf = ({ api, apiVersion }: ProviderStream.ProviderOptions, model: string): string =>
  api === "azure"
    ? versioned(`/deployments/${encodeURIComponent(model)}/chat/completions`, apiVersion)
    : "/chat/completions"

/** Streams directly from the provider, with the time-outs in the options. */
export const layer = (options: ProviderStream.ProviderOptions) =>
  ProviderStream.makeRuntimeLayer(options, accepts, (exchange, request) =>
    Structured.withSchemaFallback(request, (asked) => {
      const body = bodyOf(asked, options)
      const path = pathOf(options, body.model)
      return ProviderStream.parts(exchange, options, path, body, new ChatDecoder(asked, options.baseUrl))
    })
  )
