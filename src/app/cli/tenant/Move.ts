/** `spoke tenant move`: drives the move of a tenant between two running installations. */
import { Option as CommandOption } from "@commander-js/extra-typings"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { TenantId } from "../../../domain/Ids.ts"
import * as MoveTenant from "../../moves/MoveTenant.ts"
import { overHttp } from "../../moves/Side.ts"
import * as Arguments from "../Arguments.ts"
import { CommandFailed, operatorOf, type OperatorFlags, secretOf, commandFailed } from "../Connection.ts"
import * as Output from "../Output.ts"
import { noteIfInterrupted } from "../Signals.ts"

interface Flags extends OperatorFlags {
  readonly to?: string | undefined
  readonly toToken?: Redacted.Redacted | undefined
  readonly toTokenFile?: string | undefined
  readonly servedAt?: string | undefined
  readonly streams: number
  readonly maxPause: number
  readonly keepTurns?: true | undefined
  readonly follow?: true | undefined
  readonly confirm?: true | undefined
  readonly rollback?: true | undefined
  readonly status?: true | undefined
  readonly json?: true | undefined
}

/** How often `--follow` looks for what has arrived at the origin. */
const followInterval = Duration.seconds(1)

const installations = (tenant: string, flags: Flags) =>
  Effect.gen(function* () {
    const from = yield* operatorOf(flags)
    const token = yield* secretOf(flags.toTokenFile, flags.toToken)
    if (flags.to === undefined || flags.to === "" || Option.isNone(token)) {
      return yield* new CommandFailed({
        message:
          "The destination or its operator's token is missing. Give --to and --to-token-file (SPOKE_TO_URL, SPOKE_TO_OPERATOR_TOKEN)."
      })
    }
    const id = TenantId.make(tenant)
    const made: MoveTenant.Installations = {
      origin: yield* overHttp("origin", id, from.url, from.secret, Output.note),
      destination: yield* overHttp("destination", id, flags.to, token.value, Output.note),
      originAt: from.url,
      destinationAt: flags.servedAt ?? flags.to,
      streams: flags.streams,
      report: Output.note
    }
    return made
  })

const seconds = (millis: number): string => `${(millis / 1_000).toFixed(2)} s`

const status = (tenant: string, both: MoveTenant.Installations, json: boolean) =>
  Effect.gen(function* () {
    const { destination, origin } = yield* MoveTenant.factsOf(both)
    const states = { tenant, origin: origin.move, destination: destination.move }
    if (json) return yield* Output.asJson(states)
    const sideText = (name: string, { move, name: called }: typeof origin) =>
      move === null
        ? `${name}: ${called === null ? "no such tenant" : "serves the tenant, no move"}`
        : `${name}: ${move.state === "away" ? "does not serve the tenant" : "serves the tenant"} (${move.state}, ${move.handovers} changes of sides)`
    yield* Output.line(sideText("origin", origin))
    return yield* Output.line(sideText("destination", destination))
  })

const optionsOf = ({ keepTurns, maxPause }: Flags) => ({
  keepTurns: keepTurns === true,
  maxPause: Duration.seconds(maxPause)
})

const runAgainHint = "Run the same command again to continue, or with --rollback to undo the move."

const moveTenant = (tenant: string, both: MoveTenant.Installations, flags: Flags) =>
  Effect.gen(function* () {
    const options = optionsOf(flags)
    const result = yield* MoveTenant.move(both, options).pipe(
      Effect.onInterrupt(() => noteIfInterrupted(runAgainHint))
    )
    const rows = result.tables.reduce((total, table) => total + table.rows, 0)
    if (flags.json === true) yield* Output.asJson({ tenant, servedAt: both.destinationAt, ...result })
    else if (result.pausedMillis === null) yield* Output.line(`${tenant} is served at ${both.destinationAt}`)
    else
      yield* Output.line(
        `${tenant} is served at ${both.destinationAt} now: ${rows} rows of ${result.tables.length} tables compared, ` +
          `its requests waited for at most ${seconds(result.pausedMillis)}`
      )
    if (result.unreadable > 0)
      yield* Output.note(
        `${result.unreadable} secrets could not be opened at the origin. Enter them again in the dashboard.`
      )
    if (flags.follow === true) {
      yield* Output.note("carrying over what channels deliver to the origin, until Ctrl+C")
      yield* Effect.repeat(MoveTenant.move(both, options), Schedule.spaced(followInterval))
    }
    yield* Output.note(
      "The origin keeps its copy: --confirm removes it, --rollback moves the tenant back with what happens meanwhile."
    )
  })

const runMove = (tenant: string, flags: Flags) =>
  Effect.gen(function* () {
    const both = yield* installations(tenant, flags)
    if (flags.status === true) return yield* status(tenant, both, flags.json === true)
    if (flags.confirm === true) {
      yield* MoveTenant.confirm(both).pipe(
        Effect.onInterrupt(() => noteIfInterrupted("Run it again to continue."))
      )
      if (flags.json === true) return yield* Output.asJson({ tenant, servedAt: both.destinationAt })
      return yield* Output.line(`The move of ${tenant} is confirmed, and the origin has no rows of it`)
    }
    if (flags.rollback === true) {
      const { pausedMillis } = yield* MoveTenant.rollback(both, optionsOf(flags)).pipe(
        Effect.onInterrupt(() => noteIfInterrupted("Run it again to continue."))
      )
      if (flags.json === true) return yield* Output.asJson({ tenant, servedAt: both.originAt, pausedMillis })
      return yield* Output.line(
        `${tenant} is served at ${both.originAt}${pausedMillis === null ? "" : `: its requests waited for at most ${seconds(pausedMillis)}`}`
      )
    }
    return yield* moveTenant(tenant, both, flags)
  }).pipe(Effect.mapError(commandFailed))

export const moveCommand = (run: Arguments.Run) =>
  Arguments.command(
    "tenant move",
    "Move one tenant to another running installation while it is served. Run it again to continue.",
    "spoke tenant move ten_… --to https://eu.example.com --to-token-file eu.token",
    "spoke tenant move ten_… --to https://eu.example.com --to-token-file eu.token --confirm",
    "spoke tenant move ten_… --to https://eu.example.com --to-token-file eu.token --rollback"
  )
    .argument("<tenant>", "id of the tenant")
    .addOption(Arguments.url)
    .addOption(Arguments.operatorToken)
    .addOption(Arguments.operatorTokenFile)
    .addOption(
      new CommandOption("--to <address>", "the destination, like https://eu.example.com")
        .env("SPOKE_TO_URL")
        .argParser(Arguments.address)
    )
    .addOption(
      new CommandOption("--to-token <token>", "the operator's token of the destination")
        .env("SPOKE_TO_OPERATOR_TOKEN")
        .argParser((text) => Redacted.make(text))
    )
    .option("--to-token-file <file>", "file with the operator's token of the destination")
    .option(
      "--served-at <address>",
      "where callers of the tenant are sent, if not to --to",
      Arguments.address
    )
    .option(
      "--streams <count>",
      "pages of rows in transfer at the same time",
      Arguments.wholeNumber(1, 32),
      4
    )
    .option(
      "--max-pause <seconds>",
      "how long requests of the tenant may wait for the change of sides",
      Arguments.wholeNumber(1, 60),
      2
    )
    .option("--keep-turns", "give up rather than end turns that run longer than the pause")
    .option("--follow", "after the move, carry over what channels still deliver to the origin")
    .addOption(
      new CommandOption("--confirm", "end the move: remove the tenant from the origin").conflicts("rollback")
    )
    .option("--rollback", "undo the move, also after the tenant has been served at the destination")
    .option("--status", "say which side serves the tenant, and change nothing")
    .addOption(Arguments.json)
    .action((tenant, flags) => run(runMove(tenant, flags)))
