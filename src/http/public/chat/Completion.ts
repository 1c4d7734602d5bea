/** Converts OpenAI's chat completion to a turn, and the turn's parts to a completion or its stream. */
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Json from "../../../domain/Json.ts"
import type { AgentScope } from "../../../domain/accounts/Access.ts"
import type {
  SpokeFields,
  Completion,
  CompletionMessage,
  CompletionRequest,
  CompletionUsage,
  FinishReason
} from "../../../domain/chat/ChatCompletion.ts"
import {
  type ChatTurnResult,
  StreamTurnRequest,
  type TurnFailure,
  type TurnPart
} from "../../../domain/chat/ChatTurn.ts"
import { NotFound, TurnFailed } from "../../../domain/Errors.ts"
import type { RunId } from "../../../domain/Ids.ts"
import { sanitize } from "../../../domain/Text.ts"
import type { HistoryMessage } from "../../../usecases/chat/TurnOptions.ts"
import { keepAliveComment, type FrameWriter } from "../../EventStream.ts"
import * as Issues from "../../server/Issues.ts"
import * as OpenAiError from "../../OpenAiError.ts"

const textOf = ({ content }: CompletionMessage): string =>
  typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("")

const decodeTurn = Json.decodeUnknown(StreamTurnRequest)

/** Field names of the completion, by the field names of a turn. */
const completionFields = {
  message: "messages",
  externalEndUserId: "user",
  conversationId: "metadata",
  context: "messages",
  responseSchema: "response_format"
}

const isRenamedField = (name: unknown): name is keyof typeof completionFields =>
  typeof name === "string" && Object.hasOwn(completionFields, name)

/** The turn for `request`. A system message becomes context: the agent's instructions stay those of its owner. */
export const turnOf = Effect.fn("Completion.turnOf")(function* (
  { agentId }: AgentScope,
  { messages, metadata, model, response_format: format, store, user }: CompletionRequest
) {
  if (model !== agentId) {
    return yield* new NotFound({
      message: `The key has no such model. Its agent is the model ${agentId}.`,
      details: { param: "model" }
    })
  }
  const lastUserIndex = messages.findLastIndex(({ role }) => role === "user")
  const lastUserMessage = messages[lastUserIndex]
  const system = messages.filter(({ role }) => role === "system" || role === "developer").map(textOf)
  const history = messages
    .slice(0, Math.max(0, lastUserIndex))
    .flatMap((message): ReadonlyArray<HistoryMessage> => {
      const content = sanitize(textOf(message))
      if (content === "" || (message.role !== "user" && message.role !== "assistant")) return []
      return [{ role: message.role, content }]
    })
  const conversationId = metadata?.["conversationId"]
  const continues = conversationId !== undefined
  const persist = continues || store === true
  const fields = {
    message: lastUserMessage === undefined ? "" : textOf(lastUserMessage),
    persist,
    ...(continues ? { conversationId } : {}),
    ...(persist && !continues && typeof user === "string" ? { externalEndUserId: user } : {}),
    ...(format?.type === "json_schema" ? { responseSchema: format.json_schema?.schema ?? {} } : {}),
    ...(system.length === 0 ? {} : { context: { system: system.join("\n\n") } })
  }
  const request = yield* Effect.catchTag(decodeTurn(fields), "ParseError", (error) =>
    Effect.flatMap(HttpApiDecodeError.fromParseError(error), ({ issues, ...rest }) =>
      Effect.fail(
        Issues.toError({
          ...rest,
          issues: issues.map((issue) => {
            const [field, ...inner] = issue.path
            return isRenamedField(field) ? { ...issue, path: [completionFields[field], ...inner] } : issue
          })
        })
      )
    )
  )
  return { request, history }
})

/** Collects what the parts of a turn contain in addition to text. */
class OutcomeCollector {
  private input = 0
  private output = 0
  result: ChatTurnResult | null = null
  finishReason: FinishReason = "stop"

  add(part: TurnPart): void {
    if (part._tag === "Done") this.result = part.result
    if (part._tag !== "RunEvent" || part.event.type !== "model.completed") return
    // The last event has the tokens of the whole run.
    const { inputTokens, outputTokens, reason } = part.event.payload ?? {}
    this.input = typeof inputTokens === "number" ? inputTokens : 0
    this.output = typeof outputTokens === "number" ? outputTokens : 0
    this.finishReason =
      reason === "length" ? "length" : reason === "content-filter" ? "content_filter" : "stop"
  }

  get usage(): CompletionUsage {
    return {
      prompt_tokens: this.input,
      completion_tokens: this.output,
      total_tokens: this.input + this.output
    }
  }
}

interface StartedTurn {
  readonly runId: RunId | null
  readonly parts: Stream.Stream<TurnPart, TurnFailure>
}

const extensionFields = (
  runId: RunId | null,
  { citations, conversationId }: ChatTurnResult
): SpokeFields => ({
  runId,
  ...(conversationId === undefined ? {} : { conversationId }),
  citations
})

interface Head {
  readonly id: string
  readonly created: number
  readonly model: string
}

/** The first fields of every object of one response. `requestId` is its id when there is no run. */
export const head = (model: string, runId: RunId | null, requestId: string): Effect.Effect<Head> =>
  Effect.map(Clock.currentTimeMillis, (now) => ({
    id: `chatcmpl-${runId ?? requestId}`,
    created: Math.floor(now / 1_000),
    model
  }))

/** The complete response. */
export const complete = Effect.fn("Completion.complete")(function* (head: Head, turn: StartedTurn) {
  const outcome = new OutcomeCollector()
  yield* Stream.runForEach(turn.parts, (part) => Effect.sync(() => outcome.add(part)))
  const { finishReason, result, usage } = outcome
  if (result === null) return yield* new TurnFailed({ message: "The chat runtime failed." })
  const completion: Completion = {
    ...head,
    object: "chat.completion",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: result.reply, refusal: null },
        logprobs: null,
        finish_reason: finishReason
      }
    ],
    usage,
    spoke: extensionFields(turn.runId, result)
  }
  return completion
})

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`

/** The frames of `chat.completion.chunk` objects. `includeUsage` is `stream_options.include_usage`. */
export class ChunkWriter implements FrameWriter {
  readonly keepAlive = keepAliveComment
  private readonly head: Head
  private readonly runId: RunId | null
  private readonly includeUsage: boolean
  private readonly outcome = new OutcomeCollector()
  private hasEnded = false

  constructor(head: Head, runId: RunId | null, includeUsage: boolean) {
    this.head = head
    this.runId = runId
    this.includeUsage = includeUsage
  }

  get opening(): string {
    return this.choice({ role: "assistant", content: "" })
  }

  frames(parts: Iterable<TurnPart>): string {
    let frames = ""
    let delta = ""
    let reasoning = ""
    const flush = () => {
      if (reasoning !== "") frames += this.choice({ reasoning_content: reasoning })
      if (delta !== "") frames += this.choice({ content: delta })
      delta = reasoning = ""
    }
    for (const part of parts) {
      if (part._tag === "TextDelta") delta += part.delta
      else if (part._tag === "ReasoningDelta") {
        if (delta !== "") flush()
        reasoning += part.delta
      } else this.outcome.add(part)
    }
    flush()
    const { result } = this.outcome
    return result === null || this.hasEnded ? frames : frames + this.finished(result)
  }

  failed(code: TurnFailure["_tag"]): string {
    if (this.hasEnded) return ""
    this.hasEnded = true
    return data({ error: OpenAiError.streamError(code) })
  }

  close(): string {
    return `${this.failed("TURN_FAILED")}data: [DONE]\n\n`
  }

  private finished(result: ChatTurnResult): string {
    this.hasEnded = true
    const end = this.choice({}, this.outcome.finishReason, { spoke: extensionFields(this.runId, result) })
    return this.includeUsage ? end + this.chunk({ choices: [], usage: this.outcome.usage }) : end
  }

  private choice(delta: object, finishReason: FinishReason | null = null, more: object = {}): string {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finishReason }]
    return this.chunk({ choices, ...(this.includeUsage ? { usage: null } : {}), ...more })
  }

  private chunk(rest: object): string {
    return data({ ...this.head, object: "chat.completion.chunk", ...rest })
  }
}
