/**
 * Limits the realtime sockets of a process. Tenants share them fairly, and so do the visitors of a tenant. At the
 * limit, the oldest sockets of a tenant or address above its share are closed for new ones.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"

export interface SocketOwner {
  /** Null for an invalid token: its socket is closed at once. */
  readonly conversationId: string | null
  readonly tenantId: string
  /** The client's network. */
  readonly network: string
}

const noSocketLeft = () =>
  new ServiceUnavailable({
    message: "This server has no place for another socket.",
    details: { retryAfterSeconds: 5 }
  })

/** At most `sockets` sockets at the same time, and at most `perConversation` of one conversation. */
export const makeSocketLimits = (sockets: number, perConversation: number) => {
  const byTenant = new FairLimiter({ name: "realtime-sockets", permits: sockets })
  const byConversation = new FairLimiter({
    name: "realtime-sockets-of-conversations",
    // Includes sockets that are closing.
    permits: 2 * sockets,
    maxPermitsPerOwner: perConversation
  })
  /**
   * Acquires a slot until the scope closes. The returned effect completes when the slot is needed for another socket.
   */
  return ({
    conversationId,
    network,
    tenantId
  }: SocketOwner): Effect.Effect<Effect.Effect<void>, ServiceUnavailable, Scope.Scope> =>
    Effect.gen(function* () {
      if (conversationId !== null) yield* byConversation.acquire(conversationId)
      return yield* byTenant.acquireRevocable(tenantId, { part: network })
    }).pipe(Effect.mapError(noSocketLeft))
}
