/** `spoke tenant export` and `spoke tenant import`. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { TenantId } from "../../../domain/Ids.ts"
import { exportTo } from "../../backup/Export.ts"
import { discardImport, importTenant } from "../../backup/TenantImport.ts"
import { fromEnvironment } from "../../config/Config.ts"
import * as Arguments from "../Arguments.ts"
import { CommandFailed, secretOf, commandFailed } from "../Connection.ts"
import * as Output from "../Output.ts"
import { noteIfInterrupted } from "../Signals.ts"

/** Shorter keys could be guessed by whoever has the archive. */
const minKeyBytes = 32

const keyIn = (file: string | undefined) =>
  Effect.flatMap(
    secretOf(file, undefined),
    Option.match({
      onNone: () => Effect.succeed(null),
      onSome: (key) =>
        Buffer.byteLength(Redacted.value(key)) >= minKeyBytes
          ? Effect.succeed(key)
          : new CommandFailed({
              message: `The key in ${file} is shorter than ${minKeyBytes} bytes. openssl rand -base64 32 makes one.`
            })
    })
  )

interface ExportFlags {
  readonly keyFile?: string | undefined
  readonly streams: number
}

const write = (tenant: string, folder: string, { keyFile, streams }: ExportFlags) =>
  Effect.gen(function* () {
    const settings = yield* fromEnvironment()
    const sealKey = yield* keyIn(keyFile)
    const { missing, originals, rows } = yield* exportTo(settings, folder, {
      withSecret: false,
      streams,
      tenant: { id: TenantId.make(tenant), sealKey }
    })
    yield* Output.line(`${rows} rows and ${originals} originals of ${tenant} exported to ${folder}`)
    if (missing > 0)
      yield* Output.note(`${missing} originals were removed during the export and are not included`)
    if (sealKey === null)
      yield* Output.note(
        "Its secrets are sealed under the master secret of this installation, so only an installation with the same one can import it. --key-file seals them under a key of yours."
      )
  }).pipe(
    Effect.onInterrupt(() => noteIfInterrupted("Run the same command again: finished parts are kept.")),
    Effect.mapError(commandFailed)
  )

const keyFileText = "file with a key that the secrets are sealed under, at least 32 bytes"

export const exportCommand = (run: Arguments.Run) =>
  Arguments.command(
    "tenant export",
    "Write one tenant, rows and originals, to a folder. Run it again to continue an interrupted export.",
    "spoke tenant export ten_… acme",
    "spoke tenant export ten_… acme --key-file transfer.key"
  )
    .argument("<tenant>", "id of the tenant")
    .argument("<folder>", "the archive to write; it must not exist, unless its export was interrupted")
    .option("--key-file <file>", keyFileText)
    .addOption(Arguments.streams())
    .action((tenant, folder, flags) => run(write(tenant, folder, flags)))

interface ImportFlags extends ExportFlags {
  readonly discard?: true | undefined
}

const read = (folder: string, { discard, keyFile, streams }: ImportFlags) =>
  Effect.gen(function* () {
    const settings = yield* fromEnvironment()
    if (discard === true) {
      yield* discardImport(settings, folder)
      return yield* Output.line("What the interrupted import had stored is removed")
    }
    const sealKey = yield* keyIn(keyFile)
    const { originals, rows } = yield* importTenant(settings, folder, { sealKey, streams })
    yield* Output.line(
      `${rows} rows and ${originals} originals imported and compared; the tenant is served here`
    )
  }).pipe(
    Effect.onInterrupt(() =>
      noteIfInterrupted(
        "Run the same command again to continue, or with --discard to remove what was stored."
      )
    ),
    Effect.mapError(commandFailed)
  )

export const importCommand = (run: Arguments.Run) =>
  Arguments.command(
    "tenant import",
    "Import an archive of spoke tenant export beside other tenants. Run it again to continue an interrupted import.",
    "spoke tenant import acme",
    "spoke tenant import acme --key-file transfer.key",
    "spoke tenant import acme --discard"
  )
    .argument("<folder>", "an archive of one tenant")
    .option("--key-file <file>", "file with the key that the archive was exported with")
    .option("--discard", "remove what an interrupted import of this archive has stored")
    .addOption(Arguments.streams())
    .action((folder, flags) => run(read(folder, flags)))
