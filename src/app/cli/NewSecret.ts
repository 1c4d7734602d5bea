/** `spoke new-secret`: replaces a lost master secret by a new one. */
import * as Effect from "effect/Effect"
import { keyIdOf } from "../../capabilities/SecretBox/DerivedKeys.ts"
import { migrate } from "../../store/Database.ts"
import * as MasterKeys from "../../store/MasterKeys.ts"
import { fromEnvironment, type Settings } from "../config/Config.ts"
import * as DataDirectory from "../DataDirectory.ts"
import { database } from "../Live.ts"
import * as Package from "../Package.ts"
import * as Secrets from "../config/Secrets.ts"
import * as Arguments from "./Arguments.ts"
import { commandFailed } from "./Connection.ts"
import * as Output from "./Output.ts"

/** Replaces the secrets file of an embedded database. The old file is kept beside it. */
const replaceSecret = ({ database: server, dataDir, secrets: [configured] }: Settings) =>
  Effect.gen(function* () {
    const generated = Secrets.generated()
    if (server === null) {
      yield* DataDirectory.secrets.setAside(dataDir)
      yield* DataDirectory.secrets.write(dataDir, generated)
    }
    return configured === undefined
      ? { secret: generated.secret, where: Secrets.fileOf(dataDir) }
      : { secret: configured, where: "SPOKE_SECRET" }
  })

const replaceLostSecret = Effect.gen(function* () {
  const settings = yield* fromEnvironment()
  yield* Effect.gen(function* () {
    yield* migrate(Package.migrations)
    const isAvailable = yield* Secrets.Secrets.pipe(
      Effect.provide(Secrets.layer(settings)),
      Effect.as(true),
      Effect.catchTag("MasterSecretError", () => Effect.succeed(false))
    )
    if (isAvailable)
      return yield* Output.line("The master secret is the one of the database. Nothing was changed.")
    const { channels, connections, signOns, tools, webhooks } = yield* MasterKeys.sealedCounts
    const { secret, where } = yield* replaceSecret(settings)
    yield* MasterKeys.recordKeyId(keyIdOf(secret))
    yield* Output.line(
      `From now on the master secret is the one in ${where}. What was sealed with the lost one cannot be read: enter the ` +
        `secrets of ${tools} tools and the access tokens of ${channels} channels again, connect ${connections} tools with OAuth again, and replace the secrets of ${webhooks} webhooks and of ${signOns} single ` +
        "sign-ons."
    )
  }).pipe(Effect.provide(database(settings)))
}).pipe(Effect.mapError(commandFailed))

export const newSecret = (run: Arguments.Run) =>
  Arguments.command(
    "new-secret",
    "Continue with a new master secret if the old one is lost.",
    "spoke new-secret"
  ).action(() => run(replaceLostSecret))
