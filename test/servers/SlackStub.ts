/** Slack on loopback: it knows apps by their tokens, takes messages as told, and remembers what it took. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"

/** What becomes of a message; `lost` takes it and cuts the connection before its answer. */
type SlackFate = "taken" | "lost" | "limited" | "refused"

interface SlackMessage {
  readonly token: string
  readonly channel: string
  readonly text: string
  readonly thread_ts?: string
}

/** `fateOf` is asked with the channel, and the place of the call among those for it, from 1. */
export const startSlack = async (fateOf: (channel: string, call: number) => SlackFate = () => "taken") => {
  /** The user of the app in its workspace, by token. */
  const apps = new Map<string, { readonly team: string; readonly user: string }>()
  const taken: Array<SlackMessage> = []
  const begun = new Map<string, number>()
  const server = Http.createServer((request, response) => {
    let text = ""
    request.on("data", (chunk: Buffer) => (text += chunk.toString()))
    request.on("end", () => {
      const answer = (status: number, json: object, headers = {}) => {
        response.writeHead(status, { "content-type": "application/json", ...headers })
        response.end(JSON.stringify(json))
      }
      const token = (request.headers.authorization ?? "").replace("Bearer ", "")
      const app = apps.get(token)
      if (app === undefined) return answer(200, { ok: false, error: "invalid_auth" })
      if (request.url === "/auth.test")
        return answer(200, { ok: true, team_id: app.team, user_id: app.user, bot_id: "B1" })
      if (request.url !== "/chat.postMessage") return answer(200, { ok: false, error: "unknown_method" })
      const message = { token, ...JSON.parse(text) }
      const call = (begun.get(message.channel) ?? 0) + 1
      begun.set(message.channel, call)
      const fate = fateOf(message.channel, call)
      if (fate === "limited") return answer(429, { ok: false, error: "ratelimited" }, { "retry-after": "1" })
      if (fate === "refused") return answer(200, { ok: false, error: "channel_not_found" })
      taken.push(message)
      if (fate === "lost") return request.socket.destroy()
      return answer(200, { ok: true, channel: message.channel, ts: `1700000000.00000${taken.length}` })
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    apps,
    taken,
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}
