/** Connections to checked addresses only, kept alive for further requests to the same destination. */
import type { LookupFunction } from "node:net"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { buildConnector, Pool } from "undici"
import { canonical } from "./AddressRules.ts"
import type { Destination } from "./Destination.ts"

/** Maximum number of unused pools. */
const maxIdlePools = 64
/** Maximum number of connections to one destination; further requests wait. */
const maxConnectionsPerDestination = 8
const connectTimeoutMs = 10_000
/** Time-out in milliseconds for one of several addresses, before the next one is tried. */
const attemptTimeoutMs = 1_000
const keepAliveMs = 4_000
const maxHeaderBytes = 64 * 1_024

const familyOf = (address: string): 4 | 6 => (address.includes(":") ? 6 : 4)

/** Always returns the checked addresses, because DNS may answer differently since the check. */
const pinnedLookup =
  (addresses: ReadonlyArray<string>): LookupFunction =>
  (_hostname, options, callback) => {
    const found = addresses.map((address) => ({ address, family: familyOf(address) }))
    const [first] = found
    if (first === undefined) return callback(new Error("No address was checked."), "")
    if (options.all === true) return callback(null, found)
    callback(null, first.address, first.family)
  }

const connector = (addresses: ReadonlyArray<string>): buildConnector.connector => {
  const connect = buildConnector({
    lookup: pinnedLookup(addresses),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptTimeoutMs,
    allowH2: false,
    timeout: connectTimeoutMs
  })
  return (options, callback) =>
    connect(options, (...[error, socket]: Parameters<buildConnector.Callback>) => {
      // Bun passes undefined where Node passes null.
      if (error !== null && error !== undefined) return callback(error, null)
      // The look-up above should suffice. This check also holds if a runtime does not call it.
      if (addresses.includes(canonical(socket.remoteAddress ?? "") ?? "")) return callback(null, socket)
      socket.destroy()
      callback(new Error("Connected to an address that was not checked."), null)
    })
}

const openPool = ({ addresses, url }: Destination) =>
  new Pool(url.origin, {
    connect: connector(addresses),
    connections: maxConnectionsPerDestination,
    pipelining: 1,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
    maxHeaderSize: maxHeaderBytes,
    // The time-out of the whole exchange covers both.
    headersTimeout: 0,
    bodyTimeout: 0
  })

const closePool = (pool: Pool) => Effect.promise(() => pool.destroy())

const keyOf = ({ addresses, url }: Destination) => [url.origin, ...addresses.toSorted()].join(" ")

interface SharedPool {
  readonly pool: Pool
  users: number
}

export interface Connections {
  /** A pool shared between callers. */
  readonly shared: (destination: Destination) => Effect.Effect<Pool, never, Scope.Scope>
  /** A new pool, so that a request that must not be repeated never uses a connection that is just closing. */
  readonly fresh: (destination: Destination) => Effect.Effect<Pool, never, Scope.Scope>
}

/** Pools by origin and addresses. When a name's addresses change, its old connections are not used any more. */
export const makeConnections: Effect.Effect<Connections, never, Scope.Scope> = Effect.gen(function* () {
  // In the order of last use.
  const pools = new Map<string, SharedPool>()
  yield* Effect.addFinalizer(() =>
    Effect.forEach(pools.values(), ({ pool }) => closePool(pool), { discard: true })
  )

  const acquire = (destination: Destination) =>
    Effect.sync(() => {
      const key = keyOf(destination)
      const found = pools.get(key) ?? { pool: openPool(destination), users: 0 }
      pools.delete(key)
      pools.set(key, found)
      found.users += 1
      return found
    })

  const release = (used: SharedPool) =>
    Effect.suspend(() => {
      used.users -= 1
      const idle = [...pools].filter(([, { users }]) => users === 0)
      const surplus = idle.slice(0, Math.max(0, idle.length - maxIdlePools))
      for (const [key] of surplus) pools.delete(key)
      return Effect.forEach(surplus, ([, { pool }]) => closePool(pool), { discard: true })
    })

  return {
    shared: (destination) =>
      Effect.map(Effect.acquireRelease(acquire(destination), release), ({ pool }) => pool),
    fresh: (destination) =>
      Effect.acquireRelease(
        Effect.sync(() => openPool(destination)),
        closePool
      )
  }
})
