/** Turns of work that all tenants share: a few at the same time, and no tenant's crowd keeps another waiting. */
import * as Effect from "effect/Effect"

interface Tenant {
  readonly turn: Effect.Semaphore
  users: number
}

export interface Turns {
  /** Whether whoever comes now would have a turn at once. */
  readonly free: () => boolean
  readonly inTurn: <A, E, R>(tenantId: string, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/**
 * `atOnce` at the same time. A tenant stands in the common line with as many at most; its others wait behind those, so that
 * whoever comes from elsewhere waits for few of them, however many there are.
 */
export const makeTurns = (atOnce: number): Turns => {
  const all = Effect.unsafeMakeSemaphore(atOnce)
  const tenants = new Map<string, Tenant>()
  let users = 0

  const enter = (tenantId: string) => {
    const tenant = tenants.get(tenantId) ?? { turn: Effect.unsafeMakeSemaphore(atOnce), users: 0 }
    tenant.users += 1
    users += 1
    tenants.set(tenantId, tenant)
    return tenant
  }
  const leave = (tenantId: string, tenant: Tenant) => {
    tenant.users -= 1
    users -= 1
    if (tenant.users === 0) tenants.delete(tenantId)
  }
  return {
    free: () => users < atOnce,
    inTurn: (tenantId, work) =>
      Effect.acquireUseRelease(
        Effect.sync(() => enter(tenantId)),
        ({ turn }) => turn.withPermits(1)(all.withPermits(1)(work)),
        (tenant) => Effect.sync(() => leave(tenantId, tenant))
      )
  }
}
