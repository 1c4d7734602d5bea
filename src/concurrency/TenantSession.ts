/**
 * Whose rows a statement may see, where row level security is on (docs/design/tenancy.md). Then every statement runs as a role
 * that the policies bind, with its tenant in `spoke.tenant`; without a tenant it sees no row. Work on every tenant is
 * declared with one of the names below, and runs as the role of the connection, the owner of the tables.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import { globalValue } from "effect/GlobalValue"
import { currentOwner } from "./CurrentOwner.ts"

/**
 * Kinds of work that may see the rows of every tenant, and why. A comment such as `every tenant: directory` before a
 * statement, or {@link forEveryTenant}, selects one.
 */
const everyTenantWork = {
  directory: "finds whose a key, a token, an e-mail address or an account of a channel is",
  sweep: "looks over all tenants for what is due, dead or old",
  batch: "notes what several tenants have done in one statement",
  operator: "answers whoever runs the installation",
  words: "finds words by an index that no policy lets a statement use",
  vectors: "builds and removes indexes of vectors, which are the owner's",
  migration: "changes tables",
  archive: "reads or writes the whole store"
} as const
type EveryTenantWork = keyof typeof everyTenantWork

/** Of a session: sees every tenant's rows. No tenant is called so. */
export const everyTenant = "*"

const region: FiberRef.FiberRef<string | null> = globalValue("spoke/store/tenantSession", () =>
  FiberRef.unsafeMake<string | null>(null)
)

/** Runs the effect so that its statements see every tenant's rows. */
export const forEveryTenant =
  (_: EveryTenantWork) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.locally(effect, region, everyTenant)

/** Runs the effect for a tenant in a fiber that works for several: its statements see the rows of this one. */
const forTenant =
  (tenantId: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.locally(effect, region, tenantId)

/** Runs the effect for the one tenant, or for every one where one statement is about several. */
export const forTenants = (tenantIds: Iterable<string>) => {
  const [tenantId, ...others] = new Set(tenantIds)
  return tenantId === undefined || others.length > 0 ? forEveryTenant("batch") : forTenant(tenantId)
}

const marker = /^\/\* every tenant: (\w+) \*\//u
const isMarked = (text: string) => {
  const name = text.startsWith("/*") ? marker.exec(text)?.[1] : undefined
  return name !== undefined && Object.hasOwn(everyTenantWork, name)
}

const isTenant = (value: unknown): value is string =>
  typeof value === "string" && value.startsWith("ten_") && value.length <= 100

/**
 * The tenant that the fiber works for, as the caller's key or session said; else, in a job or a sweep, the one that is among
 * the values of the statement. Empty: none.
 */
export const sessionOf = (
  fiber: Fiber.RuntimeFiber<unknown, unknown>,
  text: string,
  values: ReadonlyArray<unknown>
): string => {
  if (isMarked(text)) return everyTenant
  const currentRegion = fiber.getFiberRef(region)
  if (currentRegion !== null) return currentRegion
  const owner = fiber.getFiberRef(currentOwner)
  return isTenant(owner) ? owner : (values.find(isTenant) ?? "")
}
