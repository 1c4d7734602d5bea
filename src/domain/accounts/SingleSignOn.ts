/** Single sign-on: where the people of a tenant sign in, and what they become here. */
import * as Schema from "effect/Schema"
import { urlOf } from "../Address.ts"
import { Text, trimmed } from "../Text.ts"
import { atLeast, Role } from "./Access.ts"
import { Email } from "./Account.ts"

const isLocal = (host: string) => /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(host)

/** https; http for a provider on this machine alone. */
const Issuer = Text.pipe(
  Schema.compose(Schema.Trim),
  Schema.maxLength(2_048),
  Schema.filter((text) => {
    const url = urlOf(text)
    const plain = url !== null && !/[?#@\s\\]/.test(text)
    return (
      (plain && (url.protocol === "https:" || (url.protocol === "http:" && isLocal(url.hostname)))) ||
      "Expected the provider's https address, without a query"
    )
  })
)

/** Lower-cased, of ASCII. */
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
  /** An address counts though the provider does not say that it has verified it. */
  trustsEmail: Schema.Boolean,
  /** The claim that lists a person's groups. */
  groupsClaim: Schema.NullOr(trimmed(200)),
  /** Empty: roles are given here, and sign-ins leave them as they are. */
  groupRoles: Schema.Array(GroupRole).pipe(Schema.maxItems(100)),
  /** Of whom no group gives a role; null: they do not get in. */
  defaultRole: Schema.NullOr(Role),
  /** A first sign-in adds the person to the team. */
  createsPeople: Schema.Boolean,
  /** False: the people of the tenant sign in at the provider alone. */
  allowsPasswords: Schema.Boolean
}

/** Body of `PUT /api/single-sign-on`. The secret may be left out while the issuer stays. */
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

/** A connection as it is shown: its secret never is. */
export const Connection = Schema.Struct({
  ...rules,
  domains: Schema.Array(Schema.Struct({ domain: Schema.String, confirmed: Schema.Boolean })),
  version: Schema.Int,
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc
})
export type Connection = typeof Connection.Type

/** The higher of two; null is none. */
const higher = (one: Role | null, other: Role | null): Role | null =>
  one === null || (other !== null && atLeast(other, one)) ? other : one

/** The highest role that one of the groups gives, else the default one; null: none. */
export const roleOf = (
  { defaultRole, groupRoles }: Pick<Connection, "defaultRole" | "groupRoles">,
  groups: ReadonlyArray<string>
): Role | null => {
  const held = new Set(groups)
  return (
    groupRoles
      .filter(({ group }) => held.has(group))
      .reduce<Role | null>((best, { role }: GroupRole) => higher(best, role), null) ?? defaultRole
  )
}

/**
 * What groups give that the provider has provisioned. No owners: whoever has its provisioning token could make one. Owners are
 * made by owners, and by groups of a token that the provider has signed.
 */
export const provisionedRoleOf = (
  connection: Pick<Connection, "defaultRole" | "groupRoles">,
  groups: ReadonlyArray<string>
): Role | null => {
  const role = roleOf(connection, groups)
  return role === "owner" ? "admin" : role
}

/** The role of somebody who signs in, by the groups of their token and those that were provisioned. */
export const signedInRoleOf = (
  connection: Pick<Connection, "defaultRole" | "groupRoles">,
  groups: { readonly signed: ReadonlyArray<string>; readonly provisioned: ReadonlyArray<string> }
): Role | null => higher(roleOf(connection, groups.signed), provisionedRoleOf(connection, groups.provisioned))

/** Body of `POST /api/auth/sso`. */
export const BeginSignOn = Schema.Struct({ email: Email })

/** Why a sign-in at the provider did not lead in, as the page that is returned to is told. */
export const SignOnProblem = Schema.Literal("retry", "denied", "provider", "email", "account", "role")
export type SignOnProblem = typeof SignOnProblem.Type

/** What the provider's redirect brings along. */
const parameter = Schema.optionalWith(Schema.String.pipe(Schema.maxLength(8_192)), { exact: true })
export const SignOnAnswer = Schema.Struct({
  code: parameter,
  state: parameter,
  iss: parameter,
  error: parameter,
  error_description: parameter,
  response: parameter
})
export type SignOnAnswer = typeof SignOnAnswer.Type
