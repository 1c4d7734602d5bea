/** Asks the agent one question after another, and waits as long as the service requests. */
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Citation, type NoReply, type Reply } from "../../../domain/agents/evaluation/Judge.ts"
import type { TestCaseFields } from "../../../domain/agents/TestCase.ts"
import { retryAfter } from "../../../domain/RetryAfter.ts"
import { CommandFailed, refused } from "../Connection.ts"

/** Sends a request to `/v1`. Fails when there is no response. */
export type Send = (
  request: HttpClientRequest.HttpClientRequest
) => Effect.Effect<HttpClientResponse.HttpClientResponse, CommandFailed>

/** Longest time that a question is retried while the service is busy. Then the case fails. */
const maxBusyTime = Duration.minutes(10)
/** Pause when the service does not request one. */
const defaultPause = Duration.seconds(1)

const Frame = Schema.parseJson(
  Schema.Union(
    Schema.Struct({ type: Schema.Literal("error"), errorText: Schema.String }),
    Schema.Struct({
      type: Schema.Literal("data-agent-run-event"),
      data: Schema.Struct({
        type: Schema.Literal("model.completed"),
        payload: Schema.Struct({ inputTokens: Schema.Number, outputTokens: Schema.Number })
      })
    }),
    Schema.Struct({
      type: Schema.Literal("data-agent-run-event"),
      data: Schema.Struct({
        type: Schema.Literal("model.completed"),
        payload: Schema.Struct({ problem: Schema.String })
      })
    }),
    Schema.Struct({
      type: Schema.Literal("data-done"),
      data: Schema.Struct({
        result: Schema.Struct({ reply: Schema.String, citations: Schema.Array(Citation) })
      })
    }),
    Schema.Struct({ type: Schema.String })
  )
)

const Problem = Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String }) })

const cutOff: NoReply = { error: "the reply was cut off" }

/** The state of a stream so far. */
interface StreamState {
  readonly reply: Reply | NoReply
  /** Why the reply cannot be used: it does not fit the schema. */
  readonly problem: string | null
  readonly tokens: Reply["tokens"]
}

/** Token counts come before the reply is complete, once per round with the model. */
const withFrame = (state: StreamState, frame: typeof Frame.Type, latency: number): StreamState => {
  if ("errorText" in frame) {
    const { errorText: code } = frame
    return { ...state, reply: { error: state.problem === null ? code : `${code}: ${state.problem}` } }
  }
  if (!("data" in frame)) return state
  if ("payload" in frame.data) {
    const { payload } = frame.data
    if ("problem" in payload) return { ...state, problem: payload.problem }
    const { inputTokens: input, outputTokens: output } = payload
    const before = state.tokens ?? { input: 0, output: 0 }
    return { ...state, tokens: { input: before.input + input, output: before.output + output } }
  }
  const { citations, reply: text } = frame.data.result
  return { ...state, reply: { text, citations, latency, tokens: state.tokens } }
}

/** Reads the stream of a turn to its end. */
const readReply = (response: HttpClientResponse.HttpClientResponse, started: number) =>
  response.stream.pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.filter((line) => line.startsWith("data: {")),
    Stream.mapEffect((line) => Schema.decode(Frame)(line.slice("data: ".length))),
    Stream.runFoldEffect<StreamState, typeof Frame.Type, never, never>(
      { reply: cutOff, problem: null, tokens: null },
      (state, frame) => Effect.map(Clock.currentTimeMillis, (now) => withFrame(state, frame, now - started))
    ),
    Effect.map(({ reply }) => reply),
    Effect.catchTags({
      ParseError: () => Effect.succeed<NoReply>({ error: "the stream has an unexpected form" }),
      ResponseError: () => Effect.succeed(cutOff)
    })
  )

/** Errors for which no other question would succeed. A used-up quota is a 429 too, but waiting does not help. */
const isFatal = (status: number, code: string): boolean =>
  status === 401 || status === 403 || status === 404 || code === "TURN_LIMIT_EXCEEDED"

/** A server without a language model answers 503 to a question with a schema, and waiting does not help. */
const isBusy = (status: number, code: string): boolean =>
  status === 429 || (status === 503 && code !== "NOT_CONFIGURED")

const codeOf = (response: HttpClientResponse.HttpClientResponse) =>
  response.json.pipe(
    Effect.flatMap(Schema.decodeUnknown(Problem)),
    Effect.map(({ error }) => error),
    Effect.orElseSucceed(() => ({ code: `status ${response.status}`, message: "" }))
  )

type Question = Pick<TestCaseFields, "question" | "responseSchema">

export interface AskOptions {
  /** Time-out of one attempt, from the request to the end of the reply. */
  readonly timeout: Duration.Duration
}

const unreachable = Option.some<NoReply>({ error: "the server could not be reached" })

/**
 * Makes the function that asks a question. When one question must wait, all others wait too. A server that never
 * answered ends the run.
 */
export const make = (send: Send, { timeout }: AskOptions) =>
  Effect.gen(function* () {
    const pausedUntil = yield* Ref.make(0)
    const hasAnswered = yield* Ref.make(false)

    const trySend = (request: HttpClientRequest.HttpClientRequest) =>
      send(request).pipe(
        Effect.tap(Ref.set(hasAnswered, true)),
        Effect.asSome,
        Effect.catchAll((failure) =>
          Effect.flatMap(Ref.get(hasAnswered), (answered) => (answered ? Effect.succeedNone : failure))
        )
      )

    const attempt = ({ question, responseSchema }: Question) =>
      Effect.gen(function* () {
        const until = yield* Ref.get(pausedUntil)
        const now = yield* Clock.currentTimeMillis
        if (until > now) yield* Effect.sleep(until - now)
        const started = yield* Clock.currentTimeMillis
        return yield* Effect.gen(function* () {
          const sent = yield* trySend(
            HttpClientRequest.post("/chat/stream").pipe(
              HttpClientRequest.bodyUnsafeJson({ message: question, persist: false, responseSchema })
            )
          )
          if (Option.isNone(sent)) return unreachable
          const response = sent.value
          const { status } = response
          if (status >= 200 && status < 300) return Option.some(yield* readReply(response, started))
          const { code, message } = yield* codeOf(response)
          if (isFatal(status, code)) return yield* refused(response)
          if (!isBusy(status, code))
            return Option.some<NoReply>({ error: message === "" ? code : `${code}: ${message}` })
          const at = yield* Clock.currentTimeMillis
          const pause = Option.getOrElse(retryAfter(response.headers, at), () => defaultPause)
          yield* Ref.update(pausedUntil, (before) => Math.max(before, at + Duration.toMillis(pause)))
          return Option.none<Reply | NoReply>()
        }).pipe(
          Effect.timeoutTo({
            duration: timeout,
            onSuccess: (reply) => reply,
            onTimeout: () => Option.some<NoReply>({ error: `no reply within ${Duration.format(timeout)}` })
          })
        )
      })

    return (question: Question): Effect.Effect<Reply | NoReply, CommandFailed> =>
      attempt(question).pipe(
        Effect.repeat({ until: Option.isSome }),
        Effect.map(Option.getOrElse((): NoReply => cutOff)),
        Effect.timeoutTo({
          duration: Duration.sum(maxBusyTime, timeout),
          onSuccess: (reply) => reply,
          onTimeout: (): NoReply => ({
            error: `the service was too busy for ${Duration.format(maxBusyTime)}`
          })
        })
      )
  })
