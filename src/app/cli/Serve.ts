/** `spoke serve`: the server in the foreground, until a signal drains it. */
import { Option as CommandOption } from "@commander-js/extra-typings"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as RuntimeFlags from "effect/RuntimeFlags"
import * as RuntimeFlagsPatch from "effect/RuntimeFlagsPatch"
import { fromEnvironment, type Settings } from "../config/Config.ts"
import { warnOfUnknownVariables } from "../config/UnknownVariables.ts"
import * as Observability from "../telemetry/Observability.ts"
import * as Port from "../Port.ts"
import * as Server from "../Server.ts"
import * as Arguments from "./Arguments.ts"
import { CommandFailed } from "./Connection.ts"
import { markAsServer } from "./Signals.ts"
import { FailureLogged, failureMessage } from "./FailureMessage.ts"

const roles = ["all", "api", "worker"] as const

/** A log in JSON also has the reason why the server failed to start or ended. */
const logFailure = <A, E, R>(
  running: Effect.Effect<A, E, R>,
  { logFormat, logLevel }: Settings
): Effect.Effect<A, E | FailureLogged, R> =>
  logFormat !== "json" || logLevel === "none"
    ? running
    : Effect.catchAllCause(running, (cause): Effect.Effect<never, E | FailureLogged> => {
        if (Cause.isInterruptedOnly(cause)) return Effect.failCause(cause)
        const message = Option.match(failureMessage(cause), {
          onNone: () => Effect.logFatal("The server cannot continue", cause),
          // The message suffices: a stack trace is only for defects.
          onSome: (text) => Effect.logFatal(text)
        })
        return Effect.zipRight(message, new FailureLogged())
      })

const listen = (role: Server.Role) =>
  Effect.gen(function* () {
    const configured = yield* fromEnvironment()
    if (configured.database === null && role !== "all") {
      return yield* new CommandFailed({
        message: "The embedded database belongs to one process. Set DATABASE_URL to run roles apart."
      })
    }
    // Public addresses need the real port when 0 is configured.
    const settings =
      configured.port === 0
        ? yield* fromEnvironment({ PORT: String(yield* Port.findPort(configured)) })
        : configured
    yield* warnOfUnknownVariables.pipe(
      Effect.zipRight(Server.run(settings, role)),
      Effect.catchTag("ServeError", () => Port.portTaken(settings)),
      (running) => logFailure(running, settings),
      Effect.provide(Observability.layer(settings)),
      // Effect's own fiber metrics are expensive and are not exported.
      Effect.withRuntimeFlagsPatch(RuntimeFlagsPatch.disable(RuntimeFlags.RuntimeMetrics))
    )
  })

export const serve = (run: Arguments.Run) =>
  Arguments.command(
    "serve",
    "Start the server: API, hosted app and workers. A signal stops it gracefully, with exit code 0.",
    "spoke serve",
    "PORT=8080 spoke serve",
    "DATABASE_URL=postgres://spoke@db/spoke spoke serve --role api"
  )
    .addOption(
      new CommandOption("--role <role>", "api answers requests, worker does background work, all does both")
        .choices(roles)
        .default(roles[0])
    )
    .action(({ role }) => run(Effect.zipRight(markAsServer, listen(role))))
