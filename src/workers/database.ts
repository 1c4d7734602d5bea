/** Entry of the embedded database's thread: a request a message, its answer back. It ends when it is sent null. */
import { parentPort, workerData } from "node:worker_threads"
import { engineOf, openGlite, type Opening } from "../store/database/Engine.ts"
import type { Word } from "../store/database/EngineThread.ts"

const say = (word: Word) => parentPort?.postMessage(word)

const opening: Opening = workerData
const opened = openGlite(opening)

opened.then(
  (db) => {
    const { ask, isOver } = engineOf(db, () => undefined)
    const answer = (said: Uint8Array<ArrayBuffer> | Error) => {
      if (said instanceof Uint8Array) parentPort?.postMessage(said, [said.buffer])
      else if (isOver()) say({ _tag: "Ended" })
      else say({ _tag: "Failed", message: said.message })
    }
    parentPort?.on("message", (message: unknown) => {
      if (message instanceof Uint8Array) ask(message, answer)
      else void (isOver() ? Promise.resolve() : db.close()).finally(() => parentPort?.close())
    })
    say({ _tag: "Opened" })
  },
  (error: unknown) =>
    say({ _tag: "Refused", message: error instanceof Error ? error.message : String(error) })
)
