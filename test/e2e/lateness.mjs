/**
 * Loaded into a server (`NODE_OPTIONS=--import`): keeps how late the events of its main thread were. After SIGUSR2 it
 * writes them to the file LATENESS_REPORT, in milliseconds, each as it was, and without what the thread only waited for
 * a processor: that is the machine's doing, and Linux tells how much it was.
 */
import * as Fs from "node:fs"
import { isMainThread } from "node:worker_threads"

const report = process.env["LATENESS_REPORT"]
const every = 10

if (isMainThread && report !== undefined) {
  /** Milliseconds that this thread has waited for a processor so far. */
  const waited = () =>
    Number(Fs.readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ")[1]) / 1e6
  const late = []
  const own = []
  let last = performance.now()
  let before = waited()
  const look = () => {
    const now = performance.now()
    const since = waited()
    const by = Math.max(0, now - last - every)
    late.push(by)
    own.push(Math.max(0, by - (since - before)))
    last = now
    before = since
    setTimeout(look, every).unref()
  }
  setTimeout(look, every).unref()
  process.on("SIGUSR2", () => {
    const of = (values) => {
      const sorted = values.splice(0).sort((a, b) => a - b)
      const at = (share) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0
      return { count: sorted.length, p50: at(0.5), p99: at(0.99), most: at(1) }
    }
    Fs.writeFileSync(`${report}.part`, JSON.stringify({ late: of(late), own: of(own) }))
    Fs.renameSync(`${report}.part`, report)
  })
}
