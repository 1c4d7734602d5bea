/**
 * Loaded into a server that is soaked (`NODE_OPTIONS=--import`): at SIGUSR2 it collects its garbage and writes what is left,
 * and what keeps the process alive, into SOAK_PROBE. Nothing of it runs in between.
 */
import * as fs from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { isMainThread } from "node:worker_threads"

const file = process.env["SOAK_PROBE"]
// Processes and threads that the server starts inherit the option, and are not asked.
delete process.env["SOAK_PROBE"]

const countedBy = (names) => {
  const counts = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

if (file !== undefined && isMainThread) {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc")
  process.on("SIGUSR2", () => {
    // What the first leaves to finalizers, the second takes.
    collect()
    setImmediate(() => {
      collect()
      const { arrayBuffers, external, heapUsed, rss } = process.memoryUsage()
      const resources = countedBy(process.getActiveResourcesInfo())
      fs.writeFileSync(`${file}.part`, JSON.stringify({ arrayBuffers, external, heapUsed, rss, resources }))
      fs.renameSync(`${file}.part`, file)
    })
  })
}
