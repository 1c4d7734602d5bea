/**
 * Anthropic's `POST /messages`, streamed. It does not use `@effect/ai-anthropic` 0.27, the version for the pinned
 * Effect: that adds a tokenizer in WebAssembly, decodes each event with a schema, which is slow, and lacks our
 * time-outs and errors.
 */
import * as Either from "effect/Either"
import * as Json from "../../domain/Json.ts"
import {
  type FinishReason,
  type ModelError,
  type ModelPart,
  type ModelRequest,
  type ToolDeclaration
} from "../ModelRuntime.ts"
import { anthropicInput } from "./AnthropicInput.ts"
import type { Decoder } from "./ProviderAnswer.ts"
import * as Failure from "./ProviderFailure.ts"
import * as ProviderStream from "./ProviderStream.ts"
import { ReplyText } from "./ReplyText.ts"
import { usageOf } from "./Tokens.ts"
import { ToolCalls } from "./ToolCalls.ts"
import { countOf, isObject, parseObject, type WireObject } from "./WireJson.ts"

/**
 * Maximum number of tokens of one reply, including reasoning. The API requires a number, and all current models support
 * this one.
 */
const maxOutputTokens = 16_384

/** Maximum number of characters of the signature of one reasoning block. */
const maxSignatureLength = 256 * 1024

const reasons: Readonly<Record<string, FinishReason>> = {
  end_turn: "stop",
  stop_sequence: "stop",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  tool_use: "tool-calls",
  refusal: "content-filter"
}

/** Input tokens, including those read from or written to the cache, which the provider reports separately. */
const inputOf = (usage: WireObject): number | null => {
  const uncached = countOf(usage.input_tokens)
  if (uncached === null) return null
  return (
    uncached +
    (countOf(usage.cache_read_input_tokens) ?? 0) +
    (countOf(usage.cache_creation_input_tokens) ?? 0)
  )
}

/** The arguments in the start of a tool call, with all digits of long integers. */
const wholeInput = (data: string): string => {
  const event = Either.getOrNull(Json.parseExactly(data))
  const block = isObject(event) ? event.content_block : null
  return JSON.stringify(isObject(block) ? block.input : null)
}

class AnthropicDecoder implements Decoder {
  readonly #request: ModelRequest
  readonly #calls = new ToolCalls()
  readonly #text = new ReplyText()
  readonly #reasoning = new ReplyText("ReasoningDelta")
  /** Open reasoning blocks, by their index among the blocks of the reply. */
  readonly #openReasoning = new Map<number, { thinking: string; signature: string }>()
  /** Indexes of the tool calls among the blocks of the reply. */
  readonly #callIndexes = new Set<number>()
  #input: WireObject = {}
  #output: unknown = null
  #reason: string | null = null
  isFinished = false

  constructor(request: ModelRequest) {
    this.#request = request
  }

  read(data: string, parts: Array<ModelPart>): ModelError | null {
    const event = parseObject(data)
    if (event === null) return Failure.malformed("a frame is not JSON")
    switch (event.type) {
      case "message_start":
        return this.#startMessage(event.message)
      case "content_block_start":
        return this.#startBlock(event.index, event.content_block, data, parts)
      case "content_block_delta":
        return this.#blockDelta(event.index, event.delta, parts)
      case "content_block_stop":
        this.#endReasoning(event.index, parts)
        return null
      case "message_delta":
        return this.#messageDelta(event)
      case "message_stop":
        return this.end(parts)
      case "error":
        return Failure.fromStreamedError(event.error)
      default:
        // Pings, and future event types. An event without a type is from another API.
        return typeof event.type === "string" ? null : Failure.malformed("a frame has no type")
    }
  }

  end(parts: Array<ModelPart>): ModelError | null {
    if (this.#reason === null) return Failure.truncated()
    for (const index of this.#openReasoning.keys()) this.#endReasoning(index, parts)
    this.#reasoning.end(parts)
    this.#text.end(parts)
    parts.push(...this.#calls.finished())
    parts.push({
      _tag: "Finish",
      reason: this.#calls.isEmpty ? (reasons[this.#reason] ?? "other") : "tool-calls",
      ...usageOf(
        this.#request,
        this.#text.text,
        inputOf(this.#input),
        this.#output,
        this.#input.cache_read_input_tokens
      )
    })
    this.isFinished = true
    return null
  }

  #startMessage(message: unknown): ModelError | null {
    if (!isObject(message)) return Failure.malformed("the start has a wrong shape")
    if (isObject(message.usage)) this.#input = message.usage
    return null
  }

  #startBlock(index: unknown, block: unknown, data: string, parts: Array<ModelPart>): ModelError | null {
    if (!isObject(block) || typeof index !== "number") return Failure.malformed("a block has a wrong shape")
    if (block.type === "text") return this.#addText(block.text ?? "", parts)
    if (block.type === "thinking") {
      this.#openReasoning.set(index, { thinking: "", signature: "" })
      return this.#addReasoning(index, block, parts)
    }
    if (block.type === "redacted_thinking" && typeof block.data === "string") {
      parts.push({ _tag: "Reasoning", text: "", options: { anthropic: { redactedData: block.data } } })
      return null
    }
    // Blocks of the provider's own tools are not part of the reply.
    if (block.type !== "tool_use") return null
    const { id, input, name } = block
    if (typeof id !== "string" || typeof name !== "string") {
      return Failure.malformed("a tool call has a wrong shape")
    }
    this.#callIndexes.add(index)
    // The arguments come in pieces, but some servers send all of them here.
    const isWhole = isObject(input) && Object.keys(input).length > 0
    return this.#addCall({ slot: index, id, name, rawInput: isWhole ? wholeInput(data) : "" })
  }

  #blockDelta(index: unknown, delta: unknown, parts: Array<ModelPart>): ModelError | null {
    if (!isObject(delta) || typeof index !== "number") return Failure.malformed("a delta has a wrong shape")
    if (delta.type === "text_delta") return this.#addText(delta.text, parts)
    if (delta.type === "thinking_delta" || delta.type === "signature_delta") {
      return this.#addReasoning(index, delta, parts)
    }
    if (delta.type !== "input_json_delta" || !this.#callIndexes.has(index)) return null
    const { partial_json: rawInput } = delta
    if (typeof rawInput !== "string") return Failure.malformed("a tool call has a wrong shape")
    return this.#addCall({ slot: index, id: "", name: "", rawInput })
  }

  #addReasoning(
    index: number,
    { signature, thinking }: WireObject,
    parts: Array<ModelPart>
  ): ModelError | null {
    const block = this.#openReasoning.get(index)
    if (block === undefined) return null
    if (typeof signature === "string") block.signature += signature
    if (block.signature.length > maxSignatureLength) return Failure.malformed("a signature is too long")
    if (typeof thinking !== "string" || thinking === "") return null
    block.thinking += thinking
    return this.#reasoning.add(thinking, parts) ? null : Failure.malformed("the reasoning is too long")
  }

  /** The block is returned unchanged, because the signature covers its exact text. */
  #endReasoning(index: unknown, parts: Array<ModelPart>): void {
    const block = typeof index === "number" ? this.#openReasoning.get(index) : undefined
    if (typeof index !== "number" || block === undefined) return
    this.#openReasoning.delete(index)
    const { signature, thinking } = block
    if (signature === "") return
    parts.push({ _tag: "Reasoning", text: thinking, options: { anthropic: { signature } } })
  }

  #addText(text: unknown, parts: Array<ModelPart>): ModelError | null {
    if (typeof text !== "string") return Failure.malformed("a delta's text has a wrong shape")
    if (text === "") return null
    return this.#text.add(text, parts) ? null : Failure.malformed("the reply is too long")
  }

  #addCall(piece: Parameters<ToolCalls["add"]>[0]): ModelError | null {
    return this.#calls.add(piece) ? null : Failure.malformed("its tool calls are too many or too long")
  }

  #messageDelta({ delta, usage }: WireObject): ModelError | null {
    if (!isObject(delta)) return Failure.malformed("a delta has a wrong shape")
    if (typeof delta.stop_reason === "string") this.#reason = delta.stop_reason
    if (isObject(usage)) {
      // Cumulative counts of the message. Those of the input may be omitted.
      this.#output = usage.output_tokens
      if (countOf(usage.input_tokens) !== null) this.#input = { ...this.#input, ...usage }
    }
    return null
  }
}

const toTool = ({ name, description, parameters }: ToolDeclaration) => ({
  name,
  description,
  input_schema: parameters
})

/** The API refuses tool calls in the prompt of a request that declares no tools. */
const toolsOf = ({ tools, withdrawnTools = [] }: ModelRequest) => {
  if (tools.length > 0) return { tools: tools.map(toTool) }
  return withdrawnTools.length === 0
    ? {}
    : { tools: withdrawnTools.map(toTool), tool_choice: { type: "none" } }
}

// A `responseSchema` is requested in the prompt, and the reply is checked against it.
const bodyOf = (request: ModelRequest, defaultModel: string) => ({
  model: request.model ?? defaultModel,
  max_tokens: maxOutputTokens,
  ...anthropicInput(request.prompt),
  stream: true,
  ...toolsOf(request)
})

/** Streams directly from the provider, with the time-outs in the options. */
export const layer = (options: ProviderStream.ProviderOptions) =>
  ProviderStream.makeRuntimeLayer(
    options,
    () => true,
    (exchange, request) => {
      const body = bodyOf(request, options.defaultModel)
      const decoder = new AnthropicDecoder(request)
      return ProviderStream.parts(exchange, { ...options, api: "anthropic" }, "/messages", body, decoder)
    }
  )
