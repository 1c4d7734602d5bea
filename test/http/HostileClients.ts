/** Misbehaving clients with several addresses, over plain sockets. Every address of 127.0.0.0/8 is this machine. */
import * as Http from "node:http"
import { createConnection, type Socket } from "node:net"
import * as HttpServer from "@effect/platform/HttpServer"
import * as Effect from "effect/Effect"

export const portOf = Effect.map(HttpServer.HttpServer, ({ address }) => {
  if (address._tag !== "TcpAddress") throw new Error("The server has no port.")
  return address.port
})

export interface Client {
  readonly socket: Socket
  readonly send: (text: string | Uint8Array) => void
  /** Everything received so far. */
  readonly received: () => string
  readonly isClosed: () => boolean
  /** Resolves to everything received. */
  readonly closed: Promise<string>
}

/** A connection from `from`; it stays open when the other side ends its half. */
export const connect = (port: number, from = "127.0.0.1"): Promise<Client> =>
  new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: "127.0.0.1", localAddress: from, allowHalfOpen: false })
    let received = ""
    let closed = false
    const whenClosed = new Promise<string>((end) => {
      socket.once("close", () => {
        closed = true
        end(received)
      })
    })
    socket.setEncoding("latin1").on("data", (text) => (received += String(text)))
    socket.once("connect", () =>
      resolve({
        socket,
        send: (text) => void socket.write(text),
        received: () => received,
        isClosed: () => closed,
        closed: whenClosed
      })
    )
    socket.on("error", (error) => reject(error))
  })

export interface Answer {
  readonly status: number
  readonly headers: Http.IncomingHttpHeaders
  readonly text: string
}

/** A request on a connection of its own; status 0 and the error's code when it is not answered. */
export const ask = (
  port: number,
  path: string,
  {
    body,
    from = "127.0.0.1",
    headers = {},
    method = "GET"
  }: {
    readonly body?: string
    readonly from?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly method?: string
  } = {}
): Promise<Answer> =>
  new Promise((resolve) => {
    const request = Http.request(
      { port, host: "127.0.0.1", localAddress: from, path, method, headers, agent: false },
      (response) => {
        let text = ""
        response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk))
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text })
        )
        response.on("error", ({ message }) => resolve({ status: 0, headers: {}, text: message }))
      }
    )
    request.on("error", (error) =>
      resolve({ status: 0, headers: {}, text: "code" in error ? String(error.code) : error.message })
    )
    request.end(body)
  })

/** The sample of that name at `/metrics`, with the labels as they are written. */
export const metric = async (port: number, name: string): Promise<number> => {
  const { text } = await ask(port, "/metrics", { from: "127.0.0.99" })
  const line = text.split("\n").find((one) => one.startsWith(`${name} `))
  return line === undefined ? Number.NaN : Number(line.slice(name.length + 1))
}

export const limitMetric = (port: number, what: string, limit: string) =>
  metric(port, `spoke_limit_${what}{limit="${limit}"}`)

/** Waits until `check` holds, at most half a minute. `what` is for the error. */
export const eventually = async (what: string, check: () => boolean | Promise<boolean>): Promise<void> => {
  const end = Date.now() + 30_000
  while (!(await check())) {
    if (Date.now() > end) throw new Error(`Timed out: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
