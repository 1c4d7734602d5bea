/**
 * Finds processes that have files of a directory open, by /proc: processes without our lock, such as one that opens the
 * embedded database by the engine's own interface. It finds nothing outside Linux, in other containers, and for other
 * users' processes unless run as root.
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

const hasOpen = (pid: string, inside: string): boolean => {
  const descriptors = Path.join("/proc", pid, "fd")
  return orEmpty(() => Fs.readdirSync(descriptors)).some((descriptor) =>
    orEmpty(() => [Fs.readlinkSync(Path.join(descriptors, descriptor))]).some((target) =>
      target.startsWith(inside)
    )
  )
}

/** Another process with an open file below `directory`; undefined if none is found. */
export const processUsing = (directory: string): number | undefined => {
  const [real] = orEmpty(() => [Fs.realpathSync(directory)])
  if (real === undefined) return undefined
  const inside = `${real}${Path.sep}`
  const pid = orEmpty(() => Fs.readdirSync("/proc")).find(
    (name) => /^\d+$/u.test(name) && name !== String(process.pid) && hasOpen(name, inside)
  )
  return pid === undefined ? undefined : Number(pid)
}
