/**
 * The HTTP client for a telemetry collector, with time-outs and a bounded number of requests. Transient failures are
 * retried. After repeated failures it backs off with growing pauses, and drops what is sent meanwhile. It never fails:
 * the exporters of `@effect/opentelemetry` discard a whole minute of data when one batch fails.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import type * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"

const requestTimeout = Duration.seconds(5)
/** Batches in flight or waiting for a retry; further ones are dropped. */
const maxBatches = 4
const retries = { schedule: Schedule.exponential("1 second"), times: 2 }
/** Back-off after a lost batch, in milliseconds. */
const backoff = { first: Duration.toMillis("2 seconds"), max: Duration.toMillis("30 seconds") }
const logInterval = Duration.toMillis("1 minute")

/** Statuses that refuse only this batch. The collector itself works. */
const batchRefusalStatuses = new Set([400, 413, 415, 422])
const isTransientStatus = (status: number) => status === 408 || status === 429 || status >= 500

const isTransientError = (error: HttpClientError.HttpClientError): boolean =>
  error._tag === "RequestError" ? error.reason === "Transport" : isTransientStatus(error.response.status)

const make = (inner: HttpClient.HttpClient) => {
  const permits = Effect.unsafeMakeSemaphore(maxBatches)
  let loggedAt = Number.NEGATIVE_INFINITY
  let pauseMillis = 0
  let pausedUntil = Number.NEGATIVE_INFINITY

  /** Logs a loss, at most once a minute. */
  const logLoss = (request: HttpClientRequest.HttpClientRequest) =>
    Effect.gen(function* () {
      const now = yield* monotonicMillis
      if (now - loggedAt >= logInterval) {
        loggedAt = now
        yield* Effect.logWarning("The telemetry collector does not accept data; some is lost")
      }
      return HttpClientResponse.fromWeb(request, new Response(null, { status: 204 }))
    })

  const backOff = Effect.map(monotonicMillis, (now) => {
    pauseMillis = Math.min(backoff.max, Math.max(backoff.first, pauseMillis * 2))
    pausedUntil = now + pauseMillis
  })

  return HttpClient.transform(inner, (response, request) => {
    const noAnswerError = () =>
      new HttpClientError.RequestError({ request, reason: "Transport", description: "No answer" })
    const attempt = response.pipe(
      Effect.timeoutFail({ duration: requestTimeout, onTimeout: noAnswerError }),
      Effect.filterOrFail(
        ({ status }) => status < 400,
        (answer): HttpClientError.ResponseError =>
          new HttpClientError.ResponseError({ request, response: answer, reason: "StatusCode" })
      )
    )
    const send = attempt.pipe(
      Effect.retry({ ...retries, while: isTransientError }),
      Effect.tap(() => {
        pauseMillis = 0
      }),
      Effect.catchAll((error) => {
        const isBatchRefused =
          error._tag === "ResponseError" && batchRefusalStatuses.has(error.response.status)
        return Effect.zipRight(isBatchRefused ? Effect.void : backOff, logLoss(request))
      })
    )
    return Effect.flatMap(monotonicMillis, (now) =>
      now < pausedUntil
        ? logLoss(request)
        : Effect.flatMap(
            permits.withPermitsIfAvailable(1)(send),
            Option.match({
              onNone: () => logLoss(request),
              onSome: Effect.succeed
            })
          )
    )
  })
}

/** Wraps any client. */
export const layer = Layer.effect(HttpClient.HttpClient, Effect.map(HttpClient.HttpClient, make))
