/** The commands of `spoke`, and how their failures leave: one line of words on standard error, exit code 1. */
import { stripVTControlCharacters } from "node:util"
import * as CliConfig from "@effect/cli/CliConfig"
import * as Command from "@effect/cli/Command"
import * as ValidationError from "@effect/cli/ValidationError"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { isError } from "../../domain/Thrown.ts"
import * as Package from "../Package.ts"
import { chat } from "./Chat.ts"
import { doctor } from "./Doctor.ts"
import { exportCommand } from "./Export.ts"
import { importCommand } from "./Import.ts"
import { ingest } from "./Ingest.ts"
import { mcp } from "./Mcp.ts"
import { migrateCommand } from "./Migrate.ts"
import { retrieve } from "./Retrieve.ts"
import { serve } from "./Serve.ts"

const spoke = Command.make("spoke").pipe(
  Command.withDescription("AI agents that answer chat messages from your own sources"),
  Command.withSubcommands([
    serve,
    migrateCommand,
    doctor,
    ingest,
    chat,
    retrieve,
    mcp,
    exportCommand,
    importCommand
  ])
)

const cli = Command.run(spoke, { name: "Spoke", version: Package.version, executable: "spoke" })

/** Failures whose message is written for the person at the terminal. */
const spoken = new Set([
  "CannotListen",
  "CommandFailed",
  "InvalidConfig",
  "DataDirectoryError",
  "DataDirectoryLocked",
  "DataDirectoryUnusable",
  "DatabaseUnavailable",
  "MigrationError"
])

/** What the person at the terminal is told; an unknown failure shows its cause, for a report. */
const explanation = (cause: Cause.Cause<unknown>): Option.Option<string> => {
  const failure = Option.getOrNull(Cause.failureOption(cause))
  // The parser has printed its own help already.
  if (ValidationError.isValidationError(failure)) return Option.none()
  if (isError(failure) && "_tag" in failure && spoken.has(String(failure._tag))) {
    return Option.some(failure.message)
  }
  return Option.some(Cause.pretty(cause).slice(0, 4_000))
}

/** Colours are for terminals that want them: the parser prints its help in colour to files and pipes too. */
const uncoloured = (given: Console.Console): Console.Console => {
  const plain = (args: ReadonlyArray<unknown>) =>
    args.map((arg) => (typeof arg === "string" ? stripVTControlCharacters(arg) : arg))
  const log: Console.Console["log"] = (...args) => given.log(...plain(args))
  const error: Console.Console["error"] = (...args) => given.error(...plain(args))
  return {
    ...given,
    ...(hasColors(process.stdout) ? {} : { log }),
    ...(hasColors(process.stderr) ? {} : { error })
  }
}

const hasColors = (stream: NodeJS.WriteStream): boolean => stream.isTTY && stream.hasColors()

/** Runs the command line `argv`. */
export const program = (argv: ReadonlyArray<string>) =>
  Console.consoleWith((given) => Effect.withConsole(run(argv), uncoloured(given)))

const run = (argv: ReadonlyArray<string>) =>
  cli(argv).pipe(
    Effect.tapErrorCause((cause) =>
      Cause.isInterruptedOnly(cause)
        ? Effect.void
        : Option.match(explanation(cause), { onNone: () => Effect.void, onSome: Console.error })
    ),
    Effect.provide(
      Layer.mergeAll(NodeContext.layer, FetchHttpClient.layer, CliConfig.layer({ showBuiltIns: false }))
    )
  )
