/** `spoke migrate`: brings the database to the newest version, pgvector's part of it where that is used, and exits. */
import * as Effect from "effect/Effect"
import { migrate } from "../../store/Database.ts"
import { fromEnvironment } from "../config/Config.ts"
import { database } from "../Live.ts"
import * as Package from "../Package.ts"
import { chooseVector } from "../Vector.ts"
import * as Arguments from "./Arguments.ts"
import { CommandFailed } from "./Connection.ts"
import * as Output from "./Output.ts"

const apply = Effect.gen(function* () {
  const settings = yield* fromEnvironment()
  const { applied, vector } = yield* Effect.all({
    applied: migrate(Package.migrations),
    vector: chooseVector(settings)
  }).pipe(Effect.provide(database(settings)))
  const names = applied.map(([id, name]) => `${String(id).padStart(4, "0")} ${name}`)
  yield* Output.line(names.length === 0 ? "The database is up to date." : `Applied:\n${names.join("\n")}`)
  yield* Output.line(`Chunks are searched by ${vector.backend}: ${vector.why}.`)
}).pipe(Effect.mapError(({ message }) => new CommandFailed({ message })))

export const migrateCommand = (run: Arguments.Run) =>
  Arguments.command(
    "migrate",
    "Apply the migrations to the database and exit.",
    "DATABASE_URL=postgres://spoke@db/spoke spoke migrate"
  ).action(() => run(apply))
