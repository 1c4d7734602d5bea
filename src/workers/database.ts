/** Entry of the embedded database's thread: a request a message, its answer back. It ends when it is sent null. */
import { parentPort, workerData } from "node:worker_threads"
import { engineOf, messageOf, openGlite, type Opening } from "../store/database/Engine.ts"
import type { Word } from "../store/database/EngineThread.ts"

const say = (word: Word) => parentPort?.postMessage(word)

const opening: Opening = workerData
const opened = openGlite(opening)

opened.then(
  (db) => {
    const { ask, isOver } = engineOf(db, () => undefined)
    const failed = (error: unknown) =>
      say(isOver() ? { _tag: "Ended" } : { _tag: "Failed", message: messageOf(error) })
    parentPort?.on("message", (message: unknown) => {
      if (message instanceof Uint8Array)
        ask(message).then((answer) => parentPort?.postMessage(answer, [answer.buffer]), failed)
      else void (isOver() ? Promise.resolve() : db.close()).finally(() => parentPort?.close())
    })
    say({ _tag: "Opened" })
  },
  (error: unknown) => say({ _tag: "Refused", message: messageOf(error) })
)
