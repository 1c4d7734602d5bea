/** The chat turn: its request, its result and the parts of its stream. */
import * as Schema from "effect/Schema"
import { optional } from "../Optional.ts"
import { RunEvent } from "./AgentRun.ts"
import { RetrieveFilter } from "../knowledge/Chunk.ts"
import { ConversationState } from "../conversations/Conversation.ts"
import type { RuntimeTimeout, TurnFailed } from "../Errors.ts"
import { ChunkId, ConversationId, DocumentId, EndUserId, RunId, SourceId } from "../Ids.ts"
import { JsonObject, trimmed } from "../Text.ts"
import { ResponseSchema } from "./ResponseSchema.ts"

/** Trimmed before validation; 1 to 200 characters after trimming. */
export const ExternalEndUserId = trimmed(200).pipe(Schema.brand("ExternalEndUserId"))
export type ExternalEndUserId = typeof ExternalEndUserId.Type

const maxRuntimeDataBytes = 64 * 1024

/** Fields that every turn's request may have. */
export const TurnFields = Schema.Struct({
  message: trimmed(32_000),
  conversationId: optional(ConversationId),
  endUserId: optional(EndUserId),
  externalEndUserId: optional(ExternalEndUserId),
  persist: Schema.optionalWith(Schema.Boolean, { exact: true, default: () => true }),
  /** Sources that the turn searches, within the key's scope. */
  filter: optional(RetrieveFilter),
  /** The reply is a JSON object that fits this schema. */
  responseSchema: optional(ResponseSchema),
  context: optional(JsonObject),
  toolContext: optional(JsonObject),
  toolCredentials: optional(Schema.Record({ key: Schema.String, value: Schema.String }))
})

const utf8 = new TextEncoder()
const byteLength = (value: unknown) => (value === undefined ? 0 : utf8.encode(JSON.stringify(value)).length)

type Identity = Pick<typeof TurnFields.Type, "conversationId" | "endUserId" | "externalEndUserId">

export const oneIdentity = ({ conversationId, endUserId, externalEndUserId }: Identity) =>
  [conversationId, endUserId, externalEndUserId].filter((field) => field !== undefined).length <= 1 ||
  "Send at most one of conversationId, endUserId and externalEndUserId"

type RuntimeData = Pick<typeof TurnFields.Type, "context" | "toolContext" | "toolCredentials">

export const boundedRuntimeData = ({ context, toolContext, toolCredentials }: RuntimeData) =>
  byteLength(context) + byteLength(toolContext) + byteLength(toolCredentials) <= maxRuntimeDataBytes ||
  "context, toolContext and toolCredentials together may take at most 64 KiB"

/** Body of a streamed turn. */
export const StreamTurnRequest = TurnFields.pipe(
  Schema.filter(oneIdentity),
  Schema.filter(boundedRuntimeData)
)
export type ChatTurnRequest = typeof TurnFields.Type

export const CompleteFields = {
  ...TurnFields.fields,
  includeRealtimeToken: Schema.optionalWith(Schema.Boolean, { exact: true, default: () => true })
}

/** Body of a turn with a complete answer. */
export const CompleteTurnRequest = Schema.Struct(CompleteFields).pipe(
  Schema.filter(oneIdentity),
  Schema.filter(boundedRuntimeData)
)

/** Whether any of the three runtime fields is present, even as an empty object. */
export const hasRuntimeData = ({ context, toolContext, toolCredentials }: ChatTurnRequest): boolean =>
  context !== undefined || toolContext !== undefined || toolCredentials !== undefined

/** Whether a passage supports the reply's statement about it: fully, partly, or not. */
export const Supported = Schema.Literal("yes", "partly", "no")
export type Supported = typeof Supported.Type

/**
 * A passage that grounds the reply, which marks it `[index]`. `start` and `end` delimit, in UTF-16 units of the reply,
 * the statement that the passage supports least; `span` contains the words of `text` that support most of it.
 */
export const Citation = Schema.Struct({
  index: Schema.Int,
  sourceId: SourceId,
  sourceName: Schema.String,
  documentId: DocumentId,
  chunkId: ChunkId,
  title: Schema.String,
  url: Schema.String,
  text: Schema.String,
  score: Schema.Number,
  start: optional(Schema.Int),
  end: optional(Schema.Int),
  span: optional(Schema.String),
  /** Omitted where it was not or cannot be checked. */
  supported: optional(Supported)
})
export type Citation = typeof Citation.Type

export const Media = Schema.Struct({
  type: Schema.Literal("image", "file"),
  url: Schema.String,
  name: Schema.String,
  mimeType: Schema.String
})
export type Media = typeof Media.Type

/** `data.result` of `data-done`, and with the run's id `data` of `POST /v1/chat`. */
export const ChatTurnResult = Schema.Struct({
  reply: Schema.String,
  conversationId: optional(ConversationId),
  endUserId: optional(EndUserId),
  citations: Schema.Array(Citation),
  media: Schema.Array(Media),
  /** Present only if the agent does not answer because a human does. The hosted stream stores the message anyway. */
  state: optional(ConversationState),
  realtimeToken: optional(Schema.String),
  realtimeUrl: optional(Schema.String)
})
export type ChatTurnResult = typeof ChatTurnResult.Type

/** `data` of `POST /v1/chat`. */
export const CompleteTurnResult = Schema.Struct({
  ...ChatTurnResult.fields,
  /** Null when nothing of the turn is stored (`persist: false`). */
  runId: Schema.NullOr(RunId),
  /** With a `responseSchema`: the parsed value of `reply`, which is its JSON text. */
  object: optional(JsonObject)
})
export type CompleteTurnResult = typeof CompleteTurnResult.Type

/** Parts that a running turn emits, in order. `http/Sse` turns each into one AI SDK chunk or none. */
export type TurnPart =
  | { readonly _tag: "TextDelta"; readonly delta: string }
  /** The model's reasoning, which is not part of the reply. */
  | { readonly _tag: "ReasoningDelta"; readonly delta: string }
  | { readonly _tag: "Citation"; readonly citation: Citation }
  | { readonly _tag: "ToolCall"; readonly id: string; readonly name: string; readonly input: unknown }
  | { readonly _tag: "ToolProgress"; readonly id: string; readonly text: string }
  | { readonly _tag: "ToolResult"; readonly id: string; readonly output: unknown }
  | { readonly _tag: "ToolFailure"; readonly id: string; readonly message: string }
  | { readonly _tag: "StepStart" }
  | { readonly _tag: "StepEnd" }
  | { readonly _tag: "RunEvent"; readonly event: RunEvent }
  | { readonly _tag: "Done"; readonly result: ChatTurnResult }

/** How a turn may fail after it has begun. */
export type TurnFailure = TurnFailed | RuntimeTimeout
