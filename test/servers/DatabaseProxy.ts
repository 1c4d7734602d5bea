/** A relay between a service and its PostgreSQL that can be taken away, as when the server restarts or fails over. */
import * as Effect from "effect/Effect"
import * as Net from "node:net"

/** The address of a relay to `url`, and what a test does to it. */
export const databaseProxy = (url: string) =>
  Effect.gen(function* () {
    const { hostname, port } = new URL(url)
    const sockets = new Set<Net.Socket>()
    let cutAfter: string | null = null
    const cutAll = () => {
      for (const socket of sockets) socket.destroy()
    }
    const server = yield* Effect.acquireRelease(
      Effect.async<Net.Server>((resume) => {
        const listening = Net.createServer((client) => {
          const upstream = Net.connect({ host: hostname, port: Number(port) })
          let isDeaf = false
          for (const [one, other] of [
            [client, upstream],
            [upstream, client]
          ] as const) {
            sockets.add(one)
            one.on("error", () => {})
            one.on("close", () => {
              sockets.delete(one)
              other.destroy()
            })
          }
          client.on("data", (data) => {
            if (cutAfter !== null && data.includes(cutAfter)) {
              cutAfter = null
              isDeaf = true
            }
            upstream.write(data)
          })
          // The answer proves that the server has executed the statement.
          upstream.on("data", (data) => (isDeaf ? client.destroy() : void client.write(data)))
        })
        listening.listen(0, "127.0.0.1", () => resume(Effect.succeed(listening)))
      }),
      (listening) =>
        Effect.sync(() => {
          cutAll()
          listening.close()
        })
    )
    const own = new URL(url)
    own.port = String((server.address() as Net.AddressInfo).port)
    return {
      url: own.href,
      /** Ends all connections and accepts none. */
      close: Effect.sync(() => {
        server.close()
        cutAll()
      }),
      open: Effect.sync(() => void server.listen(Number(own.port), "127.0.0.1")),
      /** Ends the connection on which the next statement with `text` was sent, in place of its answer. */
      loseAnswerTo: (text: string) =>
        Effect.sync(() => {
          cutAfter = text
        })
    } as const
  })
