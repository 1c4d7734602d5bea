/**
 * Hostile callers, one for each limit that callers share: from one address, with the key of a tenant of their own.
 * Other callers with a small load must be served meanwhile.
 */
import { createHmac } from "node:crypto"
import { setTimeout as delay } from "node:timers/promises"
import { ask, type Client, connect } from "../http/HostileClients.ts"
import type { Random } from "./Random.ts"

/** The hostile caller's own tenant, and the tenants that it must not harm. */
export interface Callers {
  /** Address of a server process. */
  readonly url: () => string
  readonly hostileKey: string
  /** The token of a visitor of the same tenant. */
  readonly hostileToken: string
  readonly otherKey: string
  readonly appSecret: string
}

const hostileAddress = "127.0.0.2"
const otherAddress = "127.0.0.3"
const mebibyte = 1_048_576
const json = { "content-type": "application/json" }

const head = (path: string, headers: string, length: number) =>
  `POST ${path} HTTP/1.1\r\nhost: a\r\n${headers}content-length: ${length}\r\n\r\n`

const slowUpload = (key: string) =>
  head(
    "/v1/sources/upload",
    `x-api-key: ${key}\r\ncontent-type: multipart/form-data; boundary=slow\r\n`,
    mebibyte
  ) + '--slow\r\ncontent-disposition: form-data; name="file"; filename="slow.txt"\r\n\r\nAnd so on'

const socketOf = (token: string) =>
  `GET /api/realtime?token=${token} HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
  "sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"

/** Opens connections that send `first` and stay open. Returns a function that closes them. */
const hold = async (port: number, count: number, first: ReadonlyArray<string | Uint8Array>) => {
  const open = await Promise.allSettled(
    Array.from({ length: count }, async () => {
      const client: Client = await connect(port, hostileAddress)
      client.socket.on("error", () => undefined)
      for (const part of first) client.send(part)
      return client
    })
  )
  return () => {
    for (const one of open) if (one.status === "fulfilled") one.value.socket.destroy()
  }
}

/** Sends requests without a pause, `count` at once. Returns a function that stops them. */
const crowd = async (
  port: number,
  count: number,
  path: string,
  headers: Record<string, string>,
  body: string
) => {
  let over = false
  const asking = Array.from({ length: count }, async () => {
    while (!over) {
      await ask(port, path, { method: "POST", from: hostileAddress, headers: { ...json, ...headers }, body })
      await delay(20)
    }
  })
  return () => {
    over = true
    return Promise.all(asking)
  }
}

const attacksOf = ({ hostileKey, hostileToken }: Callers) =>
  ({
    "half of bodies": (port) =>
      hold(port, 300, [head("/api/webhooks/billing", "content-type: application/json\r\n", 2_000), '{"id":']),
    "large bodies that nobody has signed": (port) =>
      hold(port, 60, [
        head("/api/webhooks/whatsapp", "content-type: application/json\r\n", 4 * mebibyte),
        Buffer.alloc(4 * mebibyte - 1, " ")
      ]),
    "headers that never end": (port) => hold(port, 500, ["GET /healthz HTTP/1.1\r\nhost: a\r\nx-slow: "]),
    "sockets of one visitor": (port) => hold(port, 200, [socketOf(hostileToken)]),
    "slow uploads": (port) => hold(port, 32, [slowUpload(hostileKey)]),
    "a crowd of searches": (port) =>
      crowd(port, 100, "/v1/retrieve", { "x-api-key": hostileKey }, '{"query":"granite"}'),
    "sign-ins of nobody": (port) =>
      crowd(
        port,
        80,
        "/api/auth/login",
        { "x-spoke-csrf": "1" },
        '{"email":"nobody@example.com","password":"wrong horse battery"}'
      )
  }) satisfies Record<string, (port: number) => Promise<() => unknown>>

/** Requests of the other callers; none of them changes anything. */
const probesOf = ({ appSecret, otherKey }: Callers) => {
  const key = { "x-api-key": otherKey }
  const delivery = '{"entry":[]}'
  const signature = `sha256=${createHmac("sha256", appSecret).update(delivery).digest("hex")}`
  return [
    { path: "/healthz" },
    { path: "/v1/sources", headers: key },
    { path: "/v1/retrieve", method: "POST", headers: { ...json, ...key }, body: '{"query":"granite"}' },
    {
      path: "/api/webhooks/whatsapp",
      method: "POST",
      headers: { ...json, "x-hub-signature-256": signature },
      body: delivery
    }
  ] as const
}

/** One fault for each attack; `refused` collects other callers' requests that failed meanwhile. `ready` waits for the servers. */
export const hostileFaults = (
  callers: Callers,
  random: Random,
  ready: () => Promise<void>,
  refused: (sentence: string) => void
): ReadonlyArray<readonly [name: string, inflict: () => Promise<void>]> =>
  Object.entries(attacksOf(callers)).map(([name, attack]) => [
    `a hostile caller with ${name}`,
    async () => {
      await ready()
      const port = Number(new URL(callers.url()).port)
      const end = Date.now() + 1_000 + random.below(2_000)
      const stop = await attack(port)
      try {
        while (Date.now() < end) {
          for (const { path, ...request } of probesOf(callers)) {
            const { status, text } = await ask(port, path, { from: otherAddress, ...request })
            if (status !== 200) refused(`${path} of others was answered ${status} beside ${name}: ${text}`)
          }
          await delay(100)
        }
      } finally {
        await stop()
      }
    }
  ])
