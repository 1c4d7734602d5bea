/** A chat turn in the shapes of OpenAI's chat completions, as far as an agent supports them. */
import * as Schema from "effect/Schema"
import { Citation } from "./ChatTurn.ts"
import { ConversationId, RunId } from "../Ids.ts"
import { JsonObject } from "../Text.ts"

/** Clients send `null` for omitted fields. */
const optional = <A, I>(schema: Schema.Schema<A, I>) =>
  Schema.optionalWith(Schema.NullOr(schema), { exact: true })

const Part = Schema.Struct({ type: Schema.String, text: optional(Schema.String) })

const Message = Schema.Struct({
  role: Schema.Literal("system", "developer", "user", "assistant", "tool", "function"),
  content: optional(Schema.Union(Schema.String, Schema.Array(Part)))
})
export type CompletionMessage = typeof Message.Type

/** Body of `POST /v1/chat/completions`. Every other parameter is accepted and has no effect. */
export const CompletionRequest = Schema.Struct({
  /** The agent's id. */
  model: Schema.String,
  messages: Schema.Array(Message).pipe(Schema.minItems(1)),
  stream: optional(Schema.Boolean),
  stream_options: optional(Schema.Struct({ include_usage: optional(Schema.Boolean) })),
  /** `json_schema` makes the reply fit the schema, like `responseSchema` of a turn. Other types have no effect. */
  response_format: optional(
    Schema.Struct({
      type: Schema.String,
      json_schema: optional(Schema.Struct({ schema: optional(JsonObject) }))
    })
  ),
  /** If true, the turn is stored in a new conversation. */
  store: optional(Schema.Boolean),
  /** The end user of a stored turn, by the caller's own id. */
  user: optional(Schema.String),
  /** `conversationId` continues a stored conversation. Its stored history is used. */
  metadata: optional(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
})
export type CompletionRequest = typeof CompletionRequest.Type

export const FinishReason = Schema.Literal("stop", "length", "content_filter")
export type FinishReason = typeof FinishReason.Type

export const CompletionUsage = Schema.Struct({
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int,
  total_tokens: Schema.Int
})
export type CompletionUsage = typeof CompletionUsage.Type

/** The member `spoke` of an answer: fields that OpenAI's shape does not have. */
const SpokeFields = Schema.Struct({
  runId: Schema.NullOr(RunId),
  conversationId: Schema.optionalWith(ConversationId, { exact: true }),
  citations: Schema.Array(Citation)
})
export type SpokeFields = typeof SpokeFields.Type

/** A complete answer. */
export const Completion = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("chat.completion"),
  /** Seconds since 1970. */
  created: Schema.Int,
  model: Schema.String,
  choices: Schema.Array(
    Schema.Struct({
      index: Schema.Int,
      message: Schema.Struct({
        role: Schema.Literal("assistant"),
        content: Schema.String,
        refusal: Schema.Null
      }),
      logprobs: Schema.Null,
      finish_reason: FinishReason
    })
  ),
  usage: CompletionUsage,
  spoke: SpokeFields
})
export type Completion = typeof Completion.Type

/** `GET /v1/models`. */
export const ModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      object: Schema.Literal("model"),
      created: Schema.Int,
      owned_by: Schema.String,
      /** The agent's name. */
      name: Schema.String
    })
  )
})
