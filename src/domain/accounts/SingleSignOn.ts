/** Single sign-on: the identity provider of a tenant, and the roles that it gives. */
import * as Schema from "effect/Schema"
import { Issuer } from "../Issuer.ts"
import { Text, trimmed } from "../Text.ts"
import { atLeast, Role } from "./Access.ts"
import { Email } from "./Account.ts"

/** Lower-cased ASCII. */
export const Domain = Text.pipe(
  Schema.compose(Schema.Trim),
  Schema.compose(Schema.Lowercase),
  Schema.maxLength(253),
  Schema.pattern(/^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, {
    message: () => "Expected a domain, such as example.com"
  })
)
export type Domain = typeof Domain.Type

/** The domain of an e-mail address. */
export const domainOf = (email: Email): string => email.slice(email.lastIndexOf("@") + 1)

const GroupRole = Schema.Struct({ group: trimmed(300), role: Role })
type GroupRole = typeof GroupRole.Type

const rules = {
  issuer: Issuer,
  clientId: trimmed(500),
  /** Whether an address is accepted although the provider does not say that it has verified it. */
  trustsEmail: Schema.Boolean,
  /** The claim that lists a person's groups. */
  groupsClaim: Schema.NullOr(trimmed(200)),
  /** If empty, roles are given here, and sign-ins leave them as they are. */
  groupRoles: Schema.Array(GroupRole).pipe(Schema.maxItems(100)),
  /** Role of people without a role from a group; null refuses the sign-in. */
  defaultRole: Schema.NullOr(Role),
  /** Whether a first sign-in adds the person to the team. */
  createsPeople: Schema.Boolean,
  /** If false, the people of the tenant can sign in at the provider only. */
  allowsPasswords: Schema.Boolean
}

/** Body of `PUT /api/single-sign-on`. The secret may be omitted while the issuer stays the same. */
export const PutConnection = Schema.Struct({
  ...rules,
  clientSecret: Schema.optionalWith(
    Schema.Redacted(Schema.String.pipe(Schema.minLength(1), Schema.maxLength(1_000))),
    { exact: true }
  ),
  domains: Schema.Array(Domain).pipe(
    Schema.maxItems(20),
    Schema.transform(Schema.Array(Domain), {
      strict: true,
      decode: (all) => [...new Set(all)],
      encode: (all) => all
    })
  )
})
export type PutConnection = typeof PutConnection.Type

/** A connection without its secret. */
export const Connection = Schema.Struct({
  ...rules,
  domains: Schema.Array(Schema.Struct({ domain: Schema.String, confirmed: Schema.Boolean })),
  version: Schema.Int,
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc
})
export type Connection = typeof Connection.Type

/** The higher of two roles; null is no role. */
const higher = (one: Role | null, other: Role | null): Role | null =>
  one === null || (other !== null && atLeast(other, one)) ? other : one

type RoleRules = Pick<Connection, "defaultRole" | "groupRoles">

/** The highest role of the groups; null for none. */
const groupRoleOf = ({ groupRoles }: RoleRules, groups: ReadonlyArray<string>): Role | null => {
  const held = new Set(groups)
  return groupRoles
    .filter(({ group }) => held.has(group))
    .reduce<Role | null>((best, { role }: GroupRole) => higher(best, role), null)
}

/** The highest role of the groups, else the default role; null for none. */
export const roleOf = (connection: RoleRules, groups: ReadonlyArray<string>): Role | null =>
  groupRoleOf(connection, groups) ?? connection.defaultRole

/**
 * Provisioned groups never make an owner, because whoever has the provisioning token could then create one. Owners are
 * made by owners, or by groups in a token that the provider has signed.
 */
const belowOwner = (role: Role | null): Role | null => (role === "owner" ? "admin" : role)

/** The role from groups that the provider has provisioned, else the default role, but never owner; null for none. */
export const provisionedRoleOf = (connection: RoleRules, groups: ReadonlyArray<string>): Role | null =>
  belowOwner(roleOf(connection, groups))

/** The role of a person who signs in, by the groups in their token and the provisioned ones, else the default role. */
export const signedInRoleOf = (
  connection: RoleRules,
  groups: { readonly signed: ReadonlyArray<string>; readonly provisioned: ReadonlyArray<string> }
): Role | null =>
  higher(groupRoleOf(connection, groups.signed), belowOwner(groupRoleOf(connection, groups.provisioned))) ??
  connection.defaultRole

/** Body of `POST /api/auth/sso`. */
export const BeginSignOn = Schema.Struct({ email: Email })

/** Why a sign-in at the provider failed. The page after the redirect shows it. */
export const SignOnProblem = Schema.Literal("retry", "denied", "provider", "email", "account", "role")
export type SignOnProblem = typeof SignOnProblem.Type

/** A parameter of the provider's redirect. */
const parameter = Schema.optionalWith(Schema.String.pipe(Schema.maxLength(8_192)), { exact: true })
export const SignOnAuthorizationResponse = Schema.Struct({
  code: parameter,
  state: parameter,
  iss: parameter,
  error: parameter,
  error_description: parameter,
  response: parameter
})
export type SignOnAuthorizationResponse = typeof SignOnAuthorizationResponse.Type
