/** Converts OpenAI's chat completion to a turn, and the turn's parts to a completion or its stream. */
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { AgentScope } from "../../../domain/accounts/Access.ts"
import type {
  SpokeFields,
  Completion,
  CompletionMessage,
  CompletionRequest,
  CompletionUsage,
  FinishReason
} from "../../../domain/chat/ChatCompletion.ts"
import { type ChatTurnResult, StreamTurnRequest, type TurnPart } from "../../../domain/chat/ChatTurn.ts"
import { NotFound, TurnFailed } from "../../../domain/Errors.ts"
import type { RunId } from "../../../domain/Ids.ts"
import { sanitize } from "../../../domain/Text.ts"
import type { HistoryMessage } from "../../../usecases/chat/TurnOptions.ts"
import { comment, type Failure, type Frames } from "../../EventStream.ts"
import * as Issues from "../../server/Issues.ts"
import * as OpenAiError from "../../OpenAiError.ts"

const textOf = ({ content }: CompletionMessage): string =>
  typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("")

const decodeTurn = Schema.decodeUnknown(StreamTurnRequest, { errors: "all" })

/** Field names of the completion, by the field names of a turn. */
const renamed = {
  message: "messages",
  externalEndUserId: "user",
  conversationId: "metadata",
  context: "messages",
  responseSchema: "response_format"
}

const isRenamed = (name: unknown): name is keyof typeof renamed =>
  typeof name === "string" && Object.hasOwn(renamed, name)

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
  const place = messages.findLastIndex(({ role }) => role === "user")
  const asked = messages[place]
  const system = messages.filter(({ role }) => role === "system" || role === "developer").map(textOf)
  const history = messages.slice(0, Math.max(0, place)).flatMap((message): ReadonlyArray<HistoryMessage> => {
    const content = sanitize(textOf(message))
    if (content === "" || (message.role !== "user" && message.role !== "assistant")) return []
    return [{ role: message.role, content }]
  })
  const conversationId = metadata?.["conversationId"]
  const continues = conversationId !== undefined
  const persist = continues || store === true
  const fields = {
    message: asked === undefined ? "" : textOf(asked),
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
            return isRenamed(field) ? { ...issue, path: [renamed[field], ...inner] } : issue
          })
        })
      )
    )
  )
  return { request, history }
})

/** Collects what the parts of a turn contain in addition to text. */
class Tally {
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

interface Answering {
  readonly runId: RunId | null
  readonly parts: Stream.Stream<TurnPart, Failure>
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
export const complete = Effect.fn("Completion.complete")(function* (head: Head, turn: Answering) {
  const tally = new Tally()
  yield* Stream.runForEach(turn.parts, (part) => Effect.sync(() => tally.add(part)))
  const { finishReason, result, usage } = tally
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
export class Chunks implements Frames {
  readonly keepAlive = comment
  private readonly head: Head
  private readonly runId: RunId | null
  private readonly includeUsage: boolean
  private readonly tally = new Tally()
  private over = false

  constructor(head: Head, runId: RunId | null, includeUsage: boolean) {
    this.head = head
    this.runId = runId
    this.includeUsage = includeUsage
  }

  get opening(): string {
    return this.choice({ role: "assistant", content: "" })
  }

  frames(parts: Iterable<TurnPart>): string {
    let said = ""
    let delta = ""
    let thought = ""
    const flush = () => {
      if (thought !== "") said += this.choice({ reasoning_content: thought })
      if (delta !== "") said += this.choice({ content: delta })
      delta = thought = ""
    }
    for (const part of parts) {
      if (part._tag === "TextDelta") delta += part.delta
      else if (part._tag === "ReasoningDelta") {
        if (delta !== "") flush()
        thought += part.delta
      } else this.tally.add(part)
    }
    flush()
    const { result } = this.tally
    return result === null || this.over ? said : said + this.finished(result)
  }

  failed(code: Failure["_tag"]): string {
    if (this.over) return ""
    this.over = true
    return data({ error: OpenAiError.streamed(code) })
  }

  close(): string {
    return `${this.failed("TURN_FAILED")}data: [DONE]\n\n`
  }

  private finished(result: ChatTurnResult): string {
    this.over = true
    const end = this.choice({}, this.tally.finishReason, { spoke: extensionFields(this.runId, result) })
    return this.includeUsage ? end + this.chunk({ choices: [], usage: this.tally.usage }) : end
  }

  private choice(delta: object, finishReason: FinishReason | null = null, more: object = {}): string {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finishReason }]
    return this.chunk({ choices, ...(this.includeUsage ? { usage: null } : {}), ...more })
  }

  private chunk(rest: object): string {
    return data({ ...this.head, object: "chat.completion.chunk", ...rest })
  }
}
