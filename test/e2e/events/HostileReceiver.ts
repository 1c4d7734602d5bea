/** A receiver of events that misbehaves at random, by a seed. It records every call, and whether it accepted it. */
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

/** Behaviours with their weights. */
const behaviours = [
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

/** Records calls by the path of their address. */
export const startReceiver = async (
  random: Random,
  certificate: { readonly key: string; readonly cert: string }
) => {
  const calls = new Map<string, Array<Call>>()
  const state = { isHostile: true, followedRedirects: 0, callsWithWrongCertificate: 0 }
  const behaviourOf = (path: string) => {
    if (!state.isHostile) return "taken"
    if (path === "/gone") return random.next() < 0.05 ? "gone" : "taken"
    return random.weighed(behaviours)
  }

  const server = Http.createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const path = request.url ?? ""
      if (path === "/elsewhere") state.followedRedirects++
      const { data, type } = JSON.parse(Buffer.concat(chunks).toString())
      const behaviour = behaviourOf(path)
      const all = calls.get(path) ?? []
      calls.set(path, all)
      all.push({
        id: String(request.headers["webhook-id"]),
        type,
        conversationId: data.conversationId,
        runId: data.runId,
        taken: behaviour === "taken"
      })
      if (behaviour === "taken") response.writeHead(204).end()
      else if (behaviour === "gone") response.writeHead(410).end()
      else if (behaviour === "error") response.writeHead(500).end("Down for maintenance")
      else if (behaviour === "busy") response.writeHead(503, { "retry-after": "1" }).end()
      else if (behaviour === "redirect") response.writeHead(307, { location: "/elsewhere" }).end()
      else if (behaviour === "cut") request.socket.destroy()
      else if (behaviour === "large") response.writeHead(200).end(Buffer.alloc(200_000, "x"))
      else if (behaviour === "half") request.socket.end("HTTP/1.1 200 OK\r\ncontent-le")
      else if (behaviour === "slow") {
        response.writeHead(200)
        const drip = setInterval(() => response.write("."), 200)
        response.on("close", () => clearInterval(drip))
      }
      // "silent" never answers.
    })
  })
  // A client that verifies certificates sends nothing here.
  const wrong = Https.createServer(certificate, (_, response) => {
    state.callsWithWrongCertificate++
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
