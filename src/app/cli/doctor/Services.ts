/**
 * Checks of `spoke doctor` for services that are called over the network. Services that are not configured are left
 * out.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as GroundingHttp from "../../../capabilities/GroundingChecker/Http.ts"
import { Embedder } from "../../../capabilities/Embedder.ts"
import * as OpenAiEmbedder from "../../../capabilities/Embedder/OpenAi.ts"
import { keyHeaders, versioned } from "../../../capabilities/ModelRuntime/ProviderApi.ts"
import { Reranker } from "../../../capabilities/Reranker.ts"
import * as RerankHttp from "../../../capabilities/Reranker/Http.ts"
import type { Settings } from "../../config/Config.ts"
import type { ModelProvider } from "../../config/Settings.ts"
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

const Models = Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String })) })

/** Some providers list no models, or list them under longer names. An unreadable list counts as a match. */
const isListed = (model: string, answer: unknown): boolean =>
  Option.match(Schema.decodeUnknownOption(Models)(answer), {
    onNone: () => true,
    onSome: ({ data }) =>
      data.length === 0 || data.some(({ id }) => id.split(":")[0] === model || id === model)
  })

/** Requests the provider's models, in the format of its API. */
const modelsOf = ({ api, apiKey, apiVersion, baseUrl }: ModelProvider) =>
  HttpClientRequest.get(versioned(`${baseUrl}/models`, apiVersion)).pipe(
    HttpClientRequest.setHeaders(keyHeaders(api, apiKey))
  )

const isModelListed = (chatModel: string, response: HttpClientResponse.HttpClientResponse) =>
  response.json.pipe(
    Effect.map((answer) => isListed(chatModel, answer)),
    Effect.orElseSucceed(() => true)
  )

export const checkModel = ({ model, providers }: Settings) =>
  Effect.gen(function* () {
    if (model === null)
      return ok("model", "none: replies are extracts. Set OPENAI_API_KEY to have them written.")
    const client = yield* HttpClient.HttpClient
    const response = yield* client.execute(modelsOf(model))
    const { status } = response
    if (status === 401 || status === 403) return problem("model", "the provider refuses OPENAI_API_KEY")
    if (status >= 500) return problem("model", `the provider answers ${status}`)
    const prefix = `${model.provider}/`
    const modelName = model.chatModel.startsWith(prefix)
      ? model.chatModel.slice(prefix.length)
      : model.chatModel
    const isElsewhere = providers.has(modelName.split("/", 1)[0] ?? "")
    // Azure lists models, but is called with deployment names.
    if (
      status === 200 &&
      !isElsewhere &&
      model.api !== "azure" &&
      !(yield* isModelListed(modelName, response))
    )
      return warning("model", `the provider does not list ${model.chatModel}: is SPOKE_CHAT_MODEL right?`)
    return ok("model", `${model.chatModel} at ${model.baseUrl} (${model.api})`)
  }).pipe(
    Effect.timeout(answerTimeout),
    Effect.orElseSucceed(() => problem("model", "the provider at OPENAI_BASE_URL does not answer"))
  )

/** Checks one further provider, and the configured models that use it. */
const checkProvider = (name: string, provider: ModelProvider, models: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { api, baseUrl } = provider
    const check = `model ${name}`
    const client = yield* HttpClient.HttpClient
    const response = yield* client.execute(modelsOf(provider))
    const { status } = response
    if (status === 401 || status === 403)
      return problem(check, "the provider refuses the key: see its apiKeyEnv in SPOKE_PROVIDERS")
    if (status >= 500) return problem(check, `the provider answers ${status}`)
    const answer =
      status === 200 && api !== "azure" ? yield* response.json.pipe(Effect.orElseSucceed(() => null)) : null
    const unlisted = models.filter((model) => !isListed(model, answer))
    return unlisted.length > 0
      ? warning(
          check,
          `the provider does not list ${unlisted.join(", ")}: see SPOKE_CHAT_MODEL and SPOKE_FALLBACK_MODELS`
        )
      : ok(check, `answers at ${baseUrl} (${api})`)
  }).pipe(
    Effect.timeout(answerTimeout),
    Effect.orElseSucceed(() =>
      problem(`model ${name}`, "the provider does not answer: see its baseUrl in SPOKE_PROVIDERS")
    )
  )

export const checkProviders = ({ fallbackModels, model, providers }: Settings) =>
  Effect.forEach(
    // The default provider is checked with the model.
    [...providers].filter(([name]) => name !== model?.provider),
    ([name, provider]) => {
      const modelsOfProvider = [model?.chatModel ?? "", ...fallbackModels].filter((one) =>
        one.startsWith(`${name}/`)
      )
      return checkProvider(
        name,
        provider,
        modelsOfProvider.map((one) => one.slice(name.length + 1))
      )
    },
    { concurrency: 4 }
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
