/**
 * The folder of the tests' temporary files: in memory where the system has room there (Linux), else the system's own. An
 * embedded database has 900 files, and a disk on which many files were just deleted takes a millisecond to create one.
 */
import * as Fs from "node:fs"
import * as Path from "node:path"

const memory = "/dev/shm"
const minFreeBytes = 6 * 1_024 ** 3
const prefix = "spoke-tests-"

const hasRoom = () => {
  try {
    const { bavail, bsize } = Fs.statfsSync(memory)
    return bavail * bsize >= minFreeBytes
  } catch {
    return false
  }
}

const isRunning = (id: number) => Fs.existsSync(`/proc/${id}`)

const remove = (folder: string) => Fs.rmSync(folder, { recursive: true, force: true, maxRetries: 5 })

/** Sets `TMPDIR` for this process and its workers, unless it is set. Also removes what killed runs have left. */
export const useMemory = (): void => {
  if (process.env["TMPDIR"] !== undefined || !hasRoom()) return
  const folder = Path.join(memory, `${prefix}${process.pid}`)
  for (const name of Fs.readdirSync(memory)) {
    if (name.startsWith(prefix) && !isRunning(Number(name.slice(prefix.length))))
      remove(Path.join(memory, name))
  }
  // Others may enter: servers run as another user.
  Fs.mkdirSync(folder, { recursive: true, mode: 0o755 })
  process.env["TMPDIR"] = folder
  process.on("exit", () => remove(folder))
}
