/** Access tokens let a program use the management interface on behalf of a person. */
import * as Schema from "effect/Schema"
import { TokenId, UserId } from "../Ids.ts"
import { trimmed } from "../Text.ts"
import { Moment } from "./Account.ts"

/** Resources that scopes apply to. */
const resources = [
  "agents",
  "sources",
  "tools",
  "channels",
  "keys",
  "team",
  "widget",
  "webhooks",
  "limits",
  "conversations"
] as const
type Resource = (typeof resources)[number]

const verbs = ["read", "write"] as const
type Verb = (typeof verbs)[number]

const orAny = <A extends string>(names: ReadonlyArray<A>) => [...names, "*"] as const

/** `resource:verb`, where either may be `*`; `*` alone permits everything. */
export const Scope = Schema.Union(
  Schema.Literal("*"),
  Schema.TemplateLiteral(
    Schema.Literal(...orAny(resources)),
    Schema.Literal(":"),
    Schema.Literal(...orAny(verbs))
  )
).annotations({
  identifier: "Scope",
  message: () => ({
    message: `Expected *, or resource:verb with a verb of ${orAny(verbs).join(", ")} and a resource of ${orAny(resources).join(", ")}`,
    override: true
  })
})
export type Scope = typeof Scope.Type

/** The scope that a route of the management interface requires. */
export interface RequiredScope {
  readonly resource: Resource
  readonly verb: Verb
}

/** Resources that the scopes of a resource include. */
const included: Partial<Record<string, ReadonlyArray<Resource>>> = { agents: ["widget"] }

/**
 * True when a token with the scopes `held` satisfies `required`. Write access includes read access, and access to agents
 * includes their widgets.
 */
export const permits = (held: ReadonlyArray<Scope>, { resource, verb }: RequiredScope): boolean =>
  held.some((scope) => {
    if (scope === "*") return true
    const [heldResource = "", heldVerb] = scope.split(":")
    return (
      (heldResource === "*" ||
        heldResource === resource ||
        included[heldResource]?.includes(resource) === true) &&
      (heldVerb === "*" || heldVerb === verb || (heldVerb === "write" && verb === "read"))
    )
  })

const TokenStatus = Schema.Literal("ACTIVE", "REVOKED", "EXPIRED")

const Scopes = Schema.Array(Scope).pipe(
  Schema.minItems(1, { message: () => "Expected at least one scope" }),
  Schema.maxItems(100),
  Schema.transform(Schema.Array(Schema.typeSchema(Scope)), {
    strict: true,
    decode: (all) => [...new Set(all)],
    encode: (all) => all
  })
)

/** Body of `POST /api/tokens`. The use-case checks that `expiresAt` is in the future. */
export const CreateToken = Schema.Struct({
  name: trimmed(200),
  scopes: Scopes,
  expiresAt: Schema.optionalWith(Moment, { exact: true })
})
export type CreateToken = typeof CreateToken.Type

/** All fields except the secret, which is shown once, when the token is created. */
export class AccessToken extends Schema.Class<AccessToken>("AccessToken")({
  id: TokenId,
  name: Schema.String,
  /** The first twelve characters of the secret, to tell tokens apart. */
  prefix: Schema.String,
  scopes: Schema.Array(Scope),
  status: TokenStatus,
  /** The user who created it, whose role limits it. */
  user: Schema.Struct({ id: UserId, email: Schema.String }),
  expiresAt: Schema.NullOr(Schema.DateTimeUtc),
  lastUsedAt: Schema.NullOr(Schema.DateTimeUtc),
  createdAt: Schema.DateTimeUtc
}) {}
