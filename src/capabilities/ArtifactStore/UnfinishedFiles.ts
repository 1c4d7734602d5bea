/** Removes unfinished files of uploads, also those of processes that were killed. */
import * as fs from "node:fs/promises"
import * as path from "node:path"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** Age after which an unfinished file is removed, because its writer must have died. */
const maxUploadAge = Duration.hours(24)

/** Closes and removes an unfinished file. */
export const closeAndRemove = ({ file, handle }: { readonly file: string; readonly handle: fs.FileHandle }) =>
  Effect.promise(async () => {
    await handle.close().catch(() => undefined)
    await fs.rm(file, { force: true }).catch(() => undefined)
  })

/** Removes the files of `directory` whose names match `names` and that were not written to for {@link maxUploadAge}. */
export const removeAbandoned = async (directory: string, names: RegExp, now: number): Promise<void> => {
  for (const name of await fs.readdir(directory)) {
    if (!names.test(name)) continue
    const file = path.join(directory, name)
    // Another process may remove files at the same time, and another user may own some.
    const stats = await fs.lstat(file).catch(() => null)
    if (stats?.isFile() === true && now - stats.mtimeMs > Duration.toMillis(maxUploadAge))
      await fs.rm(file, { force: true }).catch(() => undefined)
  }
}
