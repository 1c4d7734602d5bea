/**
 * Connections of clients: how many there may be, for one address and in all, and how they end. A connection without a request
 * may be closed at any time; one that has a request is left alone, unless its client reads nothing of the answer.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { BlockList, Socket } from "node:net"
import * as Context from "effect/Context"
import { networkOf } from "../../domain/ClientNetwork.ts"
import { FairLimiter, type Permit } from "../../concurrency/FairLimiter.ts"
import { isProxy } from "./ClientAddress.ts"

/** Connections of one server, half of which one address may have; a trusted proxy may have all. */
export class ConnectionLimits extends Context.Reference<ConnectionLimits>()("http/Connections/Limits", {
  defaultValue: (): { readonly maxConnections: number; readonly maxStallMillis: number } => ({
    maxConnections: 8_192,
    maxStallMillis: 120_000
  })
}) {}

const refusal = [
  "HTTP/1.1 503 Service Unavailable",
  "retry-after: 5",
  "connection: close",
  "content-length: 0",
  "\r\n"
].join("\r\n")

interface Open {
  readonly permit: Permit
  /** Requests on it that are not answered. */
  requests: number
}

interface Stall {
  /** Bytes of the answer that the client's system had taken when it was last looked. */
  taken: number
  millis: number
}

export class Connections {
  readonly #limiter: FairLimiter
  readonly #maxPerAddress: number
  readonly #maxStallMillis: number
  readonly #proxies: BlockList
  readonly #open = new WeakMap<Socket, Open>()
  readonly #stalls = new WeakMap<Socket, Stall>()

  constructor({ maxConnections, maxStallMillis }: ConnectionLimits["Type"], proxies: BlockList) {
    this.#limiter = new FairLimiter({ name: "http-connections", permits: maxConnections })
    this.#maxPerAddress = Math.ceil(maxConnections / 2)
    this.#maxStallMillis = maxStallMillis
    this.#proxies = proxies
  }

  /** Takes a new connection; false when there are too many, and then it is closed. */
  accept(socket: Socket): boolean {
    const owner = networkOf(socket.remoteAddress)
    const isFull =
      this.#limiter.heldBy(owner) >= this.#maxPerAddress && !isProxy(this.#proxies, socket.remoteAddress)
    // Behind one address there may be many clients: the one that has been idle for longest makes room.
    const permit =
      isFull && !this.#limiter.revokeOldestOf(owner)
        ? null
        : this.#limiter.tryAcquire(owner, { onRevoked: () => void socket.destroy() })
    if (permit === null) {
      socket.on("error", () => {})
      socket.end(refusal, () => socket.destroy())
      return false
    }
    this.#open.set(socket, { permit, requests: 0 })
    socket.once("close", () => permit.release())
    return true
  }

  /** A request has come on the connection. */
  begin(socket: Socket): void {
    const open = this.#open.get(socket)
    if (open !== undefined && open.requests++ === 0) open.permit.setInUse(true)
  }

  /** It has been answered. */
  end(socket: Socket): void {
    const open = this.#open.get(socket)
    if (open !== undefined && --open.requests === 0) open.permit.setInUse(false)
  }

  /** Closes connections whose clients read nothing of an answer. `elapsed`: milliseconds since the last call. */
  sweep(elapsed: number, unanswered: ReadonlyMap<ServerResponse, IncomingMessage>): void {
    for (const [, { socket }] of unanswered) {
      const taken = socket.bytesWritten - socket.writableLength
      const stall = this.#stalls.get(socket)
      if (socket.writableLength === 0 || stall === undefined || stall.taken !== taken) {
        this.#stalls.set(socket, { taken, millis: 0 })
        continue
      }
      stall.millis += elapsed
      if (stall.millis > this.#maxStallMillis) socket.destroy()
    }
  }
}
