/** HTTP requests of registered readers: pauses as a service asks for them, retries, and errors for users. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { OutboundHttp, type OutboundResponse } from "../../capabilities/OutboundHttp.ts"
import { ReaderError, permanentError } from "../../capabilities/SourceReaders.ts"
import { retryAfter } from "../../domain/RetryAfter.ts"
import { HostLimiter } from "../HostLimiter.ts"
import { MiB } from "../../domain/Bytes.ts"
import { fetchError } from "../Fetch.ts"

/** Maximum attempts of one request, including the first. Then the step fails, and the job repeats it later. */
const maxTries = 5
const firstPause = Duration.seconds(1)
/** Upper bound of the pause that a service may ask for. */
const maxPause = Duration.minutes(2)

export interface ConnectorRequest {
  /** Name of the service in messages: "The feed", "Zendesk". */
  readonly service: string
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** A body makes it a POST of JSON. */
  readonly json?: unknown
  readonly method?: string
  readonly body?: string
  /** Maximum size of the answer in bytes; default: 20 MiB. */
  readonly maxBytes?: number
  /** Statuses besides 2xx that are returned; any other is an error. */
  readonly acceptedStatuses?: ReadonlyArray<number>
}

const isTransient = (status: number) => status === 408 || status === 425 || status === 429 || status >= 500

const fewerRequests = " It asks for fewer requests."

const advice: Readonly<Record<number, string>> = {
  400: " Check the source's settings.",
  404: " Check the address, and that the token may read it.",
  429: fewerRequests
}

/** GitHub and Gitea report an exhausted rate limit with 403. */
const isLimit = ({ headers, status }: OutboundResponse) =>
  status === 403 && (headers["x-ratelimit-remaining"]?.trim() === "0" || headers["retry-after"] !== undefined)

/** The pause that a service asks for: `retry-after`, else the Unix time at which its rate limit is reset. */
const pauseOf = ({ headers, status }: OutboundResponse, now: number): Option.Option<Duration.Duration> => {
  const requestedDelay = retryAfter(headers, now)
  if (Option.isSome(requestedDelay) || (status !== 403 && status !== 429)) return requestedDelay
  const reset = (headers["x-ratelimit-reset"] ?? headers["ratelimit-reset"] ?? "").trim()
  return /^\d{9,11}$/u.test(reset)
    ? Option.some(Duration.millis(Math.max(0, Number(reset) * 1_000 - now)))
    : Option.none()
}

const refusal = ({ service, headers }: ConnectorRequest, response: OutboundResponse, now: number) => {
  const { status } = response
  const isLimited = isLimit(response)
  if (status === 401 || (status === 403 && !isLimited)) {
    const reason =
      headers?.["authorization"] === undefined && headers?.["private-token"] === undefined
        ? "It asks for a login: give the source a token."
        : "The token is not valid any more, or may not read this. Give the source a new one and sync again."
    return permanentError("unauthorized", `${service} answered ${status}. ${reason}`)
  }
  const retryable = isLimited || isTransient(status)
  const pause = retryable ? Option.getOrUndefined(pauseOf(response, now)) : undefined
  return new ReaderError({
    code: `status_${status}`,
    message: `${service} answered ${status}.${isLimited ? fewerRequests : (advice[status] ?? "")}`,
    retryable,
    ...(pause === undefined ? {} : { retryAfter: pause })
  })
}

const sendOnce = (given: ConnectorRequest) =>
  Effect.gen(function* () {
    const http = yield* OutboundHttp
    const hosts = yield* HostLimiter
    const { acceptedStatuses = [], headers = {}, json, maxBytes = 20 * MiB, service, url, ...rest } = given
    const host = yield* Effect.try({
      try: () => new URL(url).host,
      catch: () => permanentError("fetch_invalid_url", `${service} has no valid address.`)
    })
    const options =
      json === undefined
        ? { headers, ...rest }
        : {
            method: "POST",
            headers: { ...headers, "content-type": "application/json" },
            body: JSON.stringify(json)
          }
    const response = yield* hosts
      .withHostPermit(host, http.fetch({ url, maxBytes, ...options }))
      .pipe(Effect.mapError(fetchError))
    const isAnswer =
      (response.status >= 200 && response.status < 300) || acceptedStatuses.includes(response.status)
    return isAnswer ? response : yield* refusal(given, response, yield* Clock.currentTimeMillis)
  })

/** A response with 2xx, or one of `acceptedStatuses`. Waits and retries if the service is overloaded or unavailable. */
export const request = (
  given: ConnectorRequest
): Effect.Effect<OutboundResponse, ReaderError, OutboundHttp> => {
  const attempt = (tries: number): Effect.Effect<OutboundResponse, ReaderError, OutboundHttp> =>
    Effect.catchIf(
      sendOnce(given),
      ({ retryable }) => retryable && tries < maxTries,
      (error) =>
        Effect.zipRight(
          Effect.sleep(
            Duration.min(error.retryAfter ?? Duration.times(firstPause, 2 ** (tries - 1)), maxPause)
          ),
          attempt(tries + 1)
        )
    )
  return Effect.withSpan(attempt(1), "Connector.request", { attributes: { service: given.service } })
}

/** An answer that cannot be decoded. */
export const unexpectedAnswer = (service: string) =>
  new ReaderError({
    code: "unexpected_answer",
    message: `${service} answered with something else than expected. Check the source's settings.`,
    retryable: true
  })

/** {@link request}, with JSON decoded by `schema`. */
export const requestJson = <A, I>(given: ConnectorRequest, schema: Schema.Schema<A, I>) => {
  const decode = Schema.decode(Schema.parseJson(schema))
  return Effect.flatMap(
    request({ ...given, headers: { accept: "application/json", ...given.headers } }),
    (response) =>
      Effect.mapError(decode(new TextDecoder().decode(response.body)), () => unexpectedAnswer(given.service))
  )
}

/** The URL of `path` at the origin of an address that a person entered; without credentials. */
export const urlAt = (address: string, path: string): string => new URL(path, new URL(address).origin).href
