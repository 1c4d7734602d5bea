/** `spoke migrate`: brings the database to the newest version, pgvector's part of it where that is used, and exits. */
import * as Command from "@effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { migrate } from "../../store/Database.ts"
import { fromEnvironment } from "../Config.ts"
import { database } from "../Live.ts"
import * as Package from "../Package.ts"
import { chooseVector } from "../Vector.ts"
import { CommandFailed } from "./Connection.ts"

export const migrateCommand = Command.make("migrate", {}, () =>
  Effect.gen(function* () {
    const settings = yield* fromEnvironment()
    const { applied, vector } = yield* Effect.all({
      applied: migrate(Package.migrations),
      vector: chooseVector(settings)
    }).pipe(Effect.provide(database(settings)))
    const names = applied.map(([id, name]) => `${String(id).padStart(4, "0")} ${name}`)
    yield* Console.log(names.length === 0 ? "The database is up to date." : `Applied:\n${names.join("\n")}`)
    yield* Console.log(`Chunks are searched by ${vector.backend}: ${vector.why}.`)
  }).pipe(Effect.mapError(({ message }) => new CommandFailed({ message })))
).pipe(Command.withDescription("Apply the migrations to the database and exit"))
