/** Any model of the AI SDK: an object with `doStream`, of the second or third version of its specification. */
import type * as Prompt from "@effect/ai/Prompt"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { AttachmentType } from "../../domain/channels/Attachment.ts"
import type {
  AiSdkAssistantPart,
  AiSdkCall,
  AiSdkMessage,
  AiSdkModel,
  AiSdkProviderOptions,
  AiSdkToolPart,
  AiSdkUserPart
} from "../../domain/chat/AiSdkModel.ts"
import {
  type FinishReason,
  ModelError,
  type ModelPart,
  type ModelRequest,
  ModelRuntime,
  type ModelRuntimeService,
  type ToolDeclaration
} from "../ModelRuntime.ts"
import { outputOf } from "./ChatMessages.ts"
import { AiSdkReasoning } from "./AiSdkReasoning.ts"
import * as Failure from "./ProviderFailure.ts"
import { defaultContextWindow } from "./ProviderStream.ts"
import { ReplyText } from "./ReplyText.ts"
import { usageOf } from "./Tokens.ts"
import { toolCall } from "./ToolCalls.ts"
import { countOf, isObject, type WireObject } from "./WireJson.ts"

const userPart = (part: Prompt.UserMessagePart): AiSdkUserPart =>
  part.type === "text"
    ? { type: "text", text: part.text }
    : {
        type: "file",
        data: part.data,
        mediaType: part.mediaType,
        ...(part.fileName === undefined ? {} : { filename: part.fileName })
      }

/** The value is JSON from the SDK, and is returned to it. */
const isProviderOptions = (value: unknown): value is AiSdkProviderOptions =>
  isObject(value) && Object.values(value).every(isObject)

const providerOptionsOf = (aiSdk: unknown) => (isProviderOptions(aiSdk) ? { providerOptions: aiSdk } : {})

/** Reasoning of other runtimes is omitted, because this model's provider cannot read it. */
const reasoningPart = ({
  options: { aiSdk },
  text
}: Prompt.ReasoningPart): ReadonlyArray<AiSdkAssistantPart> =>
  aiSdk === undefined ? [] : [{ type: "reasoning", text, ...providerOptionsOf(aiSdk) }]

const assistantPart = (part: Prompt.AssistantMessagePart): ReadonlyArray<AiSdkAssistantPart> => {
  if (part.type === "text") return [{ type: "text", text: part.text }]
  if (part.type === "reasoning") return reasoningPart(part)
  return part.type === "tool-call" && !part.providerExecuted
    ? [
        {
          type: "tool-call",
          toolCallId: part.id,
          toolName: part.name,
          input: part.params,
          ...providerOptionsOf(part.options["aiSdk"])
        }
      ]
    : []
}

const toolPart = (part: Prompt.ToolResultPart): AiSdkToolPart => ({
  type: "tool-result",
  toolCallId: part.id,
  toolName: part.name,
  output: { type: part.isFailure ? "error-text" : "text", value: outputOf(part) }
})

const messageOf = (message: Prompt.Message): AiSdkMessage => {
  switch (message.role) {
    case "system":
      return { role: "system", content: message.content }
    case "user":
      return { role: "user", content: message.content.map(userPart) }
    case "assistant":
      return { role: "assistant", content: message.content.flatMap(assistantPart) }
    case "tool":
      return { role: "tool", content: message.content.map(toolPart) }
  }
}

const toTool = ({ description, name, parameters }: ToolDeclaration) => ({
  type: "function" as const,
  name,
  description,
  inputSchema: parameters
})

/** Some providers refuse tool calls in the prompt of a request that declares no tools. */
const toolsOf = ({ tools, withdrawnTools = [] }: ModelRequest): Pick<AiSdkCall, "tools" | "toolChoice"> => {
  if (tools.length > 0) return { tools: tools.map(toTool) }
  return withdrawnTools.length === 0
    ? {}
    : { tools: withdrawnTools.map(toTool), toolChoice: { type: "none" } }
}

const callOf = (request: ModelRequest, abortSignal: AbortSignal): AiSdkCall => ({
  prompt: request.prompt.content.map(messageOf),
  ...toolsOf(request),
  ...(request.responseSchema === undefined
    ? {}
    : { responseFormat: { type: "json", schema: request.responseSchema, name: "reply" } }),
  abortSignal
})

const reasons: Readonly<Record<string, FinishReason>> = {
  stop: "stop",
  length: "length",
  "content-filter": "content-filter",
  "tool-calls": "tool-calls"
}

/** A string in the second version, an object in the third. */
const reasonOf = (reason: unknown): string => String(isObject(reason) ? reason.unified : reason)

/** Numbers in the second version, objects in the third. */
const tokenCountsOf = (usage: unknown) => {
  const { cachedInputTokens, inputTokens, outputTokens, reasoningTokens }: WireObject = isObject(usage)
    ? usage
    : {}
  return {
    input: isObject(inputTokens) ? inputTokens.total : inputTokens,
    cached: isObject(inputTokens) ? inputTokens.cacheRead : cachedInputTokens,
    output: isObject(outputTokens) ? outputTokens.total : outputTokens,
    reasoning: isObject(outputTokens) ? outputTokens.reasoning : reasoningTokens
  }
}

/** Maximum number of characters of an error body that are searched for its code. */
const maxErrorBody = 16 * 1024

/** The headers of an answer that are strings. */
const headersOf = (headers: unknown): Readonly<Record<string, string>> =>
  isObject(headers)
    ? Object.fromEntries(
        Object.entries(headers).flatMap(([name, value]) =>
          typeof value === "string" ? [[name.toLowerCase(), value] as const] : []
        )
      )
    : {}

/**
 * An error of the SDK contains the request, and with it the key. Only its status, a known code and the requested pause
 * are passed on.
 */
const failureOf = (error: unknown, hasBegun: boolean, now: number): ModelError => {
  if (hasBegun) return Failure.fromStreamedError(null)
  if (!isObject(error)) return clientFailed(false)
  const { isRetryable, responseBody, responseHeaders } = error
  const status = countOf(error.statusCode)
  if (status === null) return clientFailed(isRetryable === true)
  const body = typeof responseBody === "string" ? responseBody.slice(0, maxErrorBody) : ""
  return Failure.fromStatus(status, headersOf(responseHeaders), body, now)
}

const clientFailed = (retryable: boolean) =>
  new ModelError({ reason: "Unreachable", message: "The model's own client failed", retryable })

/** The pieces of `stream` as they arrive. Cancelling does not wait, because a client may never end its request. */
const readPieces = (
  stream: ReadableStream<unknown>,
  onError: (error: unknown) => Effect.Effect<ModelError>
): Effect.Effect<Stream.Stream<unknown, ModelError>, ModelError, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.try({ try: () => stream.getReader(), catch: () => clientFailed(false) }),
      (reader) => Effect.sync(() => void reader.cancel().catch(() => undefined))
    ),
    (reader) =>
      Effect.tryPromise(() => reader.read()).pipe(
        Effect.catchAll(({ error }) => Effect.flatMap(onError(error), Effect.fail)),
        Effect.mapError(Option.some),
        Effect.flatMap(({ done, value }) => (done ? Effect.fail(Option.none()) : Effect.succeed(value))),
        Stream.repeatEffectOption
      )
  )

const replyOf = (model: AiSdkModel, request: ModelRequest): Stream.Stream<ModelPart, ModelError> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const controller = yield* Effect.acquireRelease(
        Effect.sync(() => new AbortController()),
        (open) => Effect.sync(() => open.abort())
      )
      const text = new ReplyText()
      const reasoningBlocks = new AiSdkReasoning()
      let hasBegun = false
      let hasFinished = false
      let hasCalls = false

      const read = (part: unknown): ReadonlyArray<ModelPart> | ModelError | { readonly failed: unknown } => {
        if (!isObject(part)) return Failure.malformed("a part has a wrong shape")
        const parts: Array<ModelPart> = []
        switch (part.type) {
          case "text-delta":
            hasBegun = true
            if (typeof part.delta !== "string") return Failure.malformed("a delta's text has a wrong shape")
            return text.add(part.delta, parts) ? parts : Failure.malformed("the reply is too long")
          case "reasoning-start":
          case "reasoning-delta":
          case "reasoning-end":
            hasBegun = true
            return reasoningBlocks.read(part, parts) ? parts : Failure.malformed("the reasoning is too long")
          case "tool-call": {
            hasBegun = true
            const { input, providerExecuted, providerMetadata, toolCallId, toolName } = part
            if (providerExecuted === true) return parts
            if (typeof toolCallId !== "string" || typeof toolName !== "string" || typeof input !== "string")
              return Failure.malformed("a tool call has a wrong shape")
            hasCalls = true
            const options = isObject(providerMetadata) ? { aiSdk: { ...providerMetadata } } : undefined
            return [toolCall(toolCallId, toolName, input, options)]
          }
          case "error":
            return { failed: part.error }
          case "finish": {
            const reason = reasonOf(part.finishReason)
            if (reason === "error") return Failure.fromStreamedError(null)
            const { cached, input, output, reasoning } = tokenCountsOf(part.usage)
            reasoningBlocks.end(parts)
            text.end(parts)
            hasFinished = true
            parts.push({
              _tag: "Finish",
              reason: hasCalls ? "tool-calls" : (reasons[reason] ?? "other"),
              ...usageOf(request, text.text, input, output, cached, reasoning)
            })
            return parts
          }
          default:
            return parts
        }
      }

      const failed = (error: unknown) =>
        Effect.map(Clock.currentTimeMillis, (now) => failureOf(error, hasBegun, now))
      const { stream } = yield* Effect.tryPromise(async () =>
        model.doStream(callOf(request, controller.signal))
      ).pipe(Effect.catchAll(({ error }) => Effect.flatMap(failed(error), Effect.fail)))
      const pieces = yield* readPieces(stream, failed)
      return pieces.pipe(
        Stream.mapEffect((part) => {
          const decoded = read(part)
          if (decoded instanceof ModelError) return Effect.fail(decoded)
          return "failed" in decoded
            ? Effect.flatMap(failed(decoded.failed), Effect.fail)
            : Effect.succeed(decoded)
        }),
        Stream.takeUntil(() => hasFinished),
        Stream.concat(Stream.suspend(() => (hasFinished ? Stream.empty : Stream.fail(Failure.truncated())))),
        Stream.mapConcat((parts) => parts)
      )
    })
  )

/** `model` answers for every agent, even if the agent names another model. */
export const layerAiSdk = (model: AiSdkModel): Layer.Layer<ModelRuntime> => {
  const billedAs = () => `${model.provider}/${model.modelId}`
  const runtime: ModelRuntimeService = {
    defaultModel: model.modelId,
    contextWindow: defaultContextWindow,
    readsPassages: false,
    acceptsImages: true,
    readable: () => AttachmentType.literals,
    billedAs,
    reply: (request) => replyOf(model, request)
  }
  return Layer.succeed(ModelRuntime, runtime)
}
