/** A folder and the folders above it. */
import * as Fs from "node:fs/promises"
import * as Path from "node:path"
import { codeOf } from "../../domain/Thrown.ts"

const make = (directory: string) => Fs.mkdir(directory, { mode: 0o700 })

/**
 * Makes `directory` with mode 0700 where it is missing, and what is missing above it; rejects with the system's error.
 * Node's own `recursive` tries for ever where a file system says of new folders that there is no such thing, as /proc does.
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
  // Other errors of an existing folder, such as EROFS.
  const found = await Fs.stat(directory).catch(() => null)
  if (found?.isDirectory() !== true) throw made
}
