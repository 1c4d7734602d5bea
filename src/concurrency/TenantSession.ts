/**
 * The tenant whose rows a statement may see, for row level security (docs/design/tenancy.md). With it, a statement runs
 * as a role that the policies bind, with its tenant in `spoke.tenant`; without a tenant it sees no row. Work on every
 * tenant is declared with one of the names below, and runs as the role of the connection, the owner of the tables.
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
  directory: "finds the tenant of a key, a token, an e-mail address or an account of a channel",
  sweep: "finds work of all tenants that is due, abandoned or expired",
  batch: "writes rows of several tenants with one statement",
  operator: "answers the operator of the installation",
  words: "finds words by an index that cannot be used under a policy",
  vectors: "builds and removes indexes of vectors, which only the owner of the tables may do",
  migration: "changes tables",
  archive: "reads or writes the whole store"
} as const
type EveryTenantWork = keyof typeof everyTenantWork

/** The tenant of a session that sees every tenant's rows. No tenant has this id. */
export const everyTenant = "*"

const sessionTenant: FiberRef.FiberRef<string | null> = globalValue("spoke/store/tenantSession", () =>
  FiberRef.unsafeMake<string | null>(null)
)

/** Runs the effect so that its statements see every tenant's rows. */
export const forEveryTenant =
  (_: EveryTenantWork) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.locally(effect, sessionTenant, everyTenant)

/** Runs the effect so that its statements see the rows of one tenant, in a fiber that works for several. */
const forTenant =
  (tenantId: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.locally(effect, sessionTenant, tenantId)

/** Runs the effect for the one tenant, or for every tenant if there are several. */
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
 * The tenant of a statement: that of the fiber, which the caller's key or session determines; else, in a job or a
 * sweep, the first tenant id among the values of the statement. Empty: none.
 */
export const sessionOf = (
  fiber: Fiber.RuntimeFiber<unknown, unknown>,
  text: string,
  values: ReadonlyArray<unknown>
): string => {
  if (isMarked(text)) return everyTenant
  const selected = fiber.getFiberRef(sessionTenant)
  if (selected !== null) return selected
  const owner = fiber.getFiberRef(currentOwner)
  return isTenant(owner) ? owner : (values.find(isTenant) ?? "")
}
