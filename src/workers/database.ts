/**
 * Entry of the embedded database's thread: one message per request, one per answer. A null message closes the database.
 */
import { parentPort, workerData } from "node:worker_threads"
import { types } from "node:util"
import { engineOf, type EngineOpening, messageOf, openPGlite } from "../store/database/Engine.ts"
import type { ThreadMessage } from "../store/database/EngineThread.ts"

const post = (message: ThreadMessage) => parentPort?.postMessage(message)

const opening: EngineOpening = workerData
const opened = openPGlite(opening)

opened.then(
  (db) => {
    const { ask, hasEnded } = engineOf(db, () => undefined)
    const failed = (error: unknown) =>
      post(hasEnded() ? { _tag: "Ended" } : { _tag: "Failed", message: messageOf(error) })
    parentPort?.on("message", (message: unknown) => {
      if (types.isUint8Array(message))
        ask(message).then((answer) => parentPort?.postMessage(answer, [answer.buffer]), failed)
      // Data that can no longer be written is recovered when the directory is opened next.
      else void (hasEnded() ? Promise.resolve() : db.close()).finally(() => post({ _tag: "Ended" }))
    })
    post({ _tag: "Opened" })
  },
  (error: unknown) => post({ _tag: "Refused", message: messageOf(error) })
)
