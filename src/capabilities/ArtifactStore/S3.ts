/**
 * Artifacts as objects of an S3-compatible store: `<prefix>/<first two digits>/<digest>`. An object appears whole or
 * not at all. Any number of processes may share the bucket.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { AwsV4Signer } from "aws4fetch"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { collect } from "../../concurrency/Collect.ts"
import type { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { retryAfter } from "../../domain/RetryAfter.ts"
import { ArtifactStore, ArtifactStoreError, refOf } from "../ArtifactStore.ts"
import { removeAbandonedSpools, spool } from "./Spool.ts"
import { makeSpoolLimit } from "./SpoolLimit.ts"
import { MiB } from "../../domain/Bytes.ts"

export interface S3Options {
  readonly bucket: string
  /** Prefix of every name, without leading and trailing slashes; empty for none. */
  readonly prefix: string
  readonly region: string
  /** Address of a compatible store, with path-style requests; null for Amazon S3. */
  readonly endpoint: string | null
  readonly accessKeyId: Redacted.Redacted
  readonly secretAccessKey: Redacted.Redacted
  readonly sessionToken: Redacted.Redacted | null
}

const contentType = "application/octet-stream"

/** Time-out of one attempt, including the body. */
const attemptTimeout = Duration.seconds(60)
/** Time-out of all attempts with their pauses. A caller may be an HTTP request. */
const totalTimeout = Duration.seconds(90)
/** A store that asks for a longer pause is not asked again. */
const maxPause = Duration.seconds(20)
/** Maximum size in bytes, above that of any original. A larger object is not read. */
const maxObjectBytes = 256 * MiB
const maxRefusalBytes = 65_536

/** A refused or failed attempt. */
interface Failure {
  readonly reason: string
  readonly transient: boolean
  /** The shortest pause before the next attempt. */
  readonly pause: Duration.Duration
}

const failure = (reason: string, transient: boolean, pause = Duration.zero): Failure => ({
  reason,
  transient,
  pause
})

/** For failures that may be transient. */
const retries = Schedule.identity<Failure>().pipe(
  Schedule.zipLeft(Schedule.jittered(Schedule.exponential("200 millis"))),
  Schedule.zipLeft(Schedule.recurs(3)),
  Schedule.modifyDelay(({ pause }, delay) => Duration.max(pause, delay))
)

/** The store's error code. The rest of its answer is dropped, because it may repeat the request. */
const codeIn = (body: string): string => /<Code>([A-Za-z]{1,64})<\/Code>/u.exec(body)?.[1] ?? ""

const isTransient = (status: number, code: string): boolean =>
  status >= 500 || status === 429 || status === 408 || code === "RequestTimeout"

/** The region of the bucket, which the store names when a request was signed for another one. */
const regionHint = (response: HttpClientResponse.HttpClientResponse, body: string): string => {
  if (response.status !== 301 && response.status !== 400) return ""
  const named = response.headers["x-amz-bucket-region"] ?? /<Region>([^<]*)<\/Region>/u.exec(body)?.[1] ?? ""
  return /^[a-z0-9-]{1,64}$/u.test(named) ? `: AWS_REGION should be ${named}` : ""
}

const refusal = (response: HttpClientResponse.HttpClientResponse) =>
  Effect.gen(function* () {
    const body = yield* collect(response.stream, maxRefusalBytes, () => "too long").pipe(
      Effect.map((bytes) => new TextDecoder().decode(bytes)),
      Effect.orElseSucceed(() => "")
    )
    const { headers, status } = response
    const code = codeIn(body)
    const reason = `${status}${code === "" ? "" : ` ${code}`}${regionHint(response, body)}`
    const pause = Option.getOrElse(retryAfter(headers, yield* Clock.currentTimeMillis), () => Duration.zero)
    return { code, ...failure(reason, isTransient(status, code), pause) }
  })

const noAnswer = () => failure("no answer in time", true)

const addressOf = ({ bucket, endpoint, region }: S3Options): string => {
  if (endpoint !== null) return `${endpoint}/${bucket}`
  // A wildcard certificate does not cover bucket names with dots.
  return bucket.includes(".")
    ? `https://s3.${region}.amazonaws.com/${bucket}`
    : `https://${bucket}.s3.${region}.amazonaws.com`
}

const make = (options: S3Options) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    yield* removeAbandonedSpools
    const withinSpoolLimit = makeSpoolLimit()
    const base = [addressOf(options), ...(options.prefix === "" ? [] : [options.prefix])].join("/")

    const urlOf = (ref: ArtifactRef) => {
      const digest = ref.slice("sha256:".length)
      return `${base}/${digest.slice(0, 2)}/${digest}`
    }

    const signRequest = (method: "GET" | "PUT" | "DELETE", url: string, contentHash: string) =>
      Effect.tryPromise({
        try: () =>
          new AwsV4Signer({
            method,
            url,
            headers: { "x-amz-content-sha256": contentHash },
            service: "s3",
            region: options.region,
            accessKeyId: Redacted.value(options.accessKeyId),
            secretAccessKey: Redacted.value(options.secretAccessKey),
            ...(options.sessionToken === null ? {} : { sessionToken: Redacted.value(options.sessionToken) })
          }).sign(),
        catch: () => failure("the request could not be signed", false)
      })

    const request = <A>(
      method: "GET" | "PUT" | "DELETE",
      ref: ArtifactRef,
      read: (response: HttpClientResponse.HttpClientResponse) => Effect.Effect<A, Failure>,
      setBody:
        ((request: HttpClientRequest.HttpClientRequest) => HttpClientRequest.HttpClientRequest) | null = null
    ) =>
      Effect.gen(function* () {
        const hash = (setBody === null ? refOf(new Uint8Array(0)) : ref).slice("sha256:".length)
        const { headers, url } = yield* signRequest(method, urlOf(ref), hash)
        const signed = HttpClientRequest.make(method)(url).pipe(
          HttpClientRequest.setHeaders(headers),
          setBody ?? ((same) => same)
        )
        const response = yield* Effect.mapError(client.execute(signed), () => failure("no answer", true))
        return yield* read(response)
      }).pipe(
        Effect.timeoutFail({ duration: attemptTimeout, onTimeout: noAnswer }),
        Effect.retry({
          schedule: retries,
          while: ({ pause, transient }) => transient && Duration.lessThanOrEqualTo(pause, maxPause)
        }),
        Effect.timeoutFail({ duration: totalTimeout, onTimeout: noAnswer })
      )

    const failed = (action: string) => (cause: Failure) =>
      new ArtifactStoreError({ message: `The artifact could not be ${action} (S3: ${cause.reason}).` })

    const expectSuccess = (response: HttpClientResponse.HttpClientResponse) =>
      response.status < 300
        ? Effect.asVoid(Effect.mapError(response.text, () => failure("the answer broke off", true)))
        : Effect.flatMap(refusal(response), Effect.fail)

    const put = Effect.fn("ArtifactStore.put")(function* (bytes: Uint8Array) {
      const ref = refOf(bytes)
      const setBody = HttpClientRequest.bodyUint8Array(bytes, contentType)
      yield* Effect.mapError(request("PUT", ref, expectSuccess, setBody), failed("written"))
      return ref
    })

    const stage = Effect.fn("ArtifactStore.stage")(function* <E, R>(bytes: Stream.Stream<Uint8Array, E, R>) {
      const { content, ref, size } = yield* spool(yield* withinSpoolLimit(bytes))
      const setBody = HttpClientRequest.bodyStream(content, { contentType, contentLength: size })
      const store = Effect.mapError(request("PUT", ref, expectSuccess, setBody), failed("written"))
      return { ref, size, store }
    })

    const read = (response: HttpClientResponse.HttpClientResponse) =>
      Effect.gen(function* () {
        if (response.status >= 300) {
          const refused = yield* refusal(response)
          // Any other 404 is of a missing bucket, or of a gateway that does not reach the store.
          if (response.status === 404 && refused.code === "NoSuchKey") return Option.none<Uint8Array>()
          return yield* Effect.fail(refused)
        }
        if (Number(response.headers["content-length"] ?? 0) > maxObjectBytes) {
          return yield* Effect.fail(failure("the object is too large", false))
        }
        const brokenOff = () => failure("the answer broke off", true)
        const tooLarge = () => failure("the object is too large", false)
        return Option.some(
          yield* collect(Stream.mapError(response.stream, brokenOff), maxObjectBytes, tooLarge)
        )
      })

    const get = Effect.fn("ArtifactStore.get")(function* (ref: ArtifactRef) {
      const stored = yield* Effect.mapError(request("GET", ref, read), failed("read"))
      if (Option.isSome(stored) && refOf(stored.value) !== ref) {
        return yield* new ArtifactStoreError({ message: `The artifact ${ref} is damaged in the bucket.` })
      }
      return stored
    })

    const expectRemoved = (response: HttpClientResponse.HttpClientResponse) =>
      Effect.flatMap(read(response), () => Effect.void)

    const remove = (ref: ArtifactRef) =>
      request("DELETE", ref, expectRemoved).pipe(
        Effect.mapError(failed("removed")),
        Effect.withSpan("ArtifactStore.remove")
      )

    return { put, stage, get, remove }
  })

/** Stores artifacts in an existing bucket. */
export const layerS3 = (options: S3Options): Layer.Layer<ArtifactStore, never, HttpClient.HttpClient> =>
  Layer.effect(ArtifactStore, make(options))
