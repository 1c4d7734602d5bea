/** A server that tools call: it remembers what it was sent and echoes all of it, in every encoding it can think of. */
import * as Effect from "effect/Effect"
import type * as Http from "node:http"
import { serveScoped } from "../../servers/Loopback.ts"

export interface Received {
  readonly method: string
  readonly url: string
  readonly headers: Http.IncomingHttpHeaders
  readonly body: string
}

const echo = ({ url, headers, body }: Received) => {
  const all = `${decodeURIComponent(url)} ${JSON.stringify(headers)} ${body}`
  return {
    url,
    headers,
    body,
    base64: Buffer.from(`x${all}`).toString("base64"),
    hex: Buffer.from(all).toString("hex"),
    encoded: encodeURIComponent(all),
    nested: JSON.stringify(JSON.stringify(all)),
    [`key ${headers["authorization"]}`]: 1
  }
}

const toolCall = (
  message: { readonly params: { readonly name: string; readonly arguments: unknown } },
  received: Received
) => ({
  content: [
    {
      type: "text",
      text: `${message.params.name} ${JSON.stringify(message.params.arguments)} ${JSON.stringify(echo(received))}`
    }
  ]
})

const rpc = (received: Received) => {
  const message = JSON.parse(received.body)
  const results: Record<string, () => unknown> = {
    initialize: () => ({
      protocolVersion: "2025-06-18",
      capabilities: {},
      serverInfo: { name: "t", version: "1" }
    }),
    "tools/list": () => ({
      tools: [
        {
          name: "find.it",
          description: "Finds.",
          inputSchema: { type: "object", properties: { q: { type: "string" } }, required: ["q"] }
        }
      ]
    }),
    "tools/call": () => toolCall(message, received)
  }
  return { jsonrpc: "2.0", id: message.id, result: results[message.method]?.() }
}

/** What it answers at a path, as it is, in place of the echo; of the MCP server's, the result of every call. */
export type Answers = Map<string, string>

const respond = (received: Received, response: Http.ServerResponse, answers: Answers) => {
  const { url, body } = received
  const scripted = answers.get(url)
  if (scripted !== undefined && !url.startsWith("/mcp")) {
    response.writeHead(200, { "content-type": "application/json" })
    return void response.end(scripted)
  }
  if (url.startsWith("/hang")) return
  if (url.startsWith("/large")) return void response.end("x".repeat(url.length > 8 ? 300_000 : 60_000))
  if (url.startsWith("/mcp")) {
    if (JSON.parse(body).id === undefined) return void response.writeHead(202).end()
    if (url === "/mcp-stuck" && JSON.parse(body).method === "tools/call") return
    const sse = JSON.parse(body).method === "tools/call"
    const answer =
      sse && scripted !== undefined
        ? `{"jsonrpc":"2.0","id":${JSON.parse(body).id},"result":${scripted}}`
        : JSON.stringify(rpc(received))
    response.writeHead(200, {
      "content-type": sse ? "text/event-stream" : "application/json",
      "mcp-session-id": "session-1"
    })
    return void response.end(sse ? `: hello\n\nevent: message\ndata: ${answer}\n\n` : answer)
  }
  response.writeHead(url.startsWith("/fail") ? 500 : 200, { "content-type": "application/json" })
  response.end(JSON.stringify(echo(received)))
}

/** Its address and what it has received, for as long as the scope is open. */
export const toolServer = Effect.gen(function* () {
  const received: Array<Received> = []
  const answers: Answers = new Map()
  const url = yield* serveScoped((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const { method = "", url: path = "", headers } = request
      // The end of a session of MCP comes at any time after a turn.
      if (method === "DELETE" && path.startsWith("/mcp")) return void response.writeHead(405).end()
      const one = { method, url: path, headers, body: Buffer.concat(chunks).toString() }
      received.push(one)
      respond(one, response, answers)
    })
  })
  return { url, received, answers } as const
})
