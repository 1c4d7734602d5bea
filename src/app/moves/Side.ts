/** The two installations of a move, as the command that drives it sees them. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { MoveRequest, removedOriginal } from "../../domain/accounts/TenantMove.ts"
import type { TenantId } from "../../domain/Ids.ts"
import type { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { serverAddress } from "../../domain/Address.ts"

/** A step was refused, or an installation does not answer. `message` is for the user of the command line. */
export class MoveFailed extends Schema.TaggedError<MoveFailed>()("MoveFailed", {
  message: Schema.String,
  /** `unreachable`: the installation does not answer. The others are those of `ArrivalRefused`. */
  reason: Schema.Literal("conflict", "differs", "order", "refused", "taken", "unreachable")
}) {}

export interface Side {
  /** For messages: `origin` or `destination`, with the address. */
  readonly name: string
  /** Asks for one of `MoveRequest`. */
  readonly ask: <A, I>(request: Schema.WithResult<A, I, never, never, never>) => Effect.Effect<A, MoveFailed>
  /** The bytes of an original; none when it was removed. */
  readonly original: (ref: ArtifactRef) => Effect.Effect<Option.Option<Uint8Array>, MoveFailed>
  readonly putOriginal: (ref: ArtifactRef, bytes: Uint8Array) => Effect.Effect<void, MoveFailed>
}

const requestTimeout = Duration.minutes(2)

/** Maximum time for which a request without an answer is retried: the installation may be restarting. */
const maxRetryTime = Duration.minutes(2)

const retrySchedule = Schedule.exponential("100 millis").pipe(
  Schedule.union(Schedule.spaced("2 seconds")),
  Schedule.upTo(maxRetryTime)
)

const Failure = Schema.Struct({
  error: Schema.Struct({
    code: Schema.String,
    message: Schema.String,
    details: Schema.optional(Schema.Struct({ reason: Schema.optional(Schema.String) }))
  })
})

const isReason = Schema.is(MoveFailed.fields.reason)

/** Statuses after which the same request may succeed: overload, a restart behind a proxy. */
const transientStatuses = new Set([429, 502, 503, 504])

/** The options of the command with the operator's tokens. */
const tokenOptions = {
  origin: "--operator-token-file (SPOKE_OPERATOR_TOKEN)",
  destination: "--to-token-file (SPOKE_TO_OPERATOR_TOKEN)"
} as const

/**
 * An installation over HTTP. Every request may be repeated, so one whose answer was lost is sent again. `report` is
 * called when the installation does not answer, once until it does.
 */
export const overHttp = (
  role: "destination" | "origin",
  tenantId: TenantId,
  url: string,
  token: Redacted.Redacted,
  report: (text: string) => Effect.Effect<void> = () => Effect.void
) =>
  Effect.map(HttpClient.HttpClient, (client): Side => {
    const base = serverAddress(url)
    const name = `${role} (${base})`
    const path = `${base}/api/operator/tenants/${encodeURIComponent(tenantId)}/move`
    const noAnswer = () =>
      new MoveFailed({
        reason: "unreachable",
        message: `The ${name} does not answer. Run the command again to continue.`
      })

    const refusedToken = new MoveFailed({
      reason: "refused",
      message: `The ${name} does not take the operator's token. Give its own with ${tokenOptions[role]}.`
    })

    const errorOf = (response: HttpClientResponse.HttpClientResponse) =>
      response.json.pipe(
        Effect.flatMap(Schema.decodeUnknown(Failure)),
        Effect.option,
        Effect.flatMap((failure) => {
          const error = Option.getOrUndefined(failure)?.error
          const reason = error?.details?.reason
          const message = `The ${name} says: ${error?.message ?? `status ${response.status}`}`
          return new MoveFailed({
            message,
            reason: transientStatuses.has(response.status)
              ? "unreachable"
              : isReason(reason)
                ? reason
                : "refused"
          })
        })
      )

    const refusal = (response: HttpClientResponse.HttpClientResponse) =>
      response.status === 401 ? refusedToken : errorOf(response)

    const send = (request: HttpClientRequest.HttpClientRequest) =>
      client.execute(HttpClientRequest.bearerToken(request, token)).pipe(
        Effect.mapError(noAnswer),
        Effect.filterOrElse(({ status }) => (status >= 200 && status < 300) || status === 404, refusal)
      )

    let isLost = false
    const setLost = (lost: boolean) =>
      Effect.suspend(() => {
        const isNew = lost && !isLost
        isLost = lost
        return isNew ? report(`the ${name} does not answer; trying again for two minutes`) : Effect.void
      })

    /** Each attempt has a time-out, its body included. */
    const withRetries = <A>(one: Effect.Effect<A, MoveFailed>) =>
      Effect.timeoutFail(one, { duration: requestTimeout, onTimeout: noAnswer }).pipe(
        Effect.tapBoth({
          onFailure: ({ reason }) => setLost(reason === "unreachable"),
          onSuccess: () => setLost(false)
        }),
        Effect.retry({ while: ({ reason }) => reason === "unreachable", schedule: retrySchedule })
      )

    const failIfMissing = (response: HttpClientResponse.HttpClientResponse) =>
      response.status === 404 ? refusal(response) : Effect.succeed(response)

    /** None if it was removed. A proxy answers 404, too, while the installation behind it restarts. */
    const missingOriginal = (response: HttpClientResponse.HttpClientResponse) =>
      response.json.pipe(
        Effect.flatMap(Schema.decodeUnknown(Failure)),
        Effect.mapError(noAnswer),
        Effect.flatMap(({ error }) =>
          error.details?.reason === removedOriginal
            ? Effect.succeed(Option.none<Uint8Array>())
            : new MoveFailed({ reason: "refused", message: `The ${name} says: ${error.message}` })
        )
      )

    const ask: Side["ask"] = (request) =>
      Effect.gen(function* () {
        const encoded = yield* Effect.orDie(Schema.encodeUnknown(MoveRequest)(request))
        const response = yield* send(
          HttpClientRequest.bodyUnsafeJson(HttpClientRequest.post(path), encoded)
        ).pipe(Effect.flatMap(failIfMissing))
        const body = yield* Effect.mapError(response.json, noAnswer)
        return yield* Schema.decodeUnknown(Schema.Struct({ data: Schema.successSchema(request) }))(body).pipe(
          Effect.map(({ data }) => data),
          Effect.mapError(
            () =>
              new MoveFailed({
                reason: "refused",
                message: `The answer of the ${name} has an unexpected form. Do both run the same version?`
              })
          )
        )
      }).pipe(withRetries)

    const originalUrl = (ref: ArtifactRef) => `${path}/originals/${encodeURIComponent(ref)}`
    return {
      name,
      ask,
      original: (ref) =>
        send(HttpClientRequest.get(originalUrl(ref))).pipe(
          Effect.flatMap((response) =>
            response.status === 404
              ? missingOriginal(response)
              : Effect.mapBoth(response.arrayBuffer, {
                  onFailure: noAnswer,
                  onSuccess: (bytes) => Option.some(new Uint8Array(bytes))
                })
          ),
          withRetries
        ),
      putOriginal: (ref, bytes) =>
        send(
          HttpClientRequest.bodyUint8Array(
            HttpClientRequest.put(originalUrl(ref)),
            bytes,
            "application/octet-stream"
          )
        ).pipe(Effect.flatMap(failIfMissing), Effect.asVoid, withRetries)
    }
  })
