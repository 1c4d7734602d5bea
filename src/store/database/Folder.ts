/** Creates folders with their parents, and makes them durable. */
import * as Fs from "node:fs/promises"
import * as Path from "node:path"
import { codeOf } from "../../domain/ThrownErrors.ts"

const make = (directory: string) => Fs.mkdir(directory, { mode: 0o700 })

/**
 * Creates `directory` with mode 0700, and missing parents. Rejects with the system's error. Node's `recursive` option
 * loops for ever on a file system that reports ENOENT for new folders, such as /proc.
 */
export const makeFolder = async (directory: string): Promise<void> => {
  const made = await make(directory).catch((cause: unknown) => cause)
  if (made === undefined) return
  const parent = Path.dirname(directory)
  if (codeOf(made) === "ENOENT" && parent !== directory) {
    await makeFolder(parent)
    const again = await make(directory).catch((cause: unknown) => cause)
    if (again === undefined || codeOf(again) === "EEXIST") return
    throw again
  }
  // An existing folder can also cause other errors, such as EROFS.
  const found = await Fs.stat(directory).catch(() => null)
  if (found?.isDirectory() !== true) throw made
}

/** Makes the names in a folder, or the bytes of a file, survive a power failure. */
export const sync = async (place: string): Promise<void> => {
  const handle = await Fs.open(place, "r")
  await handle.sync().finally(() => handle.close())
}
