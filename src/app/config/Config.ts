/**
 * All environment variables with their defaults and meanings. All problems are reported together, by variable name,
 * before anything starts. Messages never contain values.
 */
import { BlockList } from "node:net"
import * as path from "node:path"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { keepsAll } from "../../domain/accounts/Retention.ts"
import { selfHosted } from "../../domain/agents/Agent.ts"
import type { Plans } from "../../domain/billing/Billing.ts"
import {
  artifactsOf,
  snapshotsOf,
  allowList,
  apiUrl,
  baseUrl,
  bucket,
  choice,
  count,
  duration,
  email,
  redacted,
  httpUrl,
  interval,
  problemsIn,
  password,
  postgresUrl,
  plans,
  proxyList,
  callableHost,
  roleName,
  redisUrl,
  secret,
  rate,
  retention,
  url,
  Value,
  variable
} from "./ConfigValues.ts"
import { brokenConstraints, offlineModel } from "./ConfigConstraints.ts"
import { ModelPrices } from "./ModelPrices.ts"
import * as ModelProviders from "./ModelProviders.ts"
import { InvalidConfig } from "./InvalidConfig.ts"
import { withFiles, withFurtherFiles } from "./SecretFiles.ts"
import type { Settings } from "./Settings.ts"
import * as Telemetry from "../telemetry/Telemetry.ts"

const graphUrl = "https://graph.facebook.com/v25.0"
const telegramUrl = "https://api.telegram.org"
const slackUrl = "https://slack.com/api"
/** Always defined, unless SPOKE_PLANS defines a plan with its name. */
const builtInPlan = "self-hosted"

/** Name, format and meaning of each variable. {@link fromEnvironment} fills in defaults. */
export const Variables = Schema.Struct({
  HOST: variable(Value, "Listen address; 127.0.0.1 by default."),
  PORT: variable(count(0, 65_535), "Listen port; 3000 by default, 0 takes a free one."),
  SPOKE_DATA_DIR: variable(
    Value,
    "Embedded data: database, artifacts, generated secrets; .spoke by default."
  ),
  SPOKE_SNAPSHOT_INTERVAL: variable(
    interval,
    "How often an embedded store is copied, for example 1 day; never by default."
  ),
  SPOKE_SNAPSHOT_DIR: variable(Value, "Where the copies are; snapshots in the data directory by default."),
  SPOKE_SNAPSHOTS_KEPT: variable(count(1, 1_000), "How many copies are kept; 7 by default."),
  SPOKE_ARTIFACTS: variable(
    bucket,
    "Where originals are kept: s3://bucket/prefix; the data directory by default."
  ),
  S3_ENDPOINT: variable(baseUrl, "Address of an S3-compatible store; Amazon's own by default."),
  AWS_REGION: variable(Value, "Region of the bucket; us-east-1 by default."),
  AWS_ACCESS_KEY_ID: variable(redacted, "Access key of the bucket; required with SPOKE_ARTIFACTS."),
  AWS_SECRET_ACCESS_KEY: variable(redacted, "Its secret; required with SPOKE_ARTIFACTS."),
  AWS_SESSION_TOKEN: variable(redacted, "Session token, where the access key is a temporary one."),
  DATABASE_URL: variable(postgresUrl, "PostgreSQL 15 or newer; the embedded database by default."),
  SPOKE_DATABASE_DIRECT_URL: variable(
    postgresUrl,
    "The same database past a pooler in transaction mode, for LISTEN and `spoke migrate`; DATABASE_URL by default."
  ),
  SPOKE_TENANT_ROLE: variable(roleName, "Role of tenants' statements: turns row level security on."),
  SPOKE_DATABASE_POOL: variable(count(1, 500), "Maximum number of connections to PostgreSQL; 10 by default."),
  REDIS_URL: variable(
    redisUrl,
    "Redis 6.2 or newer for dedupe keys, rate limits and change notifications; the database by default."
  ),
  SPOKE_VECTOR: variable(
    choice("pgvector", "in-process"),
    "Where chunks are searched: pgvector when DATABASE_URL has the extension, else in-process."
  ),
  SMTP_URL: variable(
    url("an smtp:// or smtps:// URL", "smtp:", "smtps:"),
    "Mail server, with user and password if it needs them; without it no mail is sent."
  ),
  MAIL_FROM: variable(email, "Sender of mails; ALERT_EMAIL by default, else spoke@localhost."),
  ALERT_EMAIL: variable(
    email,
    "Recipient of mails about jobs that failed for good; needs SMTP_URL, none by default."
  ),
  OPENAI_API_KEY: variable(
    redacted,
    "Key of any OpenAI-compatible provider; without it, and without SPOKE_PROVIDERS, replies are offline extracts."
  ),
  OPENAI_BASE_URL: variable(baseUrl, `The provider's address; ${ModelProviders.defaultUrl} by default.`),
  SPOKE_OPENAI_API: variable(
    choice("responses", "chat-completions"),
    "Which of the provider's interfaces to use: responses for OpenAI's own address, else chat-completions."
  ),
  SPOKE_CHAT_MODEL: variable(Value, "Model of agents that name none; gpt-6-luna by default."),
  SPOKE_CONTEXT_WINDOW: variable(
    count(1_000, 10_000_000),
    "Context window of the chat model, in tokens; 128000 by default."
  ),
  SPOKE_PROVIDERS: variable(
    ModelProviders.Providers,
    "JSON from names to further model providers, for agents whose model is provider/model; none by default."
  ),
  SPOKE_FALLBACK_MODELS: variable(
    ModelProviders.Models,
    "Fallback models, separated by commas, if an agent's own model cannot answer; none by default."
  ),
  SPOKE_MODEL_PRICES: variable(
    ModelPrices,
    "JSON list of prices of models, US dollars for a million tokens; the providers' lists by default."
  ),
  SPOKE_EMBEDDING_MODEL: variable(
    Value,
    "Embedding model; text-embedding-3-small with OPENAI_API_KEY, else the built-in one, as with `offline`."
  ),
  SPOKE_EMBEDDING_DIMENSIONS: variable(
    count(1, 4_096),
    "Dimensions of the embedding model; 1536 by default."
  ),
  SPOKE_RERANK_URL: variable(
    httpUrl,
    "Full address of a /rerank interface that orders search results; none by default."
  ),
  SPOKE_RERANK_MODEL: variable(Value, "The reranker's model; required with SPOKE_RERANK_URL."),
  SPOKE_RERANK_API_KEY: variable(redacted, "The reranker's key; none by default."),
  SPOKE_GROUNDING_CHECKER: variable(
    choice("words", "model"),
    "How replies are checked against their sources: words by default, model asks the chat model once more."
  ),
  SPOKE_GROUNDING_URL: variable(
    httpUrl,
    "Full address of a /check-grounding interface that checks replies instead; none by default."
  ),
  SPOKE_GROUNDING_API_KEY: variable(redacted, "The key of SPOKE_GROUNDING_URL; none by default."),
  SPOKE_SECRET: variable(secret, "Master secret, at least 32 bytes; generated when embedded, else required."),
  SPOKE_SECRET_PREVIOUS: variable(
    secret,
    "The master secret before the last rotation; still used for decryption."
  ),
  SPOKE_OPERATOR_TOKEN: variable(redacted, "Bearer token of the operator routes; generated when embedded."),
  SPOKE_ADMIN_EMAIL: variable(
    email,
    "First dashboard owner, created with a tenant while there is no user; admin@localhost by default."
  ),
  SPOKE_ADMIN_PASSWORD: variable(
    password,
    "The owner's password; generated and printed once when embedded, else no owner is created without it."
  ),
  APP_URL: variable(baseUrl, "Public address of the hosted app; from HOST and PORT by default."),
  API_URL: variable(apiUrl, "Public base address of the API, ends in /v1; from APP_URL by default."),
  REALTIME_URL: variable(
    url("a ws or wss URL", "ws:", "wss:"),
    "Public WebSocket address; from APP_URL by default."
  ),
  BILLING_WEBHOOK_SECRET: variable(
    redacted,
    "Secret that the billing provider signs its events with; without it they are refused."
  ),
  SPOKE_PLANS: variable(plans, "JSON from plan names to entitlements, for billing; self-hosted is built in."),
  SPOKE_DEFAULT_PLAN: variable(Value, "Plan of tenants without a subscription; self-hosted by default."),
  SPOKE_RETENTION: variable(
    retention,
    "JSON of days after which data is deleted, by kind; never by default."
  ),
  CHANNEL_VERIFY_TOKEN: variable(
    redacted,
    "Token that messaging providers repeat when they subscribe to webhooks; none by default."
  ),
  CHANNEL_APP_SECRET: variable(
    redacted,
    "Secret that messaging providers sign webhooks with; none by default, and none is accepted."
  ),
  CHANNEL_APP_ID: variable(Value, "Id of our app at messaging providers, for its echoes; none by default."),
  GRAPH_API_URL: variable(baseUrl, `Base address of WhatsApp and Messenger; ${graphUrl} by default.`),
  TELEGRAM_API_URL: variable(baseUrl, `Base address of Telegram's bots; ${telegramUrl} by default.`),
  SLACK_API_URL: variable(baseUrl, `Base address of Slack's methods; ${slackUrl} by default.`),
  SPOKE_TURN_TIMEOUT: variable(
    duration,
    "A longer chat turn fails with RUNTIME_TIMEOUT; 60 seconds by default, at most 1 day."
  ),
  SPOKE_RATE_LIMIT: variable(
    rate,
    "Rate limit of keys without a limit of their own, like `60 per minute`; no limit by default."
  ),
  SPOKE_RUNTIME_DATA: variable(
    choice("enabled", "disabled"),
    "disabled: requests with runtime fields get RUNTIME_DATA_UNAVAILABLE; enabled by default."
  ),
  SPOKE_FETCH_ALLOW: variable(
    allowList,
    "Private hosts, host:port, addresses or CIDRs that addresses given by tenants may reach, separated by commas; none by default."
  ),
  SPOKE_TRUSTED_PROXIES: variable(
    proxyList,
    "Addresses or CIDRs of proxies whose x-forwarded-for is trusted, separated by commas; none by default."
  ),
  SPOKE_MAX_CONNECTIONS: variable(
    count(64, 200_000),
    "Maximum number of client connections to one process; 8192 by default, half of them for one address."
  ),
  SPOKE_MAX_WAIT: variable(duration, "Longest time a request may wait; 30 seconds by default."),
  SPOKE_DRAIN_DELAY: variable(duration, "Time from SIGTERM until the listener closes; 1 second by default."),
  ...Telemetry.variables,
  LOG_LEVEL: variable(
    choice("trace", "debug", "info", "warn", "warning", "error", "none"),
    "Lines of this level and above are logged: trace, debug, info, warn, error or none; info by default."
  ),
  LOG_FORMAT: variable(choice("pretty", "json"), "pretty on a terminal, else json.")
})

export type Variables = typeof Variables.Type
export type { Settings } from "./Settings.ts"

const decode = Schema.decodeUnknown(Variables, { errors: "all" })

/** The valid variables, and the problems of the others. */
const decodeValid = (environment: Readonly<Record<string, string | undefined>>) =>
  Effect.catchAll(
    Effect.map(decode(environment), (valid) => ({ valid, problems: [] })),
    (error) => {
      const problems = problemsIn(error)
      const rest = Record.filter(
        environment,
        (_, name) => !problems.some(({ variable: broken }) => broken === name)
      )
      return Effect.map(Effect.orDie(decode(rest)), (valid) => ({ valid, problems }))
    }
  )

const plansOf = ({ SPOKE_PLANS }: Variables): Plans =>
  new Map([[builtInPlan, selfHosted], ...(SPOKE_PLANS ?? [])])

const unknownPlan = (given: Variables) =>
  given.SPOKE_DEFAULT_PLAN === undefined || plansOf(given).has(given.SPOKE_DEFAULT_PLAN)
    ? []
    : [{ variable: "SPOKE_DEFAULT_PLAN", message: "Expected the name of a plan in SPOKE_PLANS" }]

const mailOf = (given: Variables): Settings["mail"] =>
  given.SMTP_URL === undefined
    ? null
    : {
        url: Redacted.make(given.SMTP_URL),
        from: given.MAIL_FROM ?? given.ALERT_EMAIL ?? "spoke@localhost"
      }

const databaseOf = (given: Variables): Settings["database"] => {
  const { DATABASE_URL: url, SPOKE_DATABASE_DIRECT_URL: direct } = given
  if (url === undefined) return null
  return {
    url: Redacted.make(url),
    directUrl: direct === undefined ? null : Redacted.make(direct),
    maxConnections: given.SPOKE_DATABASE_POOL ?? 10
  }
}

const embeddingOf = (given: Variables): Settings["embedding"] =>
  given.OPENAI_API_KEY === undefined || given.SPOKE_EMBEDDING_MODEL === offlineModel
    ? null
    : {
        model: given.SPOKE_EMBEDDING_MODEL ?? "text-embedding-3-small",
        dimensions: given.SPOKE_EMBEDDING_DIMENSIONS ?? 1_536
      }

const rerankOf = ({ SPOKE_RERANK_API_KEY: apiKey, ...given }: Variables): Settings["rerank"] =>
  given.SPOKE_RERANK_URL === undefined || given.SPOKE_RERANK_MODEL === undefined
    ? null
    : { url: given.SPOKE_RERANK_URL, model: given.SPOKE_RERANK_MODEL, apiKey }

const groundingOf = (given: Variables): Settings["grounding"] =>
  given.SPOKE_GROUNDING_URL === undefined
    ? { checker: given.SPOKE_GROUNDING_CHECKER ?? "words" }
    : { checker: "http", url: given.SPOKE_GROUNDING_URL, apiKey: given.SPOKE_GROUNDING_API_KEY }

const present = <A>(value: A | undefined): ReadonlyArray<A> => (value === undefined ? [] : [value])

const settingsOf = (
  given: Variables,
  environment: Readonly<Record<string, string | undefined>>,
  terminal: boolean
): Settings => {
  const providers = ModelProviders.providersOf(given.SPOKE_PROVIDERS, environment)
  const host = given.HOST ?? "127.0.0.1"
  const dataDir = path.resolve(given.SPOKE_DATA_DIR ?? ".spoke")
  const port = given.PORT ?? 3_000
  const appUrl = given.APP_URL ?? `http://${callableHost(host)}:${port}`
  return {
    host,
    port,
    dataDir,
    artifacts: artifactsOf(given),
    database: databaseOf(given),
    tenantRole: given.SPOKE_TENANT_ROLE ?? null,
    snapshots: snapshotsOf(dataDir, given),
    redis: given.REDIS_URL === undefined ? null : Redacted.make(given.REDIS_URL),
    mail: mailOf(given),
    alertEmail: given.ALERT_EMAIL ?? null,
    vector: given.SPOKE_VECTOR ?? null,
    model: ModelProviders.modelOf(given, providers),
    providers,
    fallbackModels: given.SPOKE_FALLBACK_MODELS ?? [],
    modelPrices: given.SPOKE_MODEL_PRICES ?? [],
    embedding: embeddingOf(given),
    rerank: rerankOf(given),
    grounding: groundingOf(given),
    secrets: [...present(given.SPOKE_SECRET), ...present(given.SPOKE_SECRET_PREVIOUS)],
    operatorToken: Option.fromNullable(given.SPOKE_OPERATOR_TOKEN),
    admin: {
      email: given.SPOKE_ADMIN_EMAIL ?? "admin@localhost",
      password: Option.fromNullable(given.SPOKE_ADMIN_PASSWORD)
    },
    appUrl,
    apiUrl: given.API_URL ?? `${appUrl}/v1`,
    realtimeUrl: given.REALTIME_URL ?? `${appUrl.replace(/^http/u, "ws")}/api/realtime`,
    channels: {
      verifyToken: given.CHANNEL_VERIFY_TOKEN ?? null,
      appSecret: given.CHANNEL_APP_SECRET ?? null,
      appId: given.CHANNEL_APP_ID ?? null,
      graphUrl: given.GRAPH_API_URL ?? graphUrl,
      telegramUrl: given.TELEGRAM_API_URL ?? telegramUrl,
      slackUrl: given.SLACK_API_URL ?? slackUrl,
      appUrl
    },
    billing: {
      webhookSecret: Option.fromNullable(given.BILLING_WEBHOOK_SECRET),
      plans: plansOf(given),
      defaultPlan: given.SPOKE_DEFAULT_PLAN ?? builtInPlan
    },
    retention: { ...keepsAll, ...given.SPOKE_RETENTION },
    turnTimeout: given.SPOKE_TURN_TIMEOUT ?? Duration.seconds(60),
    runtimeData: given.SPOKE_RUNTIME_DATA !== "disabled",
    rateLimit: given.SPOKE_RATE_LIMIT ?? null,
    fetchAllow: given.SPOKE_FETCH_ALLOW ?? null,
    trustedProxies: given.SPOKE_TRUSTED_PROXIES ?? new BlockList(),
    maxConnections: given.SPOKE_MAX_CONNECTIONS ?? 8_192,
    maxWait: given.SPOKE_MAX_WAIT ?? Duration.seconds(30),
    drainDelay: given.SPOKE_DRAIN_DELAY ?? Duration.seconds(1),
    telemetry: Telemetry.telemetryOf(given),
    healthPort: given.SPOKE_HEALTH_PORT ?? null,
    accessLog: given.SPOKE_ACCESS_LOG === "enabled",
    logLevel: given.LOG_LEVEL === "warn" ? "warning" : (given.LOG_LEVEL ?? "info"),
    logFormat: given.LOG_FORMAT ?? (terminal ? "pretty" : "json")
  }
}

/** Reads the settings from a record of variables; empty ones count as unset. */
export const fromRecord = (environment: Readonly<Record<string, string | undefined>>, terminal: boolean) =>
  Effect.gen(function* () {
    const set = Object.entries(environment).filter(([, value]) => value !== undefined && value.trim() !== "")
    const withSecretFiles = withFiles(Object.fromEntries(set))
    const decoded = yield* decodeValid(withSecretFiles.given)
    const { given, problems: keyProblems } = withFurtherFiles(
      withSecretFiles.given,
      ModelProviders.keyVariables(decoded.valid.SPOKE_PROVIDERS)
    )
    const areValid = (...names: ReadonlyArray<string>) =>
      !decoded.problems.some((problem) => names.includes(problem.variable))
    const problems = [
      ...withSecretFiles.problems,
      ...keyProblems,
      ...decoded.problems,
      ...(areValid("SPOKE_PLANS") ? unknownPlan(decoded.valid) : []),
      ...(areValid(...ModelProviders.modelVariables) ? ModelProviders.problemsOf(decoded.valid, given) : []),
      ...brokenConstraints(given)
    ]
    if (problems.length > 0) return yield* new InvalidConfig({ problems })
    return settingsOf(decoded.valid, given, terminal)
  })

/** The variables of this process. */
export const environment = Effect.sync(() => process.env)

/** The settings of this process. `overrides` take precedence over its environment. */
export const fromEnvironment = (overrides: Readonly<Record<string, string>> = {}) =>
  Effect.suspend(() => fromRecord({ ...process.env, ...overrides }, process.stderr.isTTY === true))
