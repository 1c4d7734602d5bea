/**
 * Limits realtime sockets per process. Tenants share them, and within a tenant its visitors. A visitor's page needs a
 * few. When the limit is reached, the oldest sockets of a tenant or address above its share are closed for new ones.
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

const noPlace = () =>
  new ServiceUnavailable({
    message: "This server has no place for another socket.",
    details: { retryAfterSeconds: 5 }
  })

/** At most `sockets` at the same time, and at most `perConversation` for one conversation. */
export const makeSocketPlaces = (sockets: number, perConversation: number) => {
  const all = new FairLimiter({ name: "realtime-sockets", permits: sockets })
  const ofConversations = new FairLimiter({
    name: "realtime-sockets-of-conversations",
    // Includes sockets that are closing.
    permits: 2 * sockets,
    maxPermitsPerOwner: perConversation
  })
  /** Acquires a place until the scope closes. The returned effect ends when the place is revoked. */
  return ({
    conversationId,
    network,
    tenantId
  }: SocketOwner): Effect.Effect<Effect.Effect<void>, ServiceUnavailable, Scope.Scope> =>
    Effect.gen(function* () {
      if (conversationId !== null) yield* ofConversations.acquire(conversationId)
      return yield* all.acquireRevocable(tenantId, { part: network })
    }).pipe(Effect.mapError(noPlace))
}
