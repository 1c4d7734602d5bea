/** One streamed request to a provider: status, time-outs, events, and an end that is a finish or a failure. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import {
  type ModelError,
  type ModelPart,
  type ModelRequest,
  ModelRuntime,
  type ModelRuntimeService
} from "../ModelRuntime.ts"
import { type Answered, StreamingPost, type StreamingPostService } from "../StreamingPost.ts"
import { readableBy, refusal } from "./Attachments.ts"
import { type Decoder, partsOf } from "./ProviderAnswer.ts"
import { keyHeaders, type ProviderApi } from "./ProviderApi.ts"
import * as Failure from "./ProviderFailure.ts"

export interface ProviderOptions {
  readonly apiKey: Redacted.Redacted
  /** Determines the header of the key; default: `Bearer`. */
  readonly api?: ProviderApi
  /** For Azure OpenAI's dated API, which has the model in its path, for example `2024-10-21`. */
  readonly apiVersion?: string | undefined
  /** For example `https://api.openai.com/v1`. */
  readonly baseUrl: string
  /** The model of agents that name none. */
  readonly defaultModel: string
  /** Maximum number of tokens of prompt and reply together; default: 128,000. */
  readonly contextWindow?: number
  /** Time-out until the first byte of an answer; default: one minute. */
  readonly responseTimeout?: Duration.DurationInput
  /** Time-out between two pieces of an answer; default: that of `responseTimeout`. */
  readonly idleTimeout?: Duration.DurationInput
}

export const defaultContextWindow = 128_000
const defaultTimeout = Duration.minutes(1)

/** Maximum number of bytes of an error body that are searched for its code. */
const maxErrorBodyBytes = 16 * 1024
/** Time-out for reading an error body. */
const errorBodyTimeout = Duration.seconds(1)

const readErrorBody = ({ read }: Answered): Effect.Effect<string> =>
  Effect.gen(function* () {
    const decoder = new TextDecoder()
    let text = ""
    for (let receivedBytes = 0; receivedBytes < maxErrorBodyBytes;) {
      const chunks = yield* read
      if (chunks === null) break
      for (const bytes of chunks) {
        receivedBytes += bytes.length
        text += decoder.decode(bytes, { stream: true })
      }
    }
    return text
  }).pipe(
    Effect.timeoutTo({ duration: errorBodyTimeout, onSuccess: (text) => text, onTimeout: () => "" }),
    Effect.orElseSucceed(() => "")
  )

const failWithStatus = (answer: Answered) =>
  Effect.gen(function* () {
    const body = yield* readErrorBody(answer)
    const now = yield* Clock.currentTimeMillis
    return yield* Failure.fromStatus(answer.status, answer.headers, body, now)
  })

const isEventStream = ({ headers }: Answered) =>
  /^\s*text\/event-stream\b/i.test(headers["content-type"] ?? "")

/**
 * Posts `body` to `path` and returns the parts that `decoder` reads from the answer. Interruption aborts the request.
 */
export const parts = (
  exchange: StreamingPostService,
  options: ProviderOptions,
  path: string,
  body: object,
  decoder: Decoder
): Stream.Stream<ModelPart, ModelError> => {
  const { responseTimeout = defaultTimeout, idleTimeout = responseTimeout } = options
  const request = {
    url: `${options.baseUrl.replace(/\/+$/, "")}${path}`,
    headers: {
      ...keyHeaders(options.api ?? "chat-completions", options.apiKey),
      accept: "text/event-stream"
    },
    body: JSON.stringify(body),
    first: Duration.decode(responseTimeout),
    next: Duration.decode(idleTimeout)
  }
  return exchange.post(request).pipe(
    Effect.mapError((error) => Failure.fromTransport(error, false)),
    Effect.flatMap((answered): Effect.Effect<Stream.Stream<ModelPart, ModelError>, ModelError> => {
      if (answered.status !== 200) return failWithStatus(answered)
      if (!isEventStream(answered)) return Effect.fail(Failure.malformed("it is not an event stream"))
      return Effect.succeed(partsOf(answered, decoder))
    }),
    Stream.unwrapScoped
  )
}

/** A runtime for one API of providers. A prompt with a file that `accepts` rejects is refused without a request. */
export const makeRuntimeLayer = (
  options: ProviderOptions,
  accepts: Parameters<typeof refusal>[1],
  reply: (exchange: StreamingPostService, request: ModelRequest) => Stream.Stream<ModelPart, ModelError>
) =>
  Layer.effect(
    ModelRuntime,
    Effect.map(StreamingPost, (exchange): ModelRuntimeService => ({
      defaultModel: options.defaultModel,
      contextWindow: options.contextWindow ?? defaultContextWindow,
      readsPassages: false,
      acceptsImages: true,
      readable: (model) => readableBy(model ?? options.defaultModel),
      reply: (request) =>
        Stream.suspend(() => {
          const refused = refusal(request.prompt, accepts)
          return refused === null ? reply(exchange, request) : Stream.fail(refused)
        })
    }))
  )
