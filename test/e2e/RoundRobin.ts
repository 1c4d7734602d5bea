/** A load balancer: each request goes to the next server. Servers that do not listen are skipped. */
import * as Http from "node:http"
import * as Net from "node:net"

export interface RoundRobin {
  readonly url: string
  /** Number of requests that each server got, by address. */
  readonly given: ReadonlyMap<string, number>
  readonly close: () => void
}

/** `targets` is called for each request, so that servers may be added and removed. */
export const startRoundRobin = async (targets: () => ReadonlyArray<string>): Promise<RoundRobin> => {
  let turn = 0
  const given = new Map<string, number>()
  const next = () => {
    const all = targets()
    const target = all[turn++ % all.length]
    if (target === undefined) throw new Error("There is no server.")
    return target
  }

  const forward = (request: Http.IncomingMessage, response: Http.ServerResponse, attempts = 20) => {
    const target = next()
    const { hostname, port } = new URL(target)
    const outgoing = Http.request({
      hostname,
      port,
      // A new connection for each request. A reused one might be closed by the server at that moment.
      agent: false,
      method: request.method ?? "GET",
      path: request.url ?? "/",
      headers: [...request.rawHeaders]
    })
    outgoing.once("socket", (socket) => {
      socket.once("connect", () => {
        given.set(target, (given.get(target) ?? 0) + 1)
        request.pipe(outgoing)
      })
    })
    outgoing.once("response", (incoming) => {
      response.writeHead(incoming.statusCode ?? 502, incoming.rawHeaders)
      incoming.on("error", () => response.destroy())
      incoming.on("aborted", () => response.destroy())
      incoming.pipe(response)
    })
    outgoing.on("error", (error) => {
      // Nothing was sent, so only this error may be retried.
      if ("code" in error && error.code === "ECONNREFUSED" && attempts > 0) {
        setTimeout(() => forward(request, response, attempts - 1), 25)
      } else if (!response.headersSent) response.destroy()
    })
    // The server answered before the whole request had arrived. The rest is read, so that the client's connection can be
    // used for its next request.
    response.once("finish", () => {
      if (request.complete) return
      request.unpipe(outgoing)
      request.resume()
      outgoing.destroy()
    })
    response.once("close", () => {
      if (!response.writableFinished) outgoing.destroy()
    })
  }

  const server = Http.createServer((request, response) => forward(request, response))
  // Longer than the keep-alive of clients, so that no connection is closed that a client is about to use.
  server.keepAliveTimeout = 75_000
  server.on("upgrade", (request, socket, head) => {
    const target = next()
    const { hostname, port } = new URL(target)
    const upstream = Net.connect(Number(port), hostname, () => {
      given.set(target, (given.get(target) ?? 0) + 1)
      const headers = Array.from(
        { length: request.rawHeaders.length / 2 },
        (_, place) => `${request.rawHeaders[2 * place]}: ${request.rawHeaders[2 * place + 1]}`
      )
      upstream.write([`${request.method} ${request.url} HTTP/1.1`, ...headers, "", ""].join("\r\n"))
      upstream.write(head)
      upstream.pipe(socket)
      socket.pipe(upstream)
    })
    upstream.on("error", () => socket.destroy())
    socket.on("error", () => upstream.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`,
    given,
    close: () => {
      server.close()
      server.closeAllConnections()
    }
  }
}
