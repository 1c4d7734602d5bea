/**
 * `spoke import <file>`: an archive of `spoke export` into an empty database, or conversations from elsewhere, one JSON
 * object a line, through the operator's route.
 */
import * as fs from "node:fs"
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as NodeStream from "@effect/platform-node/NodeStream"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Config from "effect/Config"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { ImportReport } from "../../domain/ConversationImport.ts"
import { fromEnvironment } from "../Config.ts"
import { isArchive } from "../ArchiveFile.ts"
import * as DataDirectory from "../DataDirectory.ts"
import * as Connection from "./Connection.ts"
import { restore } from "./Export.ts"

/** Lines of one request, and about as many bytes; a longer line goes alone. */
const linesAtOnce = 500
const bytesAtOnce = 1_048_576
/** The server takes no more than this at once. */
const longestLine = 16 * 1_048_576

const options = {
  url: Connection.options.url,
  token: Options.redacted("operator-token").pipe(
    Options.withDescription("The operator's token (SPOKE_OPERATOR_TOKEN)"),
    Options.withFallbackConfig(Config.redacted("SPOKE_OPERATOR_TOKEN")),
    Options.optional
  ),
  tokenFile: Options.text("operator-token-file").pipe(
    Options.withDescription("A file that holds the operator's token"),
    Options.optional
  ),
  agent: Options.text("agent").pipe(
    Options.withDescription("Agent of the conversations that name none"),
    Options.optional
  )
}

interface Flags {
  readonly url: Option.Option<string>
  readonly token: Option.Option<Redacted.Redacted>
  readonly tokenFile: Option.Option<string>
}

/** What both flags leave open is what the first start wrote into the data directory. */
const target = (flags: Flags) =>
  Effect.gen(function* () {
    const ours = Option.isSome(flags.tokenFile)
      ? Option.some(yield* Connection.secretIn(flags.tokenFile.value))
      : flags.token
    if (Option.isSome(flags.url) && Option.isSome(ours)) return { url: flags.url.value, token: ours.value }
    const { dataDir } = yield* fromEnvironment()
    const kept = yield* DataDirectory.credentials.read(dataDir)
    const secrets = yield* DataDirectory.secrets.read(dataDir)
    const url = Option.orElse(flags.url, () => Option.map(kept, (found) => found.url))
    const token = Option.orElse(ours, () => Option.map(secrets, (found) => found.operatorToken))
    if (Option.isNone(url) || Option.isNone(token)) {
      return yield* new Connection.CommandFailed({
        message:
          `Which server, and with which token? Start one here first (spoke serve), or give --url and ` +
          `--operator-token (SPOKE_URL, SPOKE_OPERATOR_TOKEN). Looked in ${dataDir}.`
      })
    }
    return { url: url.value, token: token.value }
  }).pipe(
    Effect.catchTags({
      InvalidConfig: ({ message }) => new Connection.CommandFailed({ message }),
      DataDirectoryError: ({ message }) => new Connection.CommandFailed({ message })
    })
  )

/** Sends lines and returns the report. */
const sender = (flags: Flags, agent: Option.Option<string>) =>
  Effect.gen(function* () {
    const { token, url } = yield* target(flags)
    const client = yield* HttpClient.HttpClient
    const base = url.replace(/\/+$/u, "").replace(/\/v1$/u, "")
    return (lines: ReadonlyArray<string>) =>
      client
        .execute(
          HttpClientRequest.post(`${base}/api/operator/import/conversations`).pipe(
            HttpClientRequest.setUrlParams(Option.isSome(agent) ? { agentId: agent.value } : {}),
            HttpClientRequest.bearerToken(token),
            HttpClientRequest.bodyText(lines.join("\n"), "application/x-ndjson")
          )
        )
        .pipe(
          Effect.timeout(Connection.patience),
          Effect.mapError(
            () =>
              new Connection.CommandFailed({
                message: `The server at ${base} does not answer. Is it running? Import again to go on from here.`
              })
          ),
          Effect.filterOrElse(({ status }) => status === 200, Connection.refused),
          Effect.flatMap((response) => response.json),
          Effect.flatMap(Schema.decodeUnknown(Schema.Struct({ data: ImportReport }))),
          Effect.map(({ data }) => data),
          Effect.catchTags({
            ParseError: () =>
              new Connection.CommandFailed({ message: "The server's answer has an unexpected form." }),
            ResponseError: () =>
              new Connection.CommandFailed({ message: "The server's answer was cut off. Import again." })
          })
        )
  })

/** The bytes of the file, or of standard input. */
const bytesOf = (file: string) =>
  NodeStream.fromReadable<Connection.CommandFailed, Uint8Array>(
    () => (file === "-" ? process.stdin : fs.createReadStream(file)),
    () => new Connection.CommandFailed({ message: `${file} cannot be read.` })
  )

interface Piece {
  /** Number of its first line. */
  readonly first: number
  readonly lines: ReadonlyArray<string>
  readonly bytes: number
}

const none: Piece = { first: 1, lines: [], bytes: 0 }

/** Lines in pieces that fit a request. */
const pieces = <E>(lines: Stream.Stream<string, E>): Stream.Stream<Piece, E> =>
  lines.pipe(
    Stream.map((line): string | null => line),
    Stream.concat(Stream.make(null)),
    Stream.mapAccum(none, (piece, line) => {
      if (line === null) return [none, [piece]]
      const bytes = Buffer.byteLength(line) + 1
      if (
        piece.lines.length === 0 ||
        (piece.lines.length < linesAtOnce && piece.bytes + bytes <= bytesAtOnce)
      ) {
        return [{ ...piece, lines: [...piece.lines, line], bytes: piece.bytes + bytes }, []]
      }
      return [{ first: piece.first + piece.lines.length, lines: [line], bytes }, [piece]]
    }),
    Stream.flattenIterables,
    Stream.filter(({ lines }) => lines.length > 0)
  )

const add = (total: ImportReport, report: ImportReport): ImportReport => ({
  imported: total.imported + report.imported,
  messages: total.messages + report.messages,
  repeated: total.repeated + report.repeated,
  problems: [...total.problems, ...report.problems]
})

const tooLong: ImportReport = {
  imported: 0,
  messages: 0,
  repeated: 0,
  problems: [{ line: 1, message: `Is longer than ${longestLine} bytes` }]
}

/** Redraws one line on a terminal; elsewhere a log would only grow. */
const draw = (line: string) =>
  Effect.sync(() => {
    if (process.stderr.isTTY) process.stderr.write(`\r\u001b[2K${line}`)
  })

interface Progress {
  readonly done: ImportReport
  readonly refused: number
}

const importAll = (file: string, send: Effect.Effect.Success<ReturnType<typeof sender>>) =>
  pieces(bytesOf(file).pipe(Stream.decodeText(), Stream.splitLines)).pipe(
    Stream.runFoldEffect<Progress, Piece, Connection.CommandFailed, never>(
      { done: { imported: 0, messages: 0, repeated: 0, problems: [] }, refused: 0 },
      ({ done, refused }, { bytes, first, lines }) =>
        Effect.gen(function* () {
          const report = bytes > longestLine ? tooLong : yield* send(lines)
          yield* Effect.forEach(report.problems, ({ line, message }) =>
            Console.error(`line ${first + line - 1}: ${message}`)
          )
          const total = add(done, { ...report, problems: [] })
          yield* draw(`${first + lines.length - 1} lines, ${total.imported} conversations imported`)
          return { done: total, refused: refused + report.problems.length }
        })
    ),
    Effect.tap(draw(""))
  )

export const importCommand = Command.make(
  "import",
  {
    file: Args.text({ name: "file" }).pipe(
      Args.withDescription(
        "An archive of spoke export, or one conversation a line as JSON; - reads standard input"
      )
    ),
    ...options
  },
  ({ agent, file, ...flags }) =>
    Effect.gen(function* () {
      if (yield* isArchive(file)) return yield* restore(file)
      const { done, refused } = yield* importAll(file, yield* sender(flags, agent))
      yield* Console.log(
        `${done.imported} conversations with ${done.messages} messages imported, ${done.repeated} were there already`
      )
      if (refused > 0) {
        return yield* new Connection.CommandFailed({
          message: `${refused} lines were refused, as listed above; nothing of them is stored.`
        })
      }
    })
).pipe(
  Command.withDescription(
    "Import an archive into an empty database, or conversations, which repeating imports once"
  )
)
