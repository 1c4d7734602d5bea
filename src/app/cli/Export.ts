/** `spoke export <file>`: the whole store as one archive, for `spoke import` into an empty database of any engine. */
import * as Effect from "effect/Effect"
import * as Backup from "../backup/Backup.ts"
import { fromEnvironment } from "../config/Config.ts"
import * as Arguments from "./Arguments.ts"
import { CommandFailed } from "./Connection.ts"
import * as Output from "./Output.ts"

const failed = (cause: { readonly message: string }) => new CommandFailed({ message: cause.message })

const write = (file: string, { withSecret }: { readonly withSecret?: true | undefined }) =>
  Effect.gen(function* () {
    const settings = yield* fromEnvironment()
    const { missing, originals, rows } = yield* Backup.exportTo(settings, file, withSecret === true)
    yield* Output.line(`${rows} rows and ${originals} originals exported to ${file}`)
    if (missing > 0)
      yield* Output.note(`${missing} originals were removed during the export and are not included`)
  }).pipe(Effect.mapError(failed))

export const exportCommand = (run: Arguments.Run) =>
  Arguments.command(
    "export",
    "Write the whole store, rows and originals, to one file.",
    "spoke export spoke.tgz",
    "spoke export spoke.tgz --with-secret"
  )
    .argument("<file>", "the archive to write; it must not exist")
    .option("--with-secret", "include the master secret: whoever has the file can then read all of it")
    .action((file, flags) => run(write(file, flags)))

/** Imports an archive, for `spoke import`. */
export const restore = (file: string) =>
  Effect.gen(function* () {
    const settings = yield* fromEnvironment()
    const { originals, rows } = yield* Backup.importFrom(settings, file)
    yield* Output.line(`${rows} rows and ${originals} originals imported`)
  }).pipe(Effect.mapError(failed))
