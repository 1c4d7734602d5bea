/**
 * A turn as an AI SDK UI-message stream. Only chunk types and fields that clients of versions 5, 6 and 7 accept are
 * sent; our own data is inside `data-*`. The order of parts is explained in docs/design/wire.md.
 */
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as DateTime from "effect/DateTime"
import type * as Stream from "effect/Stream"
import { redactedForEndUser, type RunEvent } from "../domain/chat/AgentRun.ts"
import type { ChatTurnResult, Citation, TurnFailure, TurnPart } from "../domain/chat/ChatTurn.ts"
import type { RunningTurn } from "../usecases/chat/ChatTurn.ts"
import * as EventStream from "./EventStream.ts"
import { keepAliveComment, type FrameWriter } from "./EventStream.ts"
import * as Resume from "./Resume.ts"

const done = "data: [DONE]\n\n"
/** Sent before any part, because proxies forward the first byte at once. */
const opening = ': stream-open\n\ndata: {"type":"start"}\n\n'
/**
 * Comments keep proxies from closing a stream. Clients do not see them: to detect a stalled stream, they need a part.
 */
const heartbeat = `${keepAliveComment}data: {"type":"data-heartbeat","data":{},"transient":true}\n\n`

const frame = (chunk: Readonly<Record<string, unknown>>) => `data: ${JSON.stringify(chunk)}\n\n`

const isWebUrl = (url: string) => /^https?:\/\//iu.test(url)

/** `index` is the number of the citation mark in the text. */
const sourceFrame = ({ chunkId, index, title, url }: Citation) =>
  frame({
    ...(isWebUrl(url)
      ? { type: "source-url", sourceId: chunkId, url, title }
      : { type: "source-document", sourceId: chunkId, mediaType: "text/plain", title }),
    providerMetadata: { spoke: { index } }
  })

const runEventFrame = (event: RunEvent) =>
  frame({
    type: "data-agent-run-event",
    data: { ...event, timestamp: DateTime.formatIso(event.timestamp) },
    // Only for onData; it is not part of the message.
    transient: true
  })

const doneFrames = ({ media, ...result }: ChatTurnResult) =>
  [
    ...media.map(({ url, mimeType }) => frame({ type: "file", url, mediaType: mimeType })),
    frame({ type: "finish", finishReason: "stop" }),
    frame({ type: "data-done", data: { result: { ...result, media } } })
  ].join("")

class UiMessageWriter implements FrameWriter {
  readonly opening = opening
  readonly keepAlive: string
  private readonly full: boolean
  private textCount = 0
  private inText = false
  private reasoningCount = 0
  private inReasoning = false
  private inStep = false
  private hasFailed = false
  private hasEnded = false

  /** `full` is true for a key that may read traces. */
  constructor(full: boolean, keepAlive: string) {
    this.full = full
    this.keepAlive = keepAlive
  }

  /**
   * The frames of parts that were waiting together. Adjacent texts become one delta, and so do adjacent pieces of
   * reasoning.
   */
  frames(parts: Iterable<TurnPart>): string {
    let out = ""
    let delta = ""
    let reasoning = ""
    for (const part of parts) {
      if (part._tag === "TextDelta") {
        out += this.reasoning(reasoning)
        reasoning = ""
        delta += part.delta
        continue
      }
      out += this.delta(delta)
      delta = ""
      if (part._tag === "ReasoningDelta") {
        reasoning += part.delta
        continue
      }
      out += this.reasoning(reasoning) + this.part(part)
      reasoning = ""
    }
    return out + this.reasoning(reasoning) + this.delta(delta)
  }

  /** Sends one error if there is no result. */
  failed(code: TurnFailure["_tag"]): string {
    if (this.hasEnded || this.hasFailed) return ""
    this.hasFailed = true
    return frame({ type: "error", errorText: code })
  }

  /** A turn that ended without a result has failed. */
  close(): string {
    return this.failed("TURN_FAILED") + done
  }

  private delta(delta: string): string {
    if (delta === "") return ""
    const start =
      this.endReasoning() +
      (this.inText ? "" : this.step(true) + `data: {"type":"text-start","id":"txt_${++this.textCount}"}\n\n`)
    this.inText = true
    return `${start}data: {"type":"text-delta","id":"txt_${this.textCount}","delta":${JSON.stringify(delta)}}\n\n`
  }

  /** Text and step frames are the same with and without reasoning, which resuming requires (http/Resume). */
  private reasoning(delta: string): string {
    if (delta === "") return ""
    const start = this.inReasoning
      ? ""
      : frame({ type: "reasoning-start", id: `rsn_${++this.reasoningCount}` })
    this.inReasoning = true
    return start + frame({ type: "reasoning-delta", id: `rsn_${this.reasoningCount}`, delta })
  }

  private endReasoning(): string {
    if (!this.inReasoning) return ""
    this.inReasoning = false
    return frame({ type: "reasoning-end", id: `rsn_${this.reasoningCount}` })
  }

  private endText(): string {
    if (!this.inText) return ""
    this.inText = false
    return `data: {"type":"text-end","id":"txt_${this.textCount}"}\n\n`
  }

  private step(open: boolean): string {
    if (this.inStep === open) return ""
    this.inStep = open
    return (
      this.endReasoning() +
      (open ? 'data: {"type":"start-step"}\n\n' : this.endText() + 'data: {"type":"finish-step"}\n\n')
    )
  }

  private part(part: Exclude<TurnPart, { readonly _tag: "TextDelta" | "ReasoningDelta" }>): string {
    switch (part._tag) {
      case "RunEvent":
        return runEventFrame(this.full ? part.event : redactedForEndUser(part.event))
      case "StepStart":
        return this.step(false) + this.step(true)
      case "StepEnd":
        return this.step(false)
      case "Citation":
        // Within the text, which continues afterwards.
        return sourceFrame(part.citation)
      case "ToolCall":
        return this.endReasoning() + this.endText() + this.toolCall(part.id, part.name, part.input)
      case "ToolProgress":
        return this.full
          ? this.toolOutput(part.id, {
              type: "tool-output-available",
              output: { progress: part.text },
              preliminary: true
            })
          : ""
      case "ToolResult":
        return this.toolOutput(part.id, {
          type: "tool-output-available",
          output: this.full ? (part.output ?? null) : {}
        })
      case "ToolFailure":
        return this.toolOutput(part.id, {
          type: "tool-output-error",
          errorText: this.full ? part.message : "The tool did not answer."
        })
      case "Done":
        this.hasEnded = true
        return this.endReasoning() + this.step(false) + doneFrames(part.result)
    }
  }

  private toolCall(toolCallId: string, toolName: string, input: unknown) {
    const shown = this.full ? (input ?? {}) : {}
    return frame({ type: "tool-input-available", toolCallId, toolName, input: shown, dynamic: true })
  }

  private toolOutput(
    toolCallId: string,
    { type, ...outcome }: { readonly type: string; readonly [key: string]: unknown }
  ) {
    return frame({ type, toolCallId, ...outcome, dynamic: true })
  }
}

/** True when the client requests heartbeats as parts: `x-spoke-heartbeat: data`. */
export const wantsHeartbeatParts = (headers: Readonly<Record<string, unknown>>): boolean =>
  headers["x-spoke-heartbeat"] === "data"

/** The bytes of the stream. `full` as in {@link response}, `heartbeatParts` as in {@link wantsHeartbeatParts}. */
export const body = (
  parts: Stream.Stream<TurnPart, TurnFailure>,
  full: boolean,
  heartbeatParts = false
): Stream.Stream<Uint8Array> =>
  EventStream.bytes(parts, () => new UiMessageWriter(full, heartbeatParts ? heartbeat : keepAliveComment))

const optionalHeader = (name: string, value: string | null): Readonly<Record<string, string>> =>
  value === null ? {} : { [name]: value }

const headersOf = ({ endUserId, runId }: RunningTurn) => ({
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
  "x-vercel-ai-ui-message-stream": "v1",
  ...optionalHeader("x-run-id", runId),
  ...optionalHeader("x-end-user-id", endUserId)
})

/**
 * The response that streams `turn`. A client that stops reading does not affect the turn. `full` includes what
 * operators may see: payloads of events, input and output of tools. `after` leaves out what a client has already
 * counted (http/Resume); `headers` are those of the request.
 */
export const response = (
  turn: RunningTurn,
  full: boolean,
  headers: Readonly<Record<string, unknown>>,
  after = 0
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(Resume.skip(body(turn.parts, full, wantsHeartbeatParts(headers)), after), {
    contentType: "text/event-stream",
    headers: headersOf(turn)
  })
