/** Parts of a turn, and the chunks of its stream, validated by the real AI SDK client. */
import { uiMessageChunkSchema } from "ai"
import * as DateTime from "effect/DateTime"
import type * as Stream from "effect/Stream"
import { expect } from "vitest"
import type { RunEvent } from "../../../src/domain/chat/AgentRun.ts"
import type { ChatTurnResult, Citation, TurnPart } from "../../../src/domain/chat/ChatTurn.ts"
import type { RuntimeTimeout, TurnFailed } from "../../../src/domain/Errors.ts"
import { ChunkId, ConversationId, DocumentId, EndUserId, RunId, SourceId } from "../../../src/domain/Ids.ts"

export const citation = (url: string): Citation => ({
  index: 1,
  sourceId: SourceId.make("src_1"),
  sourceName: "Handbook",
  documentId: DocumentId.make("doc_1"),
  chunkId: ChunkId.make("chk_1"),
  title: "Chapter",
  url,
  text: "Fact",
  score: 0.9
})

export const event: RunEvent = {
  id: "run_1:1",
  runId: RunId.make("run_1"),
  sequence: 1,
  type: "tool.completed",
  status: "complete",
  label: "Looked up order 4711",
  timestamp: DateTime.unsafeMake("2025-01-02T03:04:05.678Z"),
  payload: { order: "operator-only" }
}

export const result: ChatTurnResult = {
  reply: "Hello there",
  conversationId: ConversationId.make("cnv_1"),
  endUserId: EndUserId.make("usr_1"),
  citations: [citation("https://example.test/1")],
  media: [{ type: "image", url: "https://example.test/i.png", name: "i", mimeType: "image/png" }]
}

export const textDelta = (delta: string): TurnPart => ({ _tag: "TextDelta", delta })
export const reasoningDelta = (delta: string): TurnPart => ({ _tag: "ReasoningDelta", delta })
export const parts: ReadonlyArray<TurnPart> = [
  { _tag: "RunEvent", event },
  { _tag: "StepStart" },
  textDelta("Let me look. "),
  { _tag: "ToolCall", id: "call_1", name: "orders", input: { order: "operator-only" } },
  { _tag: "ToolProgress", id: "call_1", text: "operator-only: half of it" },
  { _tag: "ToolResult", id: "call_1", output: { total: "operator-only" } },
  { _tag: "ToolCall", id: "call_2", name: "orders", input: {} },
  { _tag: "ToolFailure", id: "call_2", message: "operator-only: no route" },
  { _tag: "StepEnd" },
  { _tag: "StepStart" },
  textDelta("Hello "),
  textDelta("there"),
  { _tag: "Citation", citation: citation("https://example.test/1") },
  { _tag: "Citation", citation: citation("artifact:handbook.pdf") },
  { _tag: "StepEnd" },
  { _tag: "RunEvent", event },
  { _tag: "Done", result }
]

export type Parts = Stream.Stream<TurnPart, TurnFailed | RuntimeTimeout>

export interface Read {
  readonly type: string
  readonly [field: string]: unknown
}

const dataOf = (text: string): ReadonlyArray<string> =>
  text
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: "))
    .map((frame) => frame.slice("data: ".length))

/** The chunks of a whole stream. It must end with `[DONE]`, and every chunk must match the schema of the AI SDK. */
export const chunksOf = async (text: string): Promise<ReadonlyArray<Read>> => {
  const frames = dataOf(text)
  expect(frames.at(-1)).toBe("[DONE]")
  const chunks = frames.slice(0, -1).map((frame): Read => JSON.parse(frame))
  const validate = (await uiMessageChunkSchema()).validate
  for (const chunk of chunks) {
    expect(await validate?.(chunk)).toMatchObject({ success: true })
    const unexpected = Object.keys(chunk).filter((field) => !allowedFields[chunk.type]?.includes(field))
    expect([chunk.type, ...unexpected]).toEqual([chunk.type, "type"])
  }
  return chunks
}

/** The fields of each chunk type that versions 5, 6 (strict) and 7 of the client accept. */
const allowedFields: Readonly<Record<string, ReadonlyArray<string>>> = {
  start: [],
  "start-step": [],
  "finish-step": [],
  "text-start": ["id"],
  "text-delta": ["id", "delta"],
  "text-end": ["id"],
  "reasoning-start": ["id"],
  "reasoning-delta": ["id", "delta"],
  "reasoning-end": ["id"],
  "source-url": ["sourceId", "url", "title", "providerMetadata"],
  "source-document": ["sourceId", "mediaType", "title", "providerMetadata"],
  "tool-input-available": ["toolCallId", "toolName", "input", "dynamic"],
  "tool-output-available": ["toolCallId", "output", "dynamic", "preliminary"],
  "tool-output-error": ["toolCallId", "errorText", "dynamic"],
  file: ["url", "mediaType"],
  finish: ["finishReason"],
  error: ["errorText"],
  "data-agent-run-event": ["data", "transient"],
  "data-heartbeat": ["data", "transient"],
  "data-done": ["data"]
}

export const types = (chunks: ReadonlyArray<Read>) => chunks.map(({ type }) => type)
