/** `spoke export <folder>`: the whole store as one archive, for `spoke import` into an empty database of any engine. */
import * as Effect from "effect/Effect"
import { exportTo } from "../backup/Export.ts"
import { importFrom } from "../backup/Import.ts"
import { fromEnvironment } from "../config/Config.ts"
import * as Arguments from "./Arguments.ts"
import { commandFailed } from "./Connection.ts"
import * as Output from "./Output.ts"
import { noteIfInterrupted } from "./Signals.ts"

interface Flags {
  readonly withSecret?: true | undefined
  readonly streams: number
}

const write = (folder: string, { streams, withSecret }: Flags) =>
  Effect.gen(function* () {
    const settings = yield* fromEnvironment()
    const { missing, originals, rows } = yield* exportTo(settings, folder, {
      withSecret: withSecret === true,
      streams,
      tenant: null
    })
    yield* Output.line(`${rows} rows and ${originals} originals exported to ${folder}`)
    if (missing > 0)
      yield* Output.note(`${missing} originals were removed during the export and are not included`)
  }).pipe(
    Effect.onInterrupt(() => noteIfInterrupted("Run the same command again: finished parts are kept.")),
    Effect.mapError(commandFailed)
  )

export const exportCommand = (run: Arguments.Run) =>
  Arguments.command(
    "export",
    "Write the whole store, rows and originals, to a folder. Run it again to continue an interrupted export.",
    "spoke export backup",
    "spoke export backup --streams 8",
    "spoke export backup --with-secret"
  )
    .argument("<folder>", "the archive to write; it must not exist, unless its export was interrupted")
    .option("--with-secret", "include the master secret: whoever has the archive can then read all of it")
    .addOption(Arguments.streams())
    .action((folder, flags) => run(write(folder, flags)))

/** Imports an archive, for `spoke import`. */
export const restore = (folder: string) =>
  Effect.gen(function* () {
    const settings = yield* fromEnvironment()
    const { originals, rows } = yield* importFrom(settings, folder)
    yield* Output.line(`${rows} rows and ${originals} originals imported`)
  }).pipe(Effect.mapError(commandFailed))
