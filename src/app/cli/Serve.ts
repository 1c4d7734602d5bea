/** `spoke serve`: the server in the foreground, until a signal drains it. */
import { createServer } from "node:http"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as Effect from "effect/Effect"
import { fromEnvironment, type Settings, warnOfStrangers } from "../Config.ts"
import * as Observability from "../Observability.ts"
import * as Server from "../Server.ts"
import { CommandFailed } from "./Connection.ts"

const role = Options.choice("role", ["all", "api", "worker"]).pipe(
  Options.withDefault("all" as const),
  Options.withDescription("api answers requests, worker does background work, all does both")
)

/** Port 0 stands for a free one, which the public addresses have to name. */
const freePort = (host: string) =>
  Effect.async<number, CommandFailed>((resume) => {
    const probe = createServer()
    probe.once("error", () =>
      resume(new CommandFailed({ message: `${host} is not an address to listen on.` }))
    )
    probe.listen({ host, port: 0 }, () => {
      const address = probe.address()
      const port = address !== null && typeof address === "object" ? address.port : 0
      probe.close(() => resume(Effect.succeed(port)))
    })
  })

const cannotListen = ({ host, port }: Settings) =>
  `${host}:${port} cannot be listened on: another program has it. Choose another with PORT.`

export const serve = Command.make("serve", { role }, ({ role: chosen }) =>
  Effect.gen(function* () {
    const given = yield* fromEnvironment()
    const settings =
      given.port === 0 ? yield* fromEnvironment({ PORT: String(yield* freePort(given.host)) }) : given
    if (settings.database === null && chosen !== "all") {
      return yield* new CommandFailed({
        message: "The embedded database belongs to one process. Set DATABASE_URL to run roles apart."
      })
    }
    yield* warnOfStrangers.pipe(
      Effect.zipRight(Server.run(settings, chosen)),
      Effect.catchTag("ServeError", () => new CommandFailed({ message: cannotListen(settings) })),
      Effect.provide(Observability.layer(settings))
    )
  })
).pipe(Command.withDescription("Start the server: API, hosted app and workers"))
