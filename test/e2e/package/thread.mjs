/** The library on a thread of the program's. */
import { isMainThread, parentPort, Worker } from "node:worker_threads"

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url))
  worker.on("message", (line) => console.log(line))
  worker.on("error", (error) => {
    console.error(error)
    process.exitCode = 1
  })
} else {
  const [spoke, { trial }] = await Promise.all([import("spoke"), import("./trial.mjs")])
  parentPort.postMessage(await trial(spoke))
}
