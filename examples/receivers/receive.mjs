/**
 * What a receiver of events needs: `receive` listens, verifies each event, and hands it to a function that may fail. An event is
 * answered 2xx once it is handled, so that Spoke sends it again until then; what is sent again after that is not handled twice.
 */
import * as Fs from "node:fs"
import * as Http from "node:http"
import { Webhook } from "standardwebhooks"

const maxBodyBytes = 1024 * 1024
/** Longer than Spoke sends an event again: ids of three days, of a busy installation. */
const maxHandledIds = 100_000

/** Thrown by a handler that knows when it is worth another try, in seconds. */
export class TryLater extends Error {
  constructor(message, retryAfterSeconds) {
    super(message)
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** The ids of events that were handled, in a file of one a line, so that a restart does not forget them. */
const openHandled = (file) => {
  const lines = Fs.existsSync(file) ? Fs.readFileSync(file, "utf8").split("\n") : []
  // The end of a line may be missing after a crash: that event is handled again.
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

/** Undefined for one that is too large: it is read to its end, so that its sender hears the answer, but not kept. */
const readBody = async (request) => {
  const chunks = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes <= maxBodyBytes) chunks.push(chunk)
  }
  return bytes <= maxBodyBytes ? Buffer.concat(chunks).toString() : undefined
}

/** The event, or undefined where the signature is not Spoke's, or is older than five minutes. */
const verified = (verifier, body, headers) => {
  try {
    return verifier.verify(body, headers)
  } catch {
    return undefined
  }
}

/**
 * Listens until the process is told to stop. `handle` gets each event, `{ id, type, timestamp, data }`, and resolves once it is
 * handled. Environment: `SPOKE_WEBHOOK_SECRET`, `PORT` (4000), `HANDLED_FILE` (handled.txt).
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
    // The first call has not ended: what becomes of it is not known yet.
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
      // The connection broke while the body came.
      () => response.destroy()
    )
  })
  await new Promise((resolve) => server.listen(Number(env.PORT ?? 4000), "127.0.0.1", resolve))
  console.log(`Listening at http://127.0.0.1:${server.address().port}`)
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => server.close())
}
