/** WhatsApp and Messenger as far as they are asked whose an account is: every token is taken for the account that it is used for. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"

/** Answers a question for an account and returns true; leaves everything else alone. A Page's token ends in `-{page id}`. */
export const answerAccount = (request: Http.IncomingMessage, response: Http.ServerResponse): boolean => {
  const asked = /\/([^/?]+)\?fields=id$/.exec(request.url ?? "")?.[1]
  if (request.method !== "GET" || asked === undefined) return false
  const id = asked === "me" ? (request.headers.authorization ?? "").split("-").at(-1) : asked
  response.writeHead(200, { "content-type": "application/json" })
  response.end(JSON.stringify({ id }))
  return true
}

let known: Promise<string> | undefined

/** Address of one that takes nothing else; it goes with its process. */
export const accountsUrl = (): Promise<string> =>
  (known ??= new Promise((resolve) => {
    const server = Http.createServer((request, response) => {
      if (!answerAccount(request, response)) response.writeHead(404).end()
    })
    server.unref()
    server.listen(0, "127.0.0.1", () =>
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v25.0`)
    )
  }))
