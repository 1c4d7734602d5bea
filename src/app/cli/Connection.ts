/** The running server that a command talks to, over the same HTTP as everybody else. */
import * as fs from "node:fs"
import * as Options from "@effect/cli/Options"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { fromEnvironment } from "../Config.ts"
import * as DataDirectory from "../DataDirectory.ts"

/** Why a command ended without its result; printed as it is, exit code 1. */
export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", {
  message: Schema.String
}) {}

export const options = {
  url: Options.text("url").pipe(
    Options.withDescription("Address of the server, like http://127.0.0.1:3000 (SPOKE_URL)"),
    Options.withFallbackConfig(Config.string("SPOKE_URL")),
    Options.optional
  ),
  key: Options.redacted("key").pipe(
    Options.withDescription("An agent's API key (SPOKE_API_KEY)"),
    Options.withFallbackConfig(Config.redacted("SPOKE_API_KEY")),
    Options.optional
  ),
  keyFile: Options.text("key-file").pipe(
    Options.withDescription("A file that holds the key, which the list of processes then never shows"),
    Options.optional
  )
}

export interface Flags {
  readonly url: Option.Option<string>
  readonly key: Option.Option<Redacted.Redacted>
  readonly keyFile: Option.Option<string>
}

/** The secret in `file`, which an editor may have ended with a line break. */
export const secretIn = (file: string) =>
  Effect.try({
    try: () => fs.readFileSync(file, "utf8").trim(),
    catch: () => new CommandFailed({ message: `${file} cannot be read.` })
  }).pipe(
    Effect.filterOrFail(
      (text) => text !== "",
      () => new CommandFailed({ message: `${file} is empty.` })
    ),
    Effect.map((text) => Redacted.make(text))
  )

/** What a file holds goes before what the environment or the line says. */
const given = ({ key, keyFile }: Flags) =>
  Option.match(keyFile, {
    onNone: () => Effect.succeed(key),
    onSome: (file) => Effect.asSome(secretIn(file))
  })

export const json = Options.boolean("json").pipe(Options.withDescription("Print the response as JSON"))

/** Longest wait for a response to begin. */
export const patience = Duration.seconds(120)

const Failure = Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String }) })

/** What both flags leave open is what the first start wrote into the data directory. */
const target = (flags: Flags) =>
  Effect.gen(function* () {
    const ours = yield* given(flags)
    if (Option.isSome(flags.url) && Option.isSome(ours)) return { url: flags.url.value, key: ours.value }
    const { dataDir } = yield* fromEnvironment()
    const kept = yield* DataDirectory.credentials.read(dataDir)
    const url = Option.orElse(flags.url, () => Option.map(kept, (found) => found.url))
    const key = Option.orElse(ours, () => Option.map(kept, (found) => found.apiKey))
    if (Option.isNone(url) || Option.isNone(key)) {
      return yield* new CommandFailed({
        message:
          `Which server, and with which key? Start one here first (spoke serve), or give --url and --key ` +
          `(SPOKE_URL, SPOKE_API_KEY). Looked in ${dataDir}.`
      })
    }
    return { url: url.value, key: key.value }
  }).pipe(
    Effect.catchTags({
      InvalidConfig: ({ message }) => new CommandFailed({ message }),
      DataDirectoryError: ({ message }) => new CommandFailed({ message })
    })
  )

/** Fails with the documented code and message of `response`. */
export const refused = (response: HttpClientResponse.HttpClientResponse) =>
  response.json.pipe(
    Effect.flatMap(Schema.decodeUnknown(Failure)),
    Effect.map(({ error }) => `${error.code}: ${error.message}`),
    Effect.orElseSucceed(() => `The server answered ${response.status}.`),
    Effect.flatMap((message) => new CommandFailed({ message }))
  )

/** Requests to `/v1` with the key; anything but 2xx fails with the documented code and its message. */
export const connect = (flags: Flags) =>
  Effect.gen(function* () {
    const { key, url } = yield* target(flags)
    const client = yield* HttpClient.HttpClient
    const base = url.replace(/\/+$/u, "").replace(/\/v1$/u, "")
    /** Requests to any path of the server. */
    const ask = (request: HttpClientRequest.HttpClientRequest) =>
      client
        .execute(
          request.pipe(
            HttpClientRequest.prependUrl(base),
            HttpClientRequest.setHeader("x-api-key", Redacted.value(key))
          )
        )
        .pipe(
          Effect.timeout(patience),
          Effect.mapError(
            () =>
              new CommandFailed({
                message: `The server at ${base} does not answer. Is it running? (spoke serve)`
              })
          ),
          Effect.filterOrElse(({ status }) => status >= 200 && status < 300, refused)
        )
    const send = (request: HttpClientRequest.HttpClientRequest) =>
      ask(HttpClientRequest.prependUrl(request, "/v1"))
    /** The `data` of the response. */
    const call = <A, I>(schema: Schema.Schema<A, I>, request: HttpClientRequest.HttpClientRequest) =>
      send(request).pipe(
        Effect.flatMap((response) => response.json),
        Effect.flatMap(Schema.decodeUnknown(Schema.Struct({ data: schema }))),
        Effect.map(({ data }) => data),
        Effect.catchTags({
          ParseError: () => new CommandFailed({ message: "The server's answer has an unexpected form." }),
          ResponseError: () => new CommandFailed({ message: "The server's answer was cut off." })
        })
      )
    return { base, ask, send, call }
  })
