/**
 * `spoke import <path>`: imports an archive of `spoke export` into an empty database, or conversations as JSON lines
 * through the operator's route.
 */
import * as fs from "node:fs"
import * as NodeStream from "@effect/platform-node/NodeStream"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { ImportReport } from "../../domain/conversations/ConversationImport.ts"
import { isArchive } from "../backup/Manifest.ts"
import * as Arguments from "./Arguments.ts"
import * as Connection from "./Connection.ts"
import { restore } from "./Export.ts"
import { linesOf } from "./input/Lines.ts"
import * as Output from "./Output.ts"
import { noteIfInterrupted } from "./Signals.ts"
import { MiB } from "../../domain/Bytes.ts"

/** Maximum lines of one request, and about the maximum bytes. A longer line is sent alone. */
const maxBatchLines = 500
const maxBatchBytes = MiB
/** Maximum bytes of a line: the server's limit for one request. */
const maxLineBytes = 16 * MiB

interface Flags extends Connection.OperatorFlags {
  readonly agent?: string | undefined
}

/** Sends lines and returns the report. */
const sender = ({ agent, ...flags }: Flags) =>
  Effect.map(
    Connection.operate(flags),
    (server) => (lines: ReadonlyArray<string>) =>
      server
        .call(
          ImportReport,
          HttpClientRequest.post("/import/conversations").pipe(
            HttpClientRequest.setUrlParams(agent === undefined ? {} : { agentId: agent }),
            HttpClientRequest.bodyText(lines.join("\n"), "application/x-ndjson")
          )
        )
        .pipe(
          Effect.mapError((failed) =>
            failed.isTransient === true
              ? new Connection.CommandFailed({ message: `${failed.message} Import again to continue.` })
              : failed
          )
        )
  )

/** The bytes of the file, or of standard input. */
const bytesOf = (file: string) =>
  NodeStream.fromReadable<Connection.CommandFailed, Uint8Array>(
    () => (file === "-" ? process.stdin : fs.createReadStream(file)),
    () => new Connection.CommandFailed({ message: `${file} cannot be read.` })
  )

interface Batch {
  /** Number of the first line. */
  readonly first: number
  /** Null, which is alone, stands for a line that is too long. */
  readonly lines: ReadonlyArray<string | null>
  readonly bytes: number
}

const emptyBatch: Batch = { first: 1, lines: [], bytes: 0 }

const endOfLines = Symbol("endOfLines")

/** Splits lines into batches that fit one request. */
const batchesOf = <E>(lines: Stream.Stream<string | null, E>): Stream.Stream<Batch, E> =>
  lines.pipe(
    Stream.map((line): string | null | typeof endOfLines => line),
    Stream.concat(Stream.make(endOfLines)),
    Stream.mapAccum(emptyBatch, (batch, line) => {
      if (line === endOfLines) return [emptyBatch, [batch]]
      const bytes = line === null ? maxLineBytes : Buffer.byteLength(line) + 1
      if (
        batch.lines.length === 0 ||
        (batch.lines.length < maxBatchLines && batch.bytes + bytes <= maxBatchBytes)
      ) {
        return [{ ...batch, lines: [...batch.lines, line], bytes: batch.bytes + bytes }, []]
      }
      return [{ first: batch.first + batch.lines.length, lines: [line], bytes }, [batch]]
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
  problems: [{ line: 1, message: `Is longer than ${maxLineBytes} bytes` }]
}

interface Progress {
  readonly done: ImportReport
  readonly refused: number
}

const importAll = (file: string, send: Effect.Effect.Success<ReturnType<typeof sender>>) =>
  batchesOf(linesOf(bytesOf(file), maxLineBytes)).pipe(
    Stream.runFoldEffect<Progress, Batch, Connection.CommandFailed, never>(
      { done: { imported: 0, messages: 0, repeated: 0, problems: [] }, refused: 0 },
      ({ done, refused }, { first, lines }) =>
        Effect.gen(function* () {
          const sentLines = lines.filter((line) => line !== null)
          const report = sentLines.length === 0 ? tooLong : yield* send(sentLines)
          yield* Effect.forEach(report.problems, ({ line, message }) =>
            Output.note(`line ${first + line - 1}: ${message}`)
          )
          const total = add(done, { ...report, problems: [] })
          yield* Output.draw(`${first + lines.length - 1} lines, ${total.imported} conversations imported`)
          return { done: total, refused: refused + report.problems.length }
        })
    ),
    Effect.tap(Output.draw(""))
  )

const archiveTakesNoOptions = new Connection.CommandFailed({
  message:
    "An archive is imported into the store of this folder, or of DATABASE_URL. The options are for conversations: leave them out. Nothing was changed."
})

/** `hasOptions`: whether the command line has any, and not the environment alone. */
const importFile = (file: string, flags: Flags, hasOptions: boolean) =>
  Effect.gen(function* () {
    if (isArchive(file)) {
      // Whoever names a server does not expect that this folder's store is filled.
      if (hasOptions) return yield* archiveTakesNoOptions
      return yield* restore(file)
    }
    const { done, refused } = yield* importAll(file, yield* sender(flags)).pipe(
      Effect.onInterrupt(() =>
        noteIfInterrupted("Import again to continue: imported conversations are not repeated.")
      )
    )
    yield* Output.line(
      `${done.imported} conversations with ${done.messages} messages imported, ${done.repeated} existed already`
    )
    if (refused > 0) {
      return yield* new Connection.CommandFailed({
        message: `${refused} lines were refused, as listed above, and not stored. Correct them and import again.`
      })
    }
  })

export const importCommand = (run: Arguments.Run) =>
  Arguments.command(
    "import",
    "Import an archive of spoke export into an empty database, or conversations of another service. Repeated imports store a conversation once.",
    "spoke import backup",
    "spoke import conversations.jsonl --agent agt_…",
    "zcat conversations.jsonl.gz | spoke import - --agent agt_…"
  )
    .argument("<path>", "an archive, or a file with one conversation a line as JSON; - reads standard input")
    .option("--agent <id>", "agent of the conversations that name none")
    .addOption(Arguments.url)
    .addOption(Arguments.operatorToken)
    .addOption(Arguments.operatorTokenFile)
    .action((file, flags, command) => {
      const hasOptions = Object.keys(flags).some((name) => command.getOptionValueSource(name) === "cli")
      return run(importFile(file, flags, hasOptions))
    })
