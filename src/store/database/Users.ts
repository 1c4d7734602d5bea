/**
 * Processes that have files of a directory open, by /proc: a process that knows nothing of our lock, as one that opens the embedded database
 * by its engine's own interface. Nothing is found elsewhere than on Linux, in other containers, and of other users' processes
 * unless by root.
 */
import * as Fs from "node:fs"
import * as Path from "node:path"

const orNone = <A>(read: () => ReadonlyArray<A>): ReadonlyArray<A> => {
  try {
    return read()
  } catch {
    // It has ended meanwhile, or is not ours to look at.
    return []
  }
}

const hasOpen = (pid: string, inside: string): boolean => {
  const descriptors = Path.join("/proc", pid, "fd")
  return orNone(() => Fs.readdirSync(descriptors)).some((descriptor) =>
    orNone(() => [Fs.readlinkSync(Path.join(descriptors, descriptor))]).some((target) =>
      target.startsWith(inside)
    )
  )
}

/** Another process with a file below `directory` open; undefined where none is found. */
export const userOf = (directory: string): number | undefined => {
  const [real] = orNone(() => [Fs.realpathSync(directory)])
  if (real === undefined) return undefined
  const inside = `${real}${Path.sep}`
  const pid = orNone(() => Fs.readdirSync("/proc")).find(
    (name) => /^\d+$/u.test(name) && name !== String(process.pid) && hasOpen(name, inside)
  )
  return pid === undefined ? undefined : Number(pid)
}
