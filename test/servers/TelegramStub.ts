/** Telegram on loopback: it knows bots by their tokens, takes messages as told, and remembers what it took. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"

/** What becomes of a message; `lost` takes it and cuts the connection before its answer. */
type TelegramFate = "taken" | "lost" | "limited" | "refused"

interface TelegramCall {
  readonly bot: string
  readonly method: string
  /** Fields of the call; of a form the text of it. */
  readonly body: ReturnType<typeof JSON.parse>
}

const refusals = {
  limited: { status: 429, description: "Too Many Requests: retry after 1", parameters: { retry_after: 1 } },
  refused: { status: 403, description: "Forbidden: bot was blocked by the user", parameters: undefined }
} as const

/** `fateOf` is asked with the chat, and the place of the call among those for it, from 1. */
export const startTelegram = async (fateOf: (chat: string, call: number) => TelegramFate = () => "taken") => {
  /** User names of the bots by token; the id is what stands before the colon. */
  const bots = new Map<string, string>()
  /** Bytes by file id. */
  const files = new Map<string, Uint8Array>()
  const calls: Array<TelegramCall> = []
  const taken: Array<TelegramCall> = []
  const begun = new Map<string, number>()
  const server = Http.createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const [, isFile, token = "", method = ""] =
        /^(\/file)?\/bot([^/]+)\/(.+)$/.exec(request.url ?? "") ?? []
      const answer = (status: number, json: object) => {
        response.writeHead(status, { "content-type": "application/json" })
        response.end(JSON.stringify(json))
      }
      const username = bots.get(token)
      if (username === undefined)
        return answer(401, { ok: false, error_code: 401, description: "Unauthorized" })
      if (isFile !== undefined) {
        const bytes = files.get(method.replace("documents/", ""))
        return bytes === undefined ? answer(404, { ok: false, error_code: 404 }) : response.end(bytes)
      }
      const raw = Buffer.concat(chunks).toString()
      const isForm = request.headers["content-type"]?.startsWith("multipart/") === true
      const call = { bot: token.split(":").join(":"), method, body: isForm ? raw : JSON.parse(raw) }
      calls.push(call)
      const [id] = token.split(":")
      if (method === "getMe")
        return answer(200, { ok: true, result: { id: Number(id), is_bot: true, username } })
      if (method === "getFile")
        return answer(200, {
          ok: true,
          result: { file_id: call.body.file_id, file_path: `documents/${call.body.file_id}`, file_size: 10 }
        })
      if (!/^send(Message|Photo|Document)$/.test(method)) return answer(200, { ok: true, result: true })
      const chat = String(call.body.chat_id)
      const place = (begun.get(chat) ?? 0) + 1
      begun.set(chat, place)
      const fate = fateOf(chat, place)
      if (fate === "limited" || fate === "refused") {
        const { description, parameters, status } = refusals[fate]
        return answer(status, { ok: false, error_code: status, description, parameters })
      }
      taken.push(call)
      if (fate === "lost") return request.socket.destroy()
      return answer(200, { ok: true, result: { message_id: taken.length, text: call.body.text } })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bots,
    files,
    calls,
    taken,
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}
