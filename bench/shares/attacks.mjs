/** Attacks of a hostile caller, by kind: it holds connections open, or sends requests without a pause. */
import { deliveryOf } from "./world.mjs"

const mebibyte = 2 ** 20

const head = (path, length, extraHeaders = "") =>
  `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n${extraHeaders}content-length: ${length}\r\n\r\n`

/** A line of 1 Gbit/s, which sends pieces for all sockets in turn. */
const makeLine = () => {
  const piece = Buffer.alloc(64 * 1_024, " ")
  const unsent = new Map()
  setInterval(() => {
    let budget = 1_250_000
    const next = []
    for (const [socket, bytes] of unsent) {
      if (budget <= 0) break
      unsent.delete(socket)
      if (socket.destroyed || bytes === 0) continue
      const size = socket.writableLength < mebibyte ? Math.min(piece.length, bytes) : 0
      budget -= size
      if (size > 0) socket.write(piece.subarray(0, size))
      next.push([socket, bytes - size])
    }
    for (const [socket, bytes] of next) unsent.set(socket, bytes)
  }, 10).unref()
  return { send: (socket, bytes) => unsent.set(socket, bytes) }
}

/** Sends one byte of the upload each second. */
const drip = (key) => (socket) => {
  const boundary = "----slow"
  socket.write(
    `POST /v1/sources/upload HTTP/1.1\r\nhost: a\r\nx-api-key: ${key}\r\n` +
      `content-type: multipart/form-data; boundary=${boundary}\r\ncontent-length: ${mebibyte}\r\n\r\n` +
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="slow.txt"\r\n\r\n`
  )
  const timer = setInterval(() => socket.write("x"), 1_000)
  socket.on("close", () => clearInterval(timer))
}

/** `hold(count, gap, begin)` keeps connections open, `crowd(count, next)` requests. */
export const makeAttacks = ({ crowd, hold, world: { account, conversation, key, slowSite } }) => {
  const json = { "x-api-key": key, "content-type": "application/json" }
  const line = makeLine()
  let count = 0
  return {
    "1,100 unsigned bodies of 4 MiB": () =>
      hold(1_100, 5_000, (socket) => {
        socket.write(head("/api/webhooks/whatsapp", 4 * mebibyte))
        line.send(socket, 4 * mebibyte - 1)
      }),
    "1,024 bodies that stop half-way": () =>
      hold(1_024, 5_000, (socket) => socket.write(`${head("/api/webhooks/billing", 2_000)}{"id":`)),
    "5,000 connections with slow headers": () =>
      hold(5_000, 5_000, (socket) => {
        socket.write("GET /healthz HTTP/1.1\r\nhost: a\r\nx-slow: ")
        const timer = setInterval(() => socket.write("x"), 3_000)
        socket.on("close", () => clearInterval(timer))
      }),
    "1,000 realtime sockets of one token": () =>
      hold(1_000, 5_000, (socket) =>
        socket.write(
          `GET /api/realtime?token=${conversation.realtimeToken} HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\n` +
            `upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${Buffer.alloc(16).toString("base64")}\r\n\r\n`
        )
      ),
    "64 slow uploads": () => hold(64, 5_000, drip(key)),
    "sources of pages that hardly come": () =>
      crowd(4, () => ({
        path: "/v1/sources",
        headers: json,
        body: JSON.stringify({
          type: "URL",
          name: `Slow ${++count}`,
          config: { url: `${slowSite}/slow/${count}` }
        })
      })),
    "sources of pages that take long to parse": () =>
      crowd(4, () => ({
        path: "/v1/sources",
        headers: json,
        body: JSON.stringify({
          type: "URL",
          name: `Large ${++count}`,
          config: { url: `${slowSite}/large/${count}` }
        })
      })),
    "80 sign-ins of unknown accounts": () =>
      crowd(80, () => ({
        path: "/api/auth/login",
        headers: { "content-type": "application/json", "x-spoke-csrf": "1" },
        body: JSON.stringify({ email: `nobody-${++count}@example.com`, password: "wrong horse battery" })
      })),
    "500 chat turns of one key": () =>
      crowd(500, () => ({
        path: "/v1/chat",
        headers: json,
        body: JSON.stringify({ message: `Hostile question ${++count}?` })
      })),
    "200 deliveries to one account": () =>
      crowd(200, () => {
        const { body, headers } = deliveryOf(account, `hostile.${++count}`)
        return {
          path: "/api/webhooks/whatsapp",
          body,
          headers: { ...headers, "content-type": "application/json" }
        }
      }),
    "64 dry runs of pages that hardly come": () =>
      crowd(64, () => ({
        path: "/v1/sources/dry-run",
        headers: json,
        body: JSON.stringify({ type: "URL", config: { url: `${slowSite}/slow/${++count}` } })
      }))
  }
}

/** The names of the attacks. */
export const attacks = Object.keys(makeAttacks({ world: {} }))
