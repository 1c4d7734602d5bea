/**
 * One round with a language model, as a stream of its parts. A reply that ends without `Finish` has failed.
 * Interruption aborts the provider's request.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { ProviderProblem } from "../domain/chat/AgentRun.ts"
import type { AttachmentType } from "../domain/channels/Attachment.ts"
import type { Bill } from "../domain/billing/Cost.ts"
import type { JsonObject } from "../domain/Text.ts"

/** A tool as declared to the model. `parameters` is a JSON Schema known only at run time. */
export interface ToolDeclaration {
  readonly name: string
  readonly description: string
  readonly parameters: JsonObject
}

/** A chunk of a retrieved passage, for runtimes that build their reply from the passages. */
export interface Passage {
  /** The number of the passage, which all of its chunks have. */
  readonly index: number
  readonly title: string
  readonly text: string
  readonly score: number
  readonly documentId: string
  /** Index among the chunks of its document. */
  readonly ordinal: number
  /** False for a chunk that was not found itself, but stands near one of the same section that was. Default: true. */
  readonly isFound?: boolean
  /** True for a curated answer to this question. */
  readonly curated?: boolean
}

export interface ModelRequest {
  /** The agent's model, or null for the configured one. */
  readonly model: string | null
  /** System instructions, history, the user's message with retrieved passages, and earlier steps. */
  readonly prompt: Prompt.Prompt
  readonly tools: ReadonlyArray<ToolDeclaration>
  /** Tools of earlier rounds that may not be called now. Some providers require them where the prompt has their calls. */
  readonly withdrawnTools?: ReadonlyArray<ToolDeclaration>
  /** The user's message as received. */
  readonly question: string
  readonly passages: ReadonlyArray<Passage>
  /** JSON Schema that the reply has to fit, of type `object` and without references. The prompt contains it too. */
  readonly responseSchema?: JsonObject | undefined
}

export type FinishReason = "stop" | "length" | "content-filter" | "tool-calls" | "other"

export type ModelPart =
  /** Comes first if another model answers than the requested one: `provider/model`. */
  | { readonly _tag: "Answering"; readonly model: string }
  | { readonly _tag: "TextDelta"; readonly delta: string }
  /** The model's reasoning, which is not part of the reply. */
  | { readonly _tag: "ReasoningDelta"; readonly delta: string }
  /** A completed reasoning block, which the provider expects back with the following tool calls. */
  | { readonly _tag: "Reasoning"; readonly text: string; readonly options: Prompt.ProviderOptions }
  /** `input` is the parsed argument object, or null when the model sent something else (`rawInput` has the text). */
  | {
      readonly _tag: "ToolCall"
      readonly id: string
      readonly name: string
      readonly input: JsonObject | null
      readonly rawInput: string
      /** What the provider expects back with the call. */
      readonly options?: Prompt.ProviderOptions
    }
  | {
      readonly _tag: "Finish"
      readonly reason: FinishReason
      /** Including cached ones. */
      readonly inputTokens: number
      /** Input tokens from the provider's cache, which cost less. */
      readonly cachedInputTokens?: number
      readonly outputTokens: number
      /** Output tokens used for reasoning, if the provider reports them. */
      readonly reasoningTokens?: number
      /** True if the provider did not report the tokens. */
      readonly isEstimated?: boolean
      /** The cost of the call, if the runtime knows it. */
      readonly bill?: Bill
    }

/** Never contains a key, a body or a header of the provider. `message` is only for our log. */
export class ModelError extends Schema.TaggedError<ModelError>()("ModelError", {
  reason: Schema.Literal("Unreachable", "TimedOut", "Rejected", "RateLimited", "Malformed", "Truncated"),
  /** A problem for the operator, where {@link problemOf} would be less specific. */
  problem: Schema.optionalWith(ProviderProblem, { exact: true }),
  message: Schema.String,
  /** True when no part of the answer had come, so that the same request may be sent again. */
  retryable: Schema.Boolean,
  retryAfter: Schema.optionalWith(Schema.DurationFromMillis, { exact: true })
}) {}

const problems: Record<ModelError["reason"], ProviderProblem> = {
  Unreachable: "unreachable",
  TimedOut: "timed_out",
  Rejected: "request_refused",
  RateLimited: "rate_limited",
  Malformed: "answer_broken",
  Truncated: "answer_broken"
}

/** The problem of `error`, for operators. */
export const problemOf = ({ problem, reason }: ModelError): ProviderProblem => problem ?? problems[reason]

/** Problems of calls that cost nothing. */
export const unbilledProblems: ReadonlySet<ProviderProblem> = new Set<ProviderProblem>([
  "key_refused",
  "quota_spent",
  "rate_limited",
  "model_unknown",
  "request_refused",
  "unreachable"
])

export interface WholeReply {
  readonly text: string
  readonly inputTokens: number
  readonly outputTokens: number
  /** Null when the cost is unknown. */
  readonly bill: Bill | null
}

/** The whole reply at once, for callers that do not stream. Its text is cut to `maxLength` UTF-16 units. */
export const wholeReply = <E>(parts: Stream.Stream<ModelPart, E>, maxLength: number) => {
  const empty: WholeReply = { text: "", inputTokens: 0, outputTokens: 0, bill: null }
  return Stream.runFold(parts, empty, (reply, part): WholeReply => {
    if (part._tag === "TextDelta") return { ...reply, text: (reply.text + part.delta).slice(0, maxLength) }
    if (part._tag !== "Finish") return reply
    const { bill = null, inputTokens, outputTokens } = part
    return { ...reply, inputTokens, outputTokens, bill }
  })
}

export class ModelRuntime extends Context.Tag("capabilities/ModelRuntime")<
  ModelRuntime,
  {
    /** The model of agents that name none. */
    readonly defaultModel: string
    /** Names of models that agents may use, as far as they are known. Default: only the default model. */
    readonly models?: ReadonlyArray<string>
    /** Maximum number of tokens of prompt and reply together. */
    readonly contextWindow: number
    /** True if its replies quote only `passages`, verbatim, and nothing else in the prompt. */
    readonly readsPassages: boolean
    /**
     * Minimum score of a passage, for a runtime that judges passages itself. Default: the embedder's recommendation.
     */
    readonly minScore?: number
    /** The same where words alone decide. */
    readonly minWordScore?: number
    /** True when a prompt may contain images. Only the answer shows whether the model can read them. */
    readonly acceptsImages: boolean
    /** Files that a prompt for this model (null: the default one) may contain; none for a text-only model. */
    readonly readable: (model: string | null) => ReadonlyArray<AttachmentType>
    /** The name under which calls of the model (null: the default one) are counted; default: its own name. */
    readonly billedAs?: (model: string | null) => string
    /** The parts of the reply, in order. Parts that arrived together are one chunk. */
    readonly reply: (request: ModelRequest) => Stream.Stream<ModelPart, ModelError>
  }
>() {}

export type ModelRuntimeService = Context.Tag.Service<typeof ModelRuntime>
