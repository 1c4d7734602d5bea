/** Loaded into a server (`NODE_OPTIONS=--import`): after SIGUSR2 the thread of its engine ends, as one does that breaks. */
import { Worker } from "node:worker_threads"

const { postMessage } = Worker.prototype
let engine
// The engine's thread is the one that is sent bytes.
Worker.prototype.postMessage = function (message, ...given) {
  if (message instanceof Uint8Array) engine = this
  return postMessage.call(this, message, ...given)
}
process.on("SIGUSR2", () => engine?.terminate())
