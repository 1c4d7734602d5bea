/** The commands of `spoke`. A failure becomes one line on standard error and an exit code. */
import { Command, CommanderError } from "@commander-js/extra-typings"
import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Package from "../Package.ts"
import type { Run } from "./Arguments.ts"
import { applyCommand, destroyCommand, planCommand, pullCommand } from "./Configuration.ts"
import { chat } from "./Chat.ts"
import { doctor } from "./Doctor.ts"
import { evalCommand } from "./Eval.ts"
import { exportCommand } from "./Export.ts"
import { importCommand } from "./Import.ts"
import { ingest } from "./Ingest.ts"
import { listenCommand, triggerCommand } from "./Listen.ts"
import { mcp } from "./Mcp.ts"
import { migrateCommand } from "./Migrate.ts"
import { newSecret } from "./NewSecret.ts"
import * as Output from "./Output.ts"
import { replayCommand } from "./Replay.ts"
import { retrieve } from "./Retrieve.ts"
import { serve } from "./Serve.ts"
import * as Services from "./Services.ts"
import { tenantCommand } from "./tenant/Tenant.ts"
import { FailureLogged, failureMessage } from "./FailureMessage.ts"

const commands = [
  migrateCommand,
  doctor,
  ingest,
  chat,
  retrieve,
  evalCommand,
  replayCommand,
  mcp,
  exportCommand,
  importCommand,
  tenantCommand,
  newSecret,
  pullCommand,
  planCommand,
  applyCommand,
  destroyCommand,
  listenCommand,
  triggerCommand
]

const makeProgram = (run: Run) => {
  const program = new Command("spoke")
    .description("AI agents that answer chat messages from your own sources.")
    .version(Package.version, "-v, --version", "print the version")
    .helpCommand(true)
    // `--version` after a command is that command's own option.
    .enablePositionalOptions()
    .exitOverride()
    .showHelpAfterError("See spoke --help.")
    .addHelpText("after", "\nspoke <command> --help shows its options, with examples.")
  program.addCommand(serve(run))
  // A server continues when the reader of its log exits. Any other command ends when the reader of its results exits.
  for (const make of commands)
    program.addCommand(make((task) => run(Effect.raceFirst(task, Output.readerClosed))))
  return program
}

/** Invalid arguments. The parser has already printed the error. */
class InvalidArguments extends Data.TaggedError("InvalidArguments") {}

/** Parses `argv` into the effect of a command; nothing for help, which the parser has printed. */
const parseCommand = (argv: ReadonlyArray<string>) =>
  Effect.suspend(() => {
    let chosen: Effect.Effect<void, unknown, Services.Services> = Effect.void
    const program = makeProgram((task) => {
      chosen = task
    })
    // Without a command, print the help.
    const programArguments = argv.length > 2 ? argv : [...argv, "--help"]
    return Effect.try({ try: () => void program.parse(programArguments), catch: (cause) => cause }).pipe(
      Effect.catchAll((cause) => {
        if (!(cause instanceof CommanderError)) return Effect.die(cause)
        return cause.exitCode === 0 ? Effect.void : new InvalidArguments()
      }),
      Effect.map(() => chosen)
    )
  })

/** The message for the user. An unknown failure shows its cause, for a bug report. */
const messageFor = (cause: Cause.Cause<unknown>): Option.Option<string> => {
  const failure = Option.getOrNull(Cause.failureOption(cause))
  // The parser or the log has already reported it.
  if (failure instanceof InvalidArguments || failure instanceof FailureLogged) return Option.none()
  return Option.some(Option.getOrElse(failureMessage(cause), () => Cause.pretty(cause).slice(0, 4_000)))
}

/** Runs the command line `argv`. */
export const program = (argv: ReadonlyArray<string>) =>
  Effect.flatten(parseCommand(argv)).pipe(
    Effect.tapErrorCause((cause) =>
      Cause.isInterruptedOnly(cause)
        ? Effect.void
        : Option.match(messageFor(cause), { onNone: () => Effect.void, onSome: Output.note })
    ),
    Effect.provide(Services.layer)
  )
