/** Stands in for PostgreSQL servers that a test cannot start: one that refuses every connection, or is too old. */
import * as Net from "node:net"
import type { AddressInfo } from "node:net"
import { TLSSocket } from "node:tls"
import * as Effect from "effect/Effect"

const message = (type: string, body: Buffer): Buffer => {
  const head = Buffer.alloc(5)
  head.write(type, 0, "latin1")
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const text = (value: string): Buffer => Buffer.from(`${value}\0`, "utf8")

const int = (value: number, size: 2 | 4): Buffer => {
  const bytes = Buffer.alloc(size)
  if (size === 2) bytes.writeInt16BE(value)
  else bytes.writeInt32BE(value)
  return bytes
}

/** What a refusing server says. */
export interface Refusal {
  readonly code: string
  readonly message: string
  readonly detail?: string
}

const refused = ({ code, detail, message: said }: Refusal): Buffer =>
  message(
    "E",
    Buffer.concat([
      text("SFATAL"),
      text(`C${code}`),
      text(`M${said}`),
      ...(detail === undefined ? [] : [text(`D${detail}`)]),
      Buffer.from([0])
    ])
  )

const ready = message("Z", Buffer.from("I"))
const welcome = Buffer.concat([message("R", int(0, 4)), ready])

/** One row of texts. */
const row = (columns: Readonly<Record<string, string>>): Buffer => {
  const fields = Object.keys(columns).map((name) =>
    Buffer.concat([text(name), int(0, 4), int(0, 2), int(25, 4), int(-1, 2), int(-1, 4), int(0, 2)])
  )
  const values = Object.values(columns).flatMap((value) => [
    int(Buffer.byteLength(value), 4),
    Buffer.from(value)
  ])
  const count = int(fields.length, 2)
  return Buffer.concat([
    message("T", Buffer.concat([count, ...fields])),
    message("D", Buffer.concat([count, ...values])),
    message("C", text("SELECT 1")),
    ready
  ])
}

/** The address of a server that handles connections with `serve`. */
const listening = (serve: (socket: Net.Socket) => void) =>
  Effect.acquireRelease(
    Effect.async<Net.Server>((resume) => {
      const server = Net.createServer((socket) => {
        socket.on("error", () => {})
        serve(socket)
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => void server.close())
  ).pipe(
    Effect.map((server) => {
      // A server that listens on a port says so.
      const { port } = server.address() as AddressInfo
      return `postgres://spoke:hunter2@127.0.0.1:${port}/spoke`
    })
  )

/** The address of a server that has this certificate, and refuses whoever accepts it. */
export const tlsStub = (certificate: { readonly key: string; readonly cert: string }) =>
  listening((socket) => {
    socket.once("data", () => {
      socket.write("S")
      const secured = new TLSSocket(socket, { isServer: true, ...certificate })
      secured.on("error", () => {})
      secured.once("data", () => secured.end(refused({ code: "28P01", message: "let in by TLS" })))
    })
  })

/** Its address. `answer` is what it says at the start of every session, or the row that it answers every statement with. */
export const postgresStub = (answer: Refusal | Readonly<{ row: Readonly<Record<string, string>> }>) =>
  listening((socket) => {
    let welcomed = false
    socket.on("data", () => {
      if (!("row" in answer)) return socket.end(refused(answer))
      socket.write(welcomed ? row(answer.row) : welcome)
      welcomed = true
    })
  })
