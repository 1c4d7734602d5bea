/** `spoke export <file>`: the whole store as one archive, for `spoke import` into an empty database of any kind. */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Backup from "../Backup.ts"
import { fromEnvironment } from "../Config.ts"
import { CommandFailed } from "./Connection.ts"

const failed = (cause: { readonly message: string }) => new CommandFailed({ message: cause.message })

export const exportCommand = Command.make(
  "export",
  {
    file: Args.text({ name: "file" }).pipe(
      Args.withDescription("The archive to write; it must not be there yet")
    ),
    withSecret: Options.boolean("with-secret").pipe(
      Options.withDescription(
        "Put the master secret into the archive: whoever has the file can then read all of it"
      )
    )
  },
  ({ file, withSecret }) =>
    Effect.gen(function* () {
      const settings = yield* fromEnvironment()
      const { missing, originals, rows } = yield* Backup.exportTo(settings, file, withSecret)
      yield* Console.log(`${rows} rows and ${originals} originals exported to ${file}`)
      if (missing > 0) yield* Console.log(`${missing} originals were removed meanwhile and are not in it`)
    }).pipe(Effect.mapError(failed))
).pipe(Command.withDescription("Write the whole store, rows and originals, to one file"))

/** What `spoke import` does with an archive. */
export const restore = (file: string) =>
  Effect.gen(function* () {
    const settings = yield* fromEnvironment()
    const { originals, rows } = yield* Backup.importFrom(settings, file)
    yield* Console.log(`${rows} rows and ${originals} originals imported`)
  }).pipe(Effect.mapError(failed))
