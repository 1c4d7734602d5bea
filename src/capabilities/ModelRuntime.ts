/**
 * One round with a language model, as a stream of its parts. A reply that ends without `Finish` has failed;
 * interruption aborts the provider's request.
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as Context from "effect/Context"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import { ProviderProblem } from "../domain/chat/AgentRun.ts"
import type { AttachmentType } from "../domain/channels/Attachment.ts"
import type { Bill } from "../domain/billing/Cost.ts"
import type { JsonObject } from "../domain/Text.ts"

/** A tool as the model is told of it; `parameters` is JSON Schema known only at run time. */
export interface ToolDeclaration {
  readonly name: string
  readonly description: string
  readonly parameters: JsonObject
}

/** A retrieved passage, for runtimes that answer from the passages themselves. */
export interface Passage {
  readonly index: number
  readonly title: string
  readonly text: string
  readonly score: number
  readonly documentId: string
  /** Place among the chunks of its document. */
  readonly ordinal: number
  /** True for a curated answer to this question. */
  readonly curated?: boolean
}

export interface ModelRequest {
  /** The agent's model, or null for the configured one. */
  readonly model: string | null
  /** System instructions, history, the user's message with what was looked up for it, earlier steps. */
  readonly prompt: Prompt.Prompt
  readonly tools: ReadonlyArray<ToolDeclaration>
  /** The user's message as it was sent. */
  readonly question: string
  readonly passages: ReadonlyArray<Passage>
  /** JSON Schema, of type `object` and without references, that the reply is to fit; the prompt says so too. */
  readonly responseSchema?: JsonObject | undefined
}

export type FinishReason = "stop" | "length" | "content-filter" | "tool-calls" | "other"

export type ModelPart =
  /** Before anything else, where another model answers than the one that was asked for: `provider/model`. */
  | { readonly _tag: "Answering"; readonly model: string }
  | { readonly _tag: "TextDelta"; readonly delta: string }
  /** What the model thinks before it replies; no part of the reply. */
  | { readonly _tag: "ReasoningDelta"; readonly delta: string }
  /** A thought that has ended, as the provider wants it back beside the calls of tools that follow. */
  | { readonly _tag: "Reasoning"; readonly text: string; readonly options: Prompt.ProviderOptions }
  /** `input` is the parsed argument object, or null when the model sent something else (`rawInput` then says what). */
  | {
      readonly _tag: "ToolCall"
      readonly id: string
      readonly name: string
      readonly input: JsonObject | null
      readonly rawInput: string
    }
  | {
      readonly _tag: "Finish"
      readonly reason: FinishReason
      /** Cached ones included. */
      readonly inputTokens: number
      /** Those of the input that the provider had read before and bills for less. */
      readonly cachedInputTokens?: number
      readonly outputTokens: number
      /** Those of the output that were thought, where the provider counts them. */
      readonly reasoningTokens?: number
      /** True where the provider did not count the tokens. */
      readonly isEstimated?: boolean
      /** The cost of the call, where the runtime knows it. */
      readonly bill?: Bill
    }

/** Never carries a key, a body or a header of the provider: `message` is for our log alone. */
export class ModelError extends Schema.TaggedError<ModelError>()("ModelError", {
  reason: Schema.Literal("Unreachable", "TimedOut", "Rejected", "RateLimited", "Malformed", "Truncated"),
  /** A message for the operator, where {@link problemOf} would have less detail. */
  problem: Schema.optionalWith(ProviderProblem, { exact: true }),
  message: Schema.String,
  /** True when nothing of the answer had arrived, so that the same request may be sent again. */
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

/** What an operator is told of `error`. */
export const problemOf = ({ problem, reason }: ModelError): ProviderProblem => problem ?? problems[reason]

export class ModelRuntime extends Context.Tag("capabilities/ModelRuntime")<
  ModelRuntime,
  {
    /** The model used when an agent names none. */
    readonly defaultModel: string
    /** Tokens of prompt and reply together that fit the model. */
    readonly contextWindow: number
    /** True when its replies are quotations of `passages` as they were found, and of nothing else in the prompt. */
    readonly readsPassages: boolean
    /** Least score of a passage for a runtime that judges passages by itself; the embedder's recommendation otherwise. */
    readonly minScore?: number
    /** True when a prompt may carry images; whether the model sees them is known only from its answer. */
    readonly acceptsImages: boolean
    /** Files that a prompt for this model (null: the default one) may carry; none for a model known to read text alone. */
    readonly readable: (model: string | null) => ReadonlyArray<AttachmentType>
    /** The name under which calls of the model (null: the default one) are counted; its own where this is left out. */
    readonly billedAs?: (model: string | null) => string
    /** The parts of the reply, in order. Parts that came together are one chunk. */
    readonly reply: (request: ModelRequest) => Stream.Stream<ModelPart, ModelError>
  }
>() {}

export type ModelRuntimeService = Context.Tag.Service<typeof ModelRuntime>
