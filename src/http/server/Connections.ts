/**
 * Limits client connections, per address and in total. A connection without a request may be closed at any time. One
 * with a request is closed only if its client does not read the response.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { BlockList, Socket } from "node:net"
import * as Context from "effect/Context"
import { networkOf } from "../../domain/ClientNetwork.ts"
import { FairLimiter, type Permit } from "../../concurrency/FairLimiter.ts"
import { isProxy } from "./ClientAddress.ts"

/** Maximum connections of one server. One address may have half of them, a trusted proxy all. */
export class ConnectionLimits extends Context.Reference<ConnectionLimits>()("http/Connections/Limits", {
  defaultValue: (): { readonly maxConnections: number; readonly maxStallMillis: number } => ({
    maxConnections: 8_192,
    maxStallMillis: 120_000
  })
}) {}

const refusalText = [
  "HTTP/1.1 503 Service Unavailable",
  "retry-after: 5",
  "connection: close",
  "content-length: 0",
  "\r\n"
].join("\r\n")

interface OpenConnection {
  readonly permit: Permit
  /** Number of its unanswered requests. */
  requests: number
}

interface Stall {
  /** Bytes that the socket had sent at the last check. */
  sentBytes: number
  millis: number
}

export class Connections {
  readonly #limiter: FairLimiter
  readonly #maxPerAddress: number
  readonly #maxStallMillis: number
  readonly #proxies: BlockList
  readonly #open = new WeakMap<Socket, OpenConnection>()
  readonly #stalls = new WeakMap<Socket, Stall>()
  /** Connections that asked for another protocol, until they are closed. */
  readonly #upgraded = new Set<Socket>()

  constructor({ maxConnections, maxStallMillis }: ConnectionLimits["Type"], proxies: BlockList) {
    this.#limiter = new FairLimiter({ name: "http-connections", permits: maxConnections })
    this.#maxPerAddress = Math.ceil(maxConnections / 2)
    this.#maxStallMillis = maxStallMillis
    this.#proxies = proxies
  }

  /** Accepts a new connection, or returns false and closes it when there are too many. */
  accept(socket: Socket): boolean {
    const owner = networkOf(socket.remoteAddress)
    const isFull =
      this.#limiter.heldBy(owner) >= this.#maxPerAddress && !isProxy(this.#proxies, socket.remoteAddress)
    // Many clients may share an address: its connection that has been idle longest is closed for the new one.
    const permit =
      isFull && !this.#limiter.revokeOldestOf(owner)
        ? null
        : this.#limiter.tryAcquire(owner, { onRevoked: () => void socket.destroy() })
    if (permit === null) {
      socket.on("error", () => {})
      socket.end(refusalText, () => socket.destroy())
      return false
    }
    this.#open.set(socket, { permit, requests: 0 })
    socket.once("close", () => permit.release())
    return true
  }

  /** Records a request on the connection. */
  beginRequest(socket: Socket): void {
    const open = this.#open.get(socket)
    if (open !== undefined && open.requests++ === 0) open.permit.setInUse(true)
  }

  /** Records a request for another protocol, which owns the connection until it is closed. */
  beginUpgrade(socket: Socket): void {
    this.beginRequest(socket)
    if (socket.destroyed) return
    this.#upgraded.add(socket)
    socket.once("close", () => this.#upgraded.delete(socket))
  }

  /** True while any connection belongs to another protocol. */
  get hasUpgraded(): boolean {
    return this.#upgraded.size > 0
  }

  /** Records the end of a request. */
  endRequest(socket: Socket): void {
    const open = this.#open.get(socket)
    if (open !== undefined && --open.requests === 0) open.permit.setInUse(false)
  }

  /**
   * Closes connections whose clients do not read a response, and connections of another protocol to which nothing is
   * sent. `elapsed`: milliseconds since the last call.
   */
  sweep(elapsed: number, unanswered: ReadonlyMap<ServerResponse, IncomingMessage>): void {
    for (const [, { socket }] of unanswered) this.#checkStall(socket, socket.writableLength > 0, elapsed)
    // Realtime sockets get a ping every half minute. An HTTP answer to a handshake stops when it is not read.
    for (const socket of this.#upgraded) this.#checkStall(socket, true, elapsed)
  }

  #checkStall(socket: Socket, mustProgress: boolean, elapsed: number): void {
    const sentBytes = socket.bytesWritten - socket.writableLength
    const stall = this.#stalls.get(socket)
    if (!mustProgress || stall === undefined || stall.sentBytes !== sentBytes) {
      this.#stalls.set(socket, { sentBytes, millis: 0 })
      return
    }
    stall.millis += elapsed
    if (stall.millis > this.#maxStallMillis) socket.destroy()
  }
}
