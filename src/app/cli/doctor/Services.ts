/**
 * Checks of `spoke doctor` for services that are called over the network. Services that are not configured are left
 * out.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as GroundingHttp from "../../../capabilities/GroundingChecker/Http.ts"
import { Embedder } from "../../../capabilities/Embedder.ts"
import * as OpenAiEmbedder from "../../../capabilities/Embedder/OpenAi.ts"
import { Reranker } from "../../../capabilities/Reranker.ts"
import * as RerankHttp from "../../../capabilities/Reranker/Http.ts"
import type { Settings } from "../../config/Config.ts"
import { allowConfiguredHost as groundingReach } from "../../Grounding.ts"
import { type Finding, ok, answerTimeout, problem, warning } from "./Finding.ts"

/** A short text for a test call, which costs almost nothing. */
const probe = "spoke doctor"

const noFindings: ReadonlyArray<Finding> = []

const infoField = (info: string, name: string): string | undefined =>
  new RegExp(`^${name}:(\\S+)`, "mu").exec(info)?.[1]

const isSupported = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return major > 6 || (major === 6 && minor >= 2)
}

/** With an eviction policy a full server drops dedupe claims and rate limit counters too. */
export const redisFindings = (info: string): ReadonlyArray<Finding> => {
  const version = infoField(info, "redis_version")
  const policy = infoField(info, "maxmemory_policy")
  return [
    version === undefined || isSupported(version)
      ? ok("redis", `answers${version === undefined ? "" : `, version ${version}`}`)
      : problem("redis", `version ${version} is too old: 6.2 is needed`),
    ...(infoField(info, "role") === "slave"
      ? [problem("redis", "is a replica: REDIS_URL has to name the master")]
      : []),
    ...(policy === undefined
      ? [warning("redis", "does not say its maxmemory-policy: it has to be noeviction")]
      : policy === "noeviction"
        ? []
        : [
            problem("redis", `drops keys when it is full (${policy}): set its maxmemory-policy to noeviction`)
          ])
  ]
}

/** Without Redis nothing is lost, but a configured one should answer. */
export const checkRedis = ({ redis }: Settings) =>
  redis === null
    ? Effect.succeed(noFindings)
    : Effect.gen(function* () {
        const { connect } = yield* Effect.promise(() => import("../../RedisBackends.ts"))
        const lost = yield* Ref.make("does not answer at REDIS_URL")
        const connection = yield* connect(redis, (reason) => Ref.set(lost, reason))
        return yield* Effect.tryPromise(() => connection.info()).pipe(
          Effect.map(redisFindings),
          Effect.orElse(() => Effect.map(Ref.get(lost), (reason) => [problem("redis", reason)]))
        )
      }).pipe(
        Effect.scoped,
        Effect.catchTag("PackageMissing", ({ message }) => Effect.succeed([problem("redis", message)]))
      )

/** Only an external checker is tested: otherwise the chat model or our own code compares reply and sources. */
export const checkGrounding = ({ grounding }: Settings) =>
  grounding.checker !== "http"
    ? Effect.succeed(noFindings)
    : GroundingHttp.probe({ ...grounding, timeout: answerTimeout }).pipe(
        Effect.as([ok("grounding", "the service answers")]),
        Effect.catchAll(({ message }) =>
          Effect.succeed([
            problem("grounding", `the service does not check replies: ${message}. See SPOKE_GROUNDING_URL.`)
          ])
        ),
        Effect.provide(groundingReach(grounding.url))
      )

export const checkEmbedding = ({ embedding, model }: Settings) => {
  if (embedding === null || model === null) return Effect.succeed(noFindings)
  const { apiKey, baseUrl, provider } = model
  return Effect.flatMap(Embedder, ({ embedQuery }) => embedQuery(probe)).pipe(
    Effect.as([ok("embedding", `${embedding.model} answers with ${embedding.dimensions} dimensions`)]),
    Effect.timeoutFail({ duration: answerTimeout, onTimeout: () => ({ message: "no answer in time" }) }),
    Effect.catchAll(({ message }) =>
      Effect.succeed([
        problem(
          "embedding",
          `${embedding.model} (${embedding.dimensions} dimensions): ${message} See SPOKE_EMBEDDING_MODEL and _DIMENSIONS.`
        )
      ])
    ),
    Effect.provide(OpenAiEmbedder.layerOpenAi({ apiKey, baseUrl, provider, ...embedding }))
  )
}

export const checkRerank = ({ rerank }: Settings) =>
  rerank === null
    ? Effect.succeed(noFindings)
    : Effect.flatMap(Reranker, (reranker) => reranker.rerank(probe, [probe])).pipe(
        Effect.as([ok("reranker", `${rerank.model} answers`)]),
        Effect.catchAll(({ message }) => Effect.succeed([problem("reranker", message)])),
        Effect.provide(RerankHttp.layerHttp({ ...rerank, timeout: answerTimeout }))
      )

/** Connects and introduces itself, but sends no mail. */
export const checkMail = ({ alertEmail, mail }: Settings) =>
  Effect.gen(function* () {
    if (mail === null) return noFindings
    const { verify } = yield* Effect.promise(() => import("../../../capabilities/Mailer/Smtp.ts"))
    yield* verify(mail.url)
    return alertEmail === null
      ? [warning("mail", "the server accepts the sign-in, but there is no recipient: set ALERT_EMAIL")]
      : [ok("mail", "the server accepts the sign-in")]
  }).pipe(Effect.catchAll(({ message }) => Effect.succeed([problem("mail", `${message} See SMTP_URL.`)])))

/** Sends an empty batch, which a collector accepts. */
export const checkTelemetry = ({ telemetry }: Settings) =>
  telemetry === null
    ? Effect.succeed(noFindings)
    : Effect.gen(function* () {
        const client = yield* HttpClient.HttpClient
        const request = HttpClientRequest.post(`${telemetry.endpoint}/v1/traces`).pipe(
          HttpClientRequest.setHeaders(Redacted.value(telemetry.headers)),
          HttpClientRequest.bodyUnsafeJson({ resourceSpans: [] })
        )
        const { status } = yield* client.execute(request)
        if (status === 401 || status === 403)
          return [problem("telemetry", "the collector refuses OTEL_EXPORTER_OTLP_HEADERS")]
        if (status >= 400)
          return [
            problem("telemetry", `the collector answers ${status} to OTEL_EXPORTER_OTLP_ENDPOINT/v1/traces`)
          ]
        return [ok("telemetry", "the collector answers")]
      }).pipe(
        Effect.timeout(answerTimeout),
        Effect.orElseSucceed(() => [
          problem("telemetry", "the collector at OTEL_EXPORTER_OTLP_ENDPOINT does not answer")
        ])
      )
