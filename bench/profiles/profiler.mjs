/**
 * Loaded into a server (`--import`): the signal SIGUSR2 begins a CPU profile of its main thread, and the next one writes
 * it into the file `PROFILE`.
 */
import * as fs from "node:fs"
import { Session } from "node:inspector"
import { isMainThread } from "node:worker_threads"

if (isMainThread) {
  const session = new Session()
  session.connect()
  session.post("Profiler.enable")
  session.post("Profiler.setSamplingInterval", { interval: 500 })
  let running = false
  process.on("SIGUSR2", () => {
    running = !running
    if (running) session.post("Profiler.start")
    else
      session.post("Profiler.stop", (_, { profile }) => {
        const file = process.env["PROFILE"]
        fs.writeFileSync(`${file}.part`, JSON.stringify(profile))
        fs.renameSync(`${file}.part`, file)
      })
  })
}
