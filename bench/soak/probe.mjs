/**
 * Loaded into the server under test (`NODE_OPTIONS=--import`). At SIGUSR2 it runs the garbage collector and writes the size
 * of the heap and the active resources to the file SOAK_PROBE. It is idle otherwise.
 */
import * as fs from "node:fs"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { isMainThread } from "node:worker_threads"

const file = process.env["SOAK_PROBE"]
// Child processes and threads inherit the option, and must not write the file.
delete process.env["SOAK_PROBE"]

const countByName = (names) => {
  const counts = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

if (file !== undefined && isMainThread) {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc")
  process.on("SIGUSR2", () => {
    // The second run frees what finalizers released after the first.
    collect()
    setImmediate(() => {
      collect()
      const { arrayBuffers, external, heapUsed, rss } = process.memoryUsage()
      const resources = countByName(process.getActiveResourcesInfo())
      fs.writeFileSync(`${file}.part`, JSON.stringify({ arrayBuffers, external, heapUsed, rss, resources }))
      fs.renameSync(`${file}.part`, file)
    })
  })
}
