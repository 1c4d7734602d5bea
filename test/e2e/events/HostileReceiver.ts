/** A receiver of events that misbehaves by a seed: it remembers everything that it was sent, and what it took. */
import { execFileSync } from "node:child_process"
import * as Http from "node:http"
import * as Https from "node:https"
import type { AddressInfo } from "node:net"
import type { Random } from "../../faults/Random.ts"

/** A self-signed certificate for another name; null without `openssl`. */
export const wrongCertificate = (): { readonly key: string; readonly cert: string } | null => {
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
  const files = ["-keyout", "-", "-out", "-", "-days", "2", "-subj", "/CN=elsewhere.example"]
  try {
    const made = execFileSync("openssl", ["req", "-x509", ...curve, ...files], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"]
    })
    const [key = "", cert = ""] = made.split(/(?=-----BEGIN CERTIFICATE-----)/u)
    return { key, cert }
  } catch {
    return null
  }
}

export interface Call {
  readonly id: string
  readonly type: string
  readonly conversationId: string
  readonly runId: string | undefined
  readonly taken: boolean
}

/** What becomes of one call. */
const fates = [
  [60, "taken"],
  [6, "error"],
  [4, "busy"],
  [5, "redirect"],
  [6, "cut"],
  [3, "silent"],
  [3, "slow"],
  [3, "large"],
  [3, "half"]
] as const

/** Calls by the path of the address that they came to. */
export const startReceiver = async (
  random: Random,
  certificate: { readonly key: string; readonly cert: string }
) => {
  const calls = new Map<string, Array<Call>>()
  const state = { isHostile: true, strayed: 0, trusted: 0 }
  const fateOf = (path: string) => {
    if (!state.isHostile) return "taken"
    if (path === "/gone") return random.next() < 0.05 ? "gone" : "taken"
    return random.weighed(fates)
  }

  const server = Http.createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const path = request.url ?? ""
      if (path === "/elsewhere") state.strayed++
      const { data, type } = JSON.parse(Buffer.concat(chunks).toString())
      const fate = fateOf(path)
      const all = calls.get(path) ?? []
      calls.set(path, all)
      all.push({
        id: String(request.headers["webhook-id"]),
        type,
        conversationId: data.conversationId,
        runId: data.runId,
        taken: fate === "taken"
      })
      if (fate === "taken") response.writeHead(204).end()
      else if (fate === "gone") response.writeHead(410).end()
      else if (fate === "error") response.writeHead(500).end("Down for maintenance")
      else if (fate === "busy") response.writeHead(503, { "retry-after": "1" }).end()
      else if (fate === "redirect") response.writeHead(307, { location: "/elsewhere" }).end()
      else if (fate === "cut") request.socket.destroy()
      else if (fate === "large") response.writeHead(200).end(Buffer.alloc(200_000, "x"))
      else if (fate === "half") request.socket.end("HTTP/1.1 200 OK\r\ncontent-le")
      else if (fate === "slow") {
        response.writeHead(200)
        const drip = setInterval(() => response.write("."), 200)
        response.on("close", () => clearInterval(drip))
      }
      // A silent one never answers.
    })
  })
  // Nobody who checks certificates sends anything here.
  const wrong = Https.createServer(certificate, (_, response) => {
    state.trusted++
    response.writeHead(204).end()
  })
  const listening = async (one: Http.Server | Https.Server) => {
    await new Promise<void>((resolve) => one.listen(0, "127.0.0.1", resolve))
    return (one.address() as AddressInfo).port
  }
  const url = `http://127.0.0.1:${await listening(server)}`
  const wrongUrl = `https://127.0.0.1:${await listening(wrong)}`
  return {
    url,
    wrongUrl,
    state,
    /** In the order in which they came. */
    callsTo: (path: string): ReadonlyArray<Call> => calls.get(path) ?? [],
    stop: () => {
      for (const one of [server, wrong]) {
        one.closeAllConnections()
        one.close()
      }
    }
  }
}
