/**
 * The embedded engine as `createPgConfig` drives it. That hands every message of the protocol over alone: six entries into
 * the engine a statement, and after an error in the middle of them the rest is taken for statements of its own, whose
 * answers the next statement gets. Here they are handed over together, as a server reads them.
 *
 * The engine works on this thread and answers in promises: a busy one would keep the process from ever looking at its
 * sockets. So before each statement everything else gets its turn.
 */
import type { PGlite } from "@electric-sql/pglite"

/** First bytes of messages that are answered at once: Sync, Query, Flush, Terminate, and those of a COPY. */
const answered: ReadonlySet<number | undefined> = new Set(
  [..."SQHXdcf"].map((letter) => letter.charCodeAt(0))
)

const turn = () => new Promise<void>((resolve) => void setImmediate(resolve))

/** `db` for one connection. */
export const courteous = (db: PGlite): PGlite => {
  let held: Array<Uint8Array> = []
  const execProtocolStream: PGlite["execProtocolStream"] = async (message, options) => {
    held.push(message)
    if (!answered.has(message[0])) return []
    const statement = Buffer.concat(held)
    held = []
    await turn()
    return await db.execProtocolStream(statement, options)
  }
  const engine: PGlite = Object.create(db, { execProtocolStream: { value: execProtocolStream } })
  return engine
}
