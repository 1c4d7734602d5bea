/**
 * Places for realtime sockets: so many in a process, which tenants share, and within them their visitors. A visitor's page
 * needs a handful; what a tenant or an address has beyond its share is closed when others want a place, the oldest first.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"

export interface SocketOwner {
  /** Null for a token that is not good: its socket is closed at once. */
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

/** At most `sockets` at the same time, and `perConversation` of them for one conversation. */
export const makeSocketPlaces = (sockets: number, perConversation: number) => {
  const all = new FairLimiter({ name: "realtime-sockets", permits: sockets })
  const ofConversations = new FairLimiter({
    name: "realtime-sockets-of-conversations",
    // Those that are just closing, too.
    permits: 2 * sockets,
    maxPermitsPerOwner: perConversation
  })
  /** A place until the scope closes; what is returned ends when it is wanted back. */
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
