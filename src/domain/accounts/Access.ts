/** Permissions of API keys with their aliases and older names, and roles of dashboard users. */
import * as Schema from "effect/Schema"
import { AgentId, KeyId, TenantId, type TokenId, UserId } from "../Ids.ts"
import type { ExternalEndUserId } from "../chat/ChatTurn.ts"
import type { SourceScope } from "../knowledge/SourceScope.ts"

const groups = [
  ["chat", "chat:write"],
  ["retrieve", "sources:read", "retrieval:read"],
  ["ingest", "ingest.read", "ingest.write", "sources:write"],
  ["skill_fetch", "skills:read"],
  ["usage.read", "usage:read"]
] as const

/** Permissions without aliases. */
const others = ["trace_read", "visitor_tokens", "*"] as const

/** Permissions that a key may hold. Members of a group are aliases of each other; `*` satisfies everything. */
export const Permission = Schema.Literal(...groups.flat(), ...others)
export type Permission = typeof Permission.Type

/** Permissions that a key may hold, one name for each. */
export type CanonicalPermission = (typeof groups)[number][0] | (typeof others)[number]

/** Permissions that a route may require. */
export type Requirement = Exclude<Permission, "*">

/** Permissions whose keys could read usage before `usage.read` existed. */
const legacyUsage: ReadonlyArray<Permission> = ["chat", "retrieve", "ingest"]

const groupOf = (permission: Permission): ReadonlyArray<Permission> =>
  groups.find((group) => group.some((member) => member === permission)) ?? [permission]

const permissionsFor = (required: Requirement): ReadonlySet<Permission> => {
  const own = groupOf(required)
  const legacy = own.includes("usage.read") ? legacyUsage.flatMap(groupOf) : []
  return new Set<Permission>([...own, ...legacy, "*"])
}

/** True when a key that holds `held` may use a route that requires `required`. */
export const allows = (held: ReadonlyArray<Permission>, required: Requirement): boolean => {
  const sufficient = permissionsFor(required)
  return held.some((permission) => sufficient.has(permission))
}

/**
 * True when a visitor's token may be sent where `required` is required. What the others give access to has no scope:
 * all sources, and tokens of any visitor.
 */
export const allowsVisitors = (required: Requirement): boolean =>
  required !== "visitor_tokens" && !groupOf("ingest").includes(required)

/** Scope of everything that belongs to an agent: the first argument of every query. */
export interface AgentScope {
  readonly tenantId: TenantId
  readonly agentId: AgentId
}

/** An agent, and which of its sources may be read. Every search needs both. */
export interface ReadScope extends AgentScope {
  /** Null for all sources. */
  readonly sourceScope: SourceScope | null
  /** The key that requests a turn, if any. It may have its own budgets. */
  readonly keyId?: KeyId
  /** The external id that a visitor's token proves. The sessions of other people are hidden then. */
  readonly visitor?: ExternalEndUserId
}

/** An authenticated agent key, read once when the request authenticates. */
export interface AgentKey extends ReadScope {
  readonly keyId: KeyId
  readonly permissions: ReadonlyArray<Permission>
}

export const Role = Schema.Literal("owner", "admin", "agent", "viewer")
export type Role = typeof Role.Type

const rank: Record<Role, number> = { owner: 3, admin: 2, agent: 1, viewer: 0 }

/** Whether `role` is `minimum` or above it: owner > admin > agent > viewer. */
export const atLeast = (role: Role, minimum: Role): boolean => rank[role] >= rank[minimum]

/** Whether a member of role `by` may invite, change and remove members of `role`. Admins may not do so with owners. */
export const manages = (by: Role, role: Role): boolean => atLeast(by, "admin") && atLeast(by, role)

/** A dashboard user, read once from the session or from the access token. */
export interface SessionUser {
  readonly userId: UserId
  readonly tenantId: TenantId
  readonly email: string
  readonly role: Role
  /** The fingerprint of the session's token, in base64url; null for a host of the library and for an access token. */
  readonly session: string | null
  /** The access token that acts for the user. */
  readonly token?: TokenId
}

/** The key id of the library's host. It is not a row of the database, and cannot be revoked. */
export const hostKey = KeyId.make("host")

/** The credential that a derived token depends on. The token is void once that credential is revoked. */
export const GrantingCredential = Schema.Union(
  Schema.Struct({ key: KeyId }),
  Schema.Struct({ session: Schema.String })
)
export type GrantingCredential = typeof GrantingCredential.Type

/** Null for a host of the library. */
export const grantorOfKey = ({ keyId }: Pick<AgentKey, "keyId">): GrantingCredential | null =>
  keyId === hostKey ? null : { key: keyId }

/** Null for a host of the library. */
export const grantorOfUser = ({ session }: Pick<SessionUser, "session">): GrantingCredential | null =>
  session === null ? null : { session }

/** The caller of a hosted route that takes an agent key or, without one, a dashboard session. */
export type Caller =
  { readonly _tag: "Key"; readonly key: AgentKey } | { readonly _tag: "User"; readonly user: SessionUser }
