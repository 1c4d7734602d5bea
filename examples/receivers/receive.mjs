/**
 * The common part of event receivers: `receive` listens, verifies each event, and passes it to a function that may
 * fail. An event is answered with 2xx after it was handled. Until then Spoke sends it again. A repeat of a handled
 * event is not handled again.
 */
import * as Fs from "node:fs"
import * as Http from "node:http"
import { Webhook } from "standardwebhooks"

const maxBodyBytes = 1024 * 1024
/** More ids than Spoke repeats: three days of events of a busy installation. */
const maxHandledIds = 100_000

/** Thrown by a handler to request another attempt after a number of seconds. */
export class TryLater extends Error {
  constructor(message, retryAfterSeconds) {
    super(message)
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** The ids of handled events, in a file with one id on each line, so that they survive a restart. */
const openHandled = (file) => {
  const lines = Fs.existsSync(file) ? Fs.readFileSync(file, "utf8").split("\n") : []
  // After a crash the last line may be incomplete. Its event is then handled again.
  const ids = new Set(lines.slice(0, -1).slice(-maxHandledIds))
  Fs.writeFileSync(file, [...ids, ""].join("\n"))
  return {
    has: (id) => ids.has(id),
    add: (id) => {
      Fs.appendFileSync(file, `${id}\n`)
      ids.add(id)
      for (const oldest of ids) {
        if (ids.size <= maxHandledIds) break
        ids.delete(oldest)
      }
    }
  }
}

/** Undefined if the body is too large. It is read to its end, so that the sender gets the answer, but not stored. */
const readBody = async (request) => {
  const chunks = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes <= maxBodyBytes) chunks.push(chunk)
  }
  return bytes <= maxBodyBytes ? Buffer.concat(chunks).toString() : undefined
}

/** The event, or undefined if the signature is invalid or older than five minutes. */
const verified = (verifier, body, headers) => {
  try {
    return verifier.verify(body, headers)
  } catch {
    return undefined
  }
}

/**
 * Listens until the process is stopped. `handle` gets each event, `{ id, type, timestamp, data }`, and resolves after
 * it was handled. Environment: `SPOKE_WEBHOOK_SECRET`, `PORT` (4000), `HANDLED_FILE` (handled.txt).
 */
export const receive = async (handle, env = process.env) => {
  const verifier = new Webhook(env.SPOKE_WEBHOOK_SECRET ?? "")
  const handled = openHandled(env.HANDLED_FILE ?? "handled.txt")
  const running = new Set()

  const answer = async (request) => {
    if (request.method !== "POST") return [405, {}]
    const body = await readBody(request)
    if (body === undefined) return [413, {}]
    const event = verified(verifier, body, request.headers)
    if (event === undefined) return [401, {}]
    const id = request.headers["webhook-id"]
    if (handled.has(id)) return [204, {}]
    // The first call has not ended, so its result is unknown.
    if (running.has(id)) return [503, { "retry-after": "10" }]
    running.add(id)
    try {
      await handle({ id, ...event })
      handled.add(id)
      return [204, {}]
    } catch (error) {
      console.error(`${event.type} ${id}: ${error.message}`)
      return [503, error.retryAfterSeconds ? { "retry-after": String(error.retryAfterSeconds) } : {}]
    } finally {
      running.delete(id)
    }
  }

  const server = Http.createServer((request, response) => {
    answer(request).then(
      ([status, headers]) => response.writeHead(status, headers).end(),
      // The connection broke while the body was received.
      () => response.destroy()
    )
  })
  await new Promise((resolve) => server.listen(Number(env.PORT ?? 4000), "127.0.0.1", resolve))
  console.log(`Listening at http://127.0.0.1:${server.address().port}`)
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => server.close())
}
