/** The connection of a command to a running server, over its HTTP API. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { fromEnvironment } from "../config/Config.ts"
import * as DataDirectory from "../DataDirectory.ts"
import { isLocalHost, serverAddress, urlOf } from "../../domain/Address.ts"
import { retryAfter } from "../../domain/RetryAfter.ts"
import { readText } from "./input/Files.ts"

/** A command failed. `message` is printed as it is. The default exit code is 1. */
export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", {
  message: Schema.String,
  exitCode: Schema.optionalWith(Schema.Int, { exact: true }),
  /** True when the server did not answer, or was busy or stopping: another try may succeed. */
  isTransient: Schema.optionalWith(Schema.Boolean, { exact: true }),
  /** The pause that a rate limit asks for. The server has not processed the request. */
  rateLimitPause: Schema.optionalWith(Schema.DurationFromSelf, { exact: true })
}) {}

/** The failure of a command that fails with that error. */
export const commandFailed = ({ message }: { readonly message: string }) => new CommandFailed({ message })

/** Options of every command that calls a running server. */
export interface Flags {
  readonly url?: string | undefined
  readonly key?: Redacted.Redacted | undefined
  readonly keyFile?: string | undefined
}

/** Maximum bytes of a file with a secret. */
const maxSecretBytes = 64 * 1_024

/** The secret in `file`, without a final line break. */
const secretIn = (file: string) =>
  readText(file, maxSecretBytes, (message) => new CommandFailed({ message })).pipe(
    Effect.map((text) => text.trim()),
    Effect.filterOrFail(
      (text) => text !== "",
      () => new CommandFailed({ message: `${file} is empty.` })
    ),
    Effect.map((text) => Redacted.make(text))
  )

/** A secret from a file takes precedence over the environment and the command line. */
export const secretOf = (file: string | undefined, given: Redacted.Redacted | undefined) =>
  file === undefined
    ? Effect.succeed(Option.filter(Option.fromNullable(given), (secret) => Redacted.value(secret) !== ""))
    : Effect.asSome(secretIn(file))

/** Maximum rows of a page. */
const pageSize = 100
/** Time-out until the response begins. */
const responseTimeout = Duration.seconds(120)
/**
 * The same for a request that is answered when a turn has ended: the server ends a turn at its own time limit. Node's
 * `fetch` waits for five minutes.
 */
export const turnTimeout = Duration.infinity

const Issue = Schema.Struct({
  path: Schema.Array(Schema.Union(Schema.String, Schema.Number)),
  message: Schema.String
})

const Failure = Schema.Struct({
  error: Schema.Struct({
    code: Schema.String,
    message: Schema.String,
    details: Schema.optional(Schema.Struct({ issues: Schema.optional(Schema.Array(Issue)) }))
  })
})

/** Advice for an error, by its code. */
const advice: Readonly<Record<string, string>> = {
  UNAUTHORIZED:
    "Give another key with --key-file or SPOKE_API_KEY, or another token with --token-file or SPOKE_TOKEN; the dashboard makes both. " +
    "The operator's token is given with --operator-token-file or SPOKE_OPERATOR_TOKEN.",
  FORBIDDEN:
    "Give a key or a token that may: the dashboard shows the permissions of keys under Keys, and the scopes of tokens under Access tokens.",
  CONVERSATION_NOT_FOUND: "Leave --conversation out to begin another one.",
  CONVERSATION_NOT_ACTIVE: "Leave --conversation out to begin another one.",
  TURN_LIMIT_EXCEEDED: "The quota or a budget is spent; the dashboard shows both under Usage.",
  TURN_FAILED: "The server's log says why; spoke doctor checks the model.",
  RUNTIME_TIMEOUT: "The model took too long; spoke doctor checks it.",
  RATE_LIMITED: "Wait a little, and try again.",
  SERVICE_UNAVAILABLE: "Try again in a moment."
}

/** `code` with its description, and with advice if there is any. */
export const errorText = (code: string, message?: string): string =>
  [
    message === undefined ? code : `${code}: ${message}`,
    ...(advice[code] === undefined ? [] : [advice[code]])
  ].join("\n")

/** The address in one spelling: each loopback address is this machine. */
const normalizedAddress = (address: string): string | undefined => {
  const url = urlOf(serverAddress(address))
  if (url === null) return undefined
  const host = isLocalHost(url.hostname) ? "localhost" : url.hostname
  return `${url.protocol}//${host}:${url.port}${url.pathname}`
}

const isSameServer = (one: string, other: string): boolean =>
  normalizedAddress(one) === normalizedAddress(other)

/**
 * The server's address and a secret for it. Defaults come from the data directory, where the first start stores them:
 * `stored` reads the secret there. The stored secret is only used for the stored address, and never sent to another
 * server. Fails with the message `unknown` when the address or the secret is missing.
 */
const serverOf = <E extends { readonly message: string }, R>(
  given: string | undefined,
  secret: Option.Option<Redacted.Redacted>,
  stored: (dataDir: string) => Effect.Effect<Option.Option<Redacted.Redacted>, E, R>,
  unknown: string
) =>
  Effect.gen(function* () {
    const address = Option.filter(Option.fromNullable(given), (url) => url !== "")
    if (Option.isSome(address) && Option.isSome(secret)) return { url: address.value, secret: secret.value }
    const { dataDir } = yield* fromEnvironment()
    const credentials = yield* DataDirectory.credentials.read(dataDir)
    const storedUrl = Option.map(credentials, (found) => found.url)
    const url = Option.orElse(address, () => storedUrl)
    const isStoredServer =
      Option.isNone(address) || (Option.isSome(storedUrl) && isSameServer(address.value, storedUrl.value))
    const knownSecret = Option.isSome(secret) || !isStoredServer ? secret : yield* stored(dataDir)
    if (Option.isNone(url) || Option.isNone(knownSecret)) {
      const other =
        isStoredServer || Option.isNone(storedUrl)
          ? ""
          : ` The secrets there are for ${storedUrl.value} only.`
      return yield* new CommandFailed({ message: `${unknown} Looked in ${dataDir}.${other}` })
    }
    return { url: url.value, secret: knownSecret.value }
  }).pipe(Effect.mapError(commandFailed))

/** The server's address and key. */
const keyConnection = (flags: Flags) =>
  Effect.flatMap(secretOf(flags.keyFile, flags.key), (key) =>
    serverOf(
      flags.url,
      key,
      (dataDir) =>
        Effect.map(
          DataDirectory.credentials.read(dataDir),
          Option.map((found) => found.apiKey)
        ),
      "Which server, and with which key? Start one here first (spoke serve), or give --url and --key (SPOKE_URL, " +
        "SPOKE_API_KEY)."
    )
  )

/** Pause after a rate limit that names none. */
const defaultPause = Duration.seconds(1)

const rateLimitPauseOf = ({ headers }: HttpClientResponse.HttpClientResponse) =>
  Effect.map(Clock.currentTimeMillis, (now) =>
    Option.match(retryAfter(headers, now), {
      onNone: () => defaultPause,
      onSome: Duration.max(defaultPause)
    })
  )

/** Fails with the code and message of the error `response`. */
export const refused = (response: HttpClientResponse.HttpClientResponse) =>
  response.json.pipe(
    Effect.flatMap(Schema.decodeUnknown(Failure)),
    Effect.flatMap(({ error: { code, details, message } }) => {
      const failure = {
        message: [
          errorText(code, message),
          ...(details?.issues ?? []).map((issue) => `  ${issue.path.join(".")}: ${issue.message}`)
        ].join("\n"),
        isTransient: code === "SERVICE_UNAVAILABLE"
      }
      return code === "RATE_LIMITED"
        ? Effect.map(rateLimitPauseOf(response), (rateLimitPause) => ({ ...failure, rateLimitPause }))
        : Effect.succeed(failure)
    }),
    // A proxy answers for a server that restarts.
    Effect.orElseSucceed(() => ({
      message: `The server answered ${response.status}.`,
      isTransient: [502, 503, 504].includes(response.status)
    })),
    Effect.flatMap((failure) => new CommandFailed(failure))
  )

/** Waits as long as a rate limit of the key asks, and then sends the request again. */
export const afterRateLimit = <A, R>(request: Effect.Effect<A, CommandFailed, R>) =>
  request.pipe(
    Effect.tapError(({ rateLimitPause = Duration.zero }) => Effect.sleep(rateLimitPause)),
    Effect.retry({ while: ({ rateLimitPause }) => rateLimitPause !== undefined })
  )

/** {@link afterRateLimit}, also while the server restarts: for a request that may be repeated. */
export const whileRestarting = <A, R>(request: Effect.Effect<A, CommandFailed, R>) =>
  Effect.retry(afterRateLimit(request), {
    schedule: Schedule.intersect(Schedule.spaced(Duration.seconds(2)), Schedule.recurs(45)),
    while: ({ isTransient }) => isTransient === true
  })

/**
 * Sends a request when a command ends. Finalizers cannot be interrupted: without `interruptible`, the time-out would wait
 * for a server that does not answer.
 */
export const briefly = <A, R>(request: Effect.Effect<A, CommandFailed, R>) =>
  Effect.interruptible(request).pipe(Effect.timeout(Duration.seconds(3)), Effect.ignore)

/** Requests below `prefix` of the server at `url`, with an authentication header. */
const requests = (url: string, [header, secret]: readonly [string, string], prefix: string) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const base = serverAddress(url)
    const unreachable = () =>
      new CommandFailed({
        message: `The server at ${base} does not answer. Is it running? (spoke serve)`,
        isTransient: true
      })
    /** Sends a request to any path of the server. Any status is a result. */
    const execute = (request: HttpClientRequest.HttpClientRequest) =>
      client
        .execute(
          request.pipe(HttpClientRequest.prependUrl(base), HttpClientRequest.setHeader(header, secret))
        )
        .pipe(Effect.mapError(unreachable))
    /** Like {@link execute}, but fails for any status other than 2xx. */
    const ask = (request: HttpClientRequest.HttpClientRequest, duration = responseTimeout) =>
      execute(request).pipe(
        Effect.timeoutFail({ duration, onTimeout: unreachable }),
        Effect.filterOrElse(({ status }) => status >= 200 && status < 300, refused)
      )
    const send = (request: HttpClientRequest.HttpClientRequest, timeout?: Duration.Duration) =>
      ask(HttpClientRequest.prependUrl(request, prefix), timeout)
    /** The `data` of the response. */
    const call = <A, I>(
      schema: Schema.Schema<A, I>,
      request: HttpClientRequest.HttpClientRequest,
      timeout?: Duration.Duration
    ) =>
      send(request, timeout).pipe(
        Effect.flatMap((response) => response.json),
        Effect.flatMap(Schema.decodeUnknown(Schema.Struct({ data: schema }))),
        Effect.map(({ data }) => data),
        Effect.catchTags({
          ParseError: unexpected,
          ResponseError: () => new CommandFailed({ message: "The server's answer was cut off." })
        })
      )
    /** The pages of the list at `path`. Each is read when it is needed. */
    const pages = <A extends { readonly nextCursor: string | null }, I>(
      schema: Schema.Schema<A, I>,
      path: string,
      params: Readonly<Record<string, string>> = {}
    ) =>
      Stream.paginateEffect<string | undefined, A, CommandFailed, never>(undefined, (cursor) =>
        Effect.map(
          call(schema, HttpClientRequest.get(path, { urlParams: { ...params, limit: pageSize, cursor } })),
          (page) => [page, Option.fromNullable(page.nextCursor)] as const
        )
      )
    return { base, execute, ask, send, call, pages }
  })

/** Requests to `/v1` with the key. Fails with the documented code and message for any status other than 2xx. */
export const connect = (flags: Flags) =>
  Effect.flatMap(keyConnection(flags), ({ secret, url }) =>
    requests(url, ["x-api-key", Redacted.value(secret)], "/v1")
  )

const Models = Schema.Struct({ data: Schema.Array(Schema.Struct({ id: Schema.String })) })

export const unexpected = () => new CommandFailed({ message: "The server's answer has an unexpected form." })

/** The agent of the key. */
export const agentOf = ({ send }: Effect.Effect.Success<ReturnType<typeof connect>>) =>
  send(HttpClientRequest.get("/models")).pipe(
    Effect.flatMap((response) => response.json),
    Effect.flatMap(Schema.decodeUnknown(Models)),
    Effect.flatMap(({ data: [first] }) => (first === undefined ? unexpected() : Effect.succeed(first.id))),
    Effect.catchTags({ ParseError: unexpected, ResponseError: unexpected })
  )

/** Options of every command that uses the management interface. */
export interface ManageFlags {
  readonly url?: string | undefined
  readonly token?: Redacted.Redacted | undefined
  readonly tokenFile?: string | undefined
}

/** Requests to the management interface with an access token. Fails for any status other than 2xx. */
export const manage = ({ token, tokenFile, url }: ManageFlags) =>
  Effect.gen(function* () {
    const secret = yield* secretOf(tokenFile, token)
    if (url === undefined || url === "" || Option.isNone(secret)) {
      return yield* new CommandFailed({
        message:
          "The server or the access token is missing. Give --url and --token-file (SPOKE_URL, SPOKE_TOKEN). The dashboard creates a token under Access tokens."
      })
    }
    const bearer = `Bearer ${Redacted.value(secret.value)}`
    return yield* requests(url, ["authorization", bearer], "/api/manage/v1")
  })

/** Options of commands that use the operator's routes. */
export interface OperatorFlags {
  readonly url?: string | undefined
  readonly operatorToken?: Redacted.Redacted | undefined
  readonly operatorTokenFile?: string | undefined
}

/** The server's address and the operator's token. */
export const operatorOf = (flags: OperatorFlags) =>
  Effect.flatMap(secretOf(flags.operatorTokenFile, flags.operatorToken), (token) =>
    serverOf(
      flags.url,
      token,
      (dataDir) =>
        Effect.map(
          DataDirectory.secrets.read(dataDir),
          Option.map((found) => found.operatorToken)
        ),
      "The server or the token is missing. Start a server here first (spoke serve), or give --url and " +
        "--operator-token (SPOKE_URL, SPOKE_OPERATOR_TOKEN)."
    )
  )

/** Requests to the operator's routes. Fails for any status other than 2xx. */
export const operate = (flags: OperatorFlags) =>
  Effect.flatMap(operatorOf(flags), ({ secret, url }) =>
    requests(url, ["authorization", `Bearer ${Redacted.value(secret)}`], "/api/operator")
  )
