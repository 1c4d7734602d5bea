/**
 * Finds processes that have files of a directory open, from /proc. Such a process may not hold our lock, for example if
 * it opens the embedded database by the engine's own interface. Nothing is found outside Linux, in other containers,
 * and, unless run as root, of other users' processes.
 */
import * as Fs from "node:fs"
import * as Path from "node:path"

const orEmpty = <A>(read: () => ReadonlyArray<A>): ReadonlyArray<A> => {
  try {
    return read()
  } catch {
    // The process has ended, or may not be read.
    return []
  }
}

const hasOpenFile = (pid: string, prefix: string): boolean => {
  const descriptors = Path.join("/proc", pid, "fd")
  return orEmpty(() => Fs.readdirSync(descriptors)).some((descriptor) =>
    orEmpty(() => [Fs.readlinkSync(Path.join(descriptors, descriptor))]).some((target) =>
      target.startsWith(prefix)
    )
  )
}

/** The id of another process with an open file below `directory`; undefined if none is found. */
export const processUsing = (directory: string): number | undefined => {
  const [real] = orEmpty(() => [Fs.realpathSync(directory)])
  if (real === undefined) return undefined
  const prefix = `${real}${Path.sep}`
  const pid = orEmpty(() => Fs.readdirSync("/proc")).find(
    (name) => /^\d+$/u.test(name) && name !== String(process.pid) && hasOpenFile(name, prefix)
  )
  return pid === undefined ? undefined : Number(pid)
}
