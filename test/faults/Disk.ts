/** Small disks that can be filled, where the machine lets us have them: as root, where mounting is allowed. */
import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"

export interface Disk {
  /** Leaves not a byte to anybody. */
  readonly fill: () => void
  readonly free: () => void
  readonly close: () => void
}

/** A disk of `size` (as `mount` takes it) at `folder`, empty; null where the machine does not allow it. */
export const smallDisk = (folder: string, size: string): Disk | null => {
  Fs.mkdirSync(folder, { recursive: true })
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size},mode=755`, "tmpfs", folder], {
      stdio: "ignore"
    })
  } catch {
    return null
  }
  let mounted = true
  const ballast = Path.join(folder, "ballast")
  const free = () => Fs.rmSync(ballast, { force: true })
  return {
    fill: () => {
      const file = Fs.openSync(ballast, "w")
      for (const piece of [1_048_576, 4_096])
        try {
          for (;;) Fs.writeSync(file, Buffer.alloc(piece))
        } catch {
          // Full is what it is to be.
        }
      Fs.closeSync(file)
    },
    free,
    close: () => {
      if (mounted) execFileSync("umount", ["-l", folder], { stdio: "ignore" })
      mounted = false
    }
  }
}

/** Why no disk can be filled on this machine, if none can. */
export const noDisk = ((): string | null => {
  const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-disk-"))
  const disk = process.getuid?.() === 0 ? smallDisk(folder, "1m") : null
  disk?.close()
  Fs.rmdirSync(folder)
  return disk === null ? "no disk may be mounted here" : null
})()

/**
 * Long turns for so many milliseconds, as fast as they are taken: a database feels that its disk is full when its log and
 * its tables have to grow.
 */
export const press = async (url: () => string, apiKey: string, milliseconds: number): Promise<void> => {
  const end = Date.now() + milliseconds
  const writer = async () => {
    while (Date.now() < end) {
      const taken = await fetch(`${url()}/v1/chat`, {
        method: "POST",
        headers: { "x-api-key": apiKey, "content-type": "application/json" },
        body: JSON.stringify({ message: randomBytes(20_000).toString("base64") }),
        signal: AbortSignal.timeout(15_000)
      }).then(
        ({ ok }) => ok,
        () => false
      )
      if (!taken) await delay(100)
    }
  }
  await Promise.all([1, 2, 3, 4].map(writer))
}
