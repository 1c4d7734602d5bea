/** OpenAI's `POST /responses`, streamed. */
import {
  type FinishReason,
  type ModelError,
  type ModelPart,
  type ModelRequest,
  type ToolDeclaration
} from "../ModelRuntime.ts"
import type { Decoder } from "./ProviderAnswer.ts"
import * as Failure from "./ProviderFailure.ts"
import * as ProviderStream from "./ProviderStream.ts"
import { ReplyText } from "./ReplyText.ts"
import { responsesInput } from "./ResponsesInput.ts"
import * as Structured from "./Structured.ts"
import { usageOf } from "./Tokens.ts"
import { toolCall } from "./ToolCalls.ts"
import { isObject, parseObject, type WireObject } from "./WireJson.ts"
import { itemsOf } from "../../domain/JsonValue.ts"

const incompleteReasons: Readonly<Record<string, FinishReason>> = {
  max_output_tokens: "length",
  content_filter: "content-filter"
}

/** Maximum number of calls in one reply. */
const maxCalls = 128

class ResponsesDecoder implements Decoder {
  readonly #request: ModelRequest
  /** Ids of the calls that were emitted. */
  readonly #callIds = new Set<string>()
  readonly #text = new ReplyText()
  readonly #reasoning = new ReplyText("ReasoningDelta")
  isFinished = false

  constructor(request: ModelRequest) {
    this.#request = request
  }

  read(data: string, parts: Array<ModelPart>): ModelError | null {
    if (data === "[DONE]") return this.end(parts)
    const event = parseObject(data)
    if (event === null) return Failure.malformed("a frame is not JSON")
    switch (event.type) {
      case "response.output_text.delta":
      case "response.refusal.delta":
        return this.#addText(event.delta, parts)
      case "response.reasoning_text.delta":
      case "response.reasoning_summary_text.delta":
        return this.#addReasoning(event.delta, parts)
      case "response.reasoning_summary_part.added":
        return this.#reasoning.text === "" ? null : this.#addReasoning("\n\n", parts)
      case "response.output_item.done":
        return this.#readItem(event.item, parts)
      case "response.completed":
      case "response.incomplete":
        return this.#finish(event.response, parts)
      case "response.failed":
      case "response.cancelled":
        return Failure.fromStreamedError(isObject(event.response) ? event.response.error : null)
      case "error":
        return Failure.fromStreamedError(isObject(event.error) ? event.error : event)
      default:
        // Other events, of which there are dozens, and future ones. An event without a type is from another API.
        return typeof event.type === "string" ? null : Failure.malformed("a frame has no type")
    }
  }

  end(_parts: Array<ModelPart>): ModelError | null {
    return this.isFinished ? null : Failure.truncated()
  }

  #addText(delta: unknown, parts: Array<ModelPart>): ModelError | null {
    if (typeof delta !== "string") return Failure.malformed("a delta's text has a wrong shape")
    return this.#text.add(delta, parts) ? null : Failure.malformed("the reply is too long")
  }

  #addReasoning(delta: unknown, parts: Array<ModelPart>): ModelError | null {
    if (typeof delta !== "string") return Failure.malformed("a delta's reasoning has a wrong shape")
    return this.#reasoning.add(delta, parts) ? null : Failure.malformed("the reasoning is too long")
  }

  #readItem(item: unknown, parts: Array<ModelPart>): ModelError | null {
    if (!isObject(item)) return Failure.malformed("an output item has a wrong shape")
    if (item.type !== "function_call") return null
    const { call_id: id, name, arguments: rawInput } = item
    if (typeof id !== "string" || typeof name !== "string" || typeof rawInput !== "string") {
      return Failure.malformed("a tool call has a wrong shape")
    }
    if (this.#callIds.has(id)) return null
    this.#callIds.add(id)
    parts.push(toolCall(id, name, rawInput))
    return this.#callIds.size > maxCalls ? Failure.malformed("it has too many tool calls") : null
  }

  #finish(response: unknown, parts: Array<ModelPart>): ModelError | null {
    if (!isObject(response)) return Failure.malformed("the finish has a wrong shape")
    this.#reasoning.end(parts)
    this.#text.end(parts)
    // Servers that omit `output_item.done` list every item here.
    for (const item of itemsOf(response.output)) {
      const failure = this.#readItem(item, parts)
      if (failure !== null) return failure
    }
    const usage: WireObject = isObject(response.usage) ? response.usage : {}
    const details = usage.input_tokens_details
    const outputDetails = usage.output_tokens_details
    parts.push({
      _tag: "Finish",
      reason: this.#reasonOf(response),
      ...usageOf(
        this.#request,
        this.#text.text,
        usage.input_tokens,
        usage.output_tokens,
        isObject(details) ? details.cached_tokens : null,
        isObject(outputDetails) ? outputDetails.reasoning_tokens : null
      )
    })
    this.isFinished = true
    return null
  }

  #reasonOf({ incomplete_details: details }: WireObject): FinishReason {
    if (isObject(details)) return incompleteReasons[String(details.reason)] ?? "other"
    return this.#callIds.size > 0 ? "tool-calls" : "stop"
  }
}

const toTool = ({ name, description, parameters }: ToolDeclaration) => ({
  type: "function",
  name,
  description,
  parameters,
  strict: false
})

const bodyOf = (request: ModelRequest, defaultModel: string) => ({
  model: request.model ?? defaultModel,
  input: responsesInput(request.prompt),
  stream: true,
  // We store conversations, under the tenant's retention. The provider need not store them too.
  store: false,
  ...(request.tools.length > 0 && { tools: request.tools.map(toTool) }),
  ...(request.responseSchema !== undefined && {
    text: { format: { type: "json_schema", ...Structured.formatOf(request.responseSchema) } }
  })
})

/** Streams directly from the provider, with the time-outs in the options. */
export const layer = (options: ProviderStream.ProviderOptions) =>
  ProviderStream.makeRuntimeLayer(
    options,
    () => true,
    (exchange, request) =>
      Structured.withSchemaFallback(request, (asked) => {
        const body = bodyOf(asked, options.defaultModel)
        return ProviderStream.parts(exchange, options, "/responses", body, new ResponsesDecoder(asked))
      })
  )
