/** API keys as the dashboard creates and shows them. */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { urlOf } from "../Address.ts"
import { optional } from "../Optional.ts"
import { allows, Permission } from "./Access.ts"
import { Moment } from "./Account.ts"
import { KeyId } from "../Ids.ts"
import { RateLimit } from "./RateLimit.ts"
import { SourceScope } from "../knowledge/SourceScope.ts"
import { Text, trimmed } from "../Text.ts"
import { Version } from "../Version.ts"

/** `EXPIRED` is an active key whose `expiresAt` has passed; it is never stored. */
export const KeyStatus = Schema.Literal("ACTIVE", "INACTIVE", "REVOKED", "EXPIRED")
export type KeyStatus = typeof KeyStatus.Type

const notAnOrigin = "Expected an origin such as https://example.com or http://localhost:3000"

/**
 * The origin as browsers send it: lower case, punycode, without the default port. Fails when `text` is not exactly an
 * origin.
 */
const originOf = (text: string): Either.Either<string, string> => {
  const url = /^https?:\/\/[^\s/?#@*\\]+\/?$/i.test(text) ? urlOf(text) : null
  return url === null ? Either.left(notAnOrigin) : Either.right(url.origin)
}

/** An exact origin, compared with the `Origin` header character by character. */
export const AllowedOrigin = Schema.transformOrFail(
  Text.pipe(Schema.compose(Schema.Trim), Schema.maxLength(2_048)),
  Schema.String,
  {
    strict: true,
    decode: (text, _, ast) =>
      Either.mapLeft(originOf(text), (message) => new ParseResult.Type(ast, text, message)),
    encode: Either.right
  }
).annotations({ identifier: "AllowedOrigin", message: () => notAnOrigin })

/** Maximum number of permissions, and of origins, of one key. */
const maxListItems = 100

const distinct = <A, I>(items: Schema.Schema<A, I>) =>
  Schema.Array(items).pipe(
    Schema.maxItems(maxListItems),
    Schema.transform(Schema.Array(Schema.typeSchema(items)), {
      strict: true,
      decode: (all) => [...new Set(all)],
      encode: (all) => all
    })
  )

const Permissions = distinct(Permission).pipe(
  Schema.minItems(1, { message: () => "Expected at least one permission" })
)
export const AllowedOrigins = distinct(AllowedOrigin)
const KeyName = trimmed(200)

/** Body of `POST /api/agents/:id/keys`. The use-case checks that `expiresAt` is in the future. */
export const CreateAgentKey = Schema.Struct({
  name: KeyName,
  permissions: Permissions,
  allowedOrigins: optional(AllowedOrigins),
  expiresAt: optional(Moment),
  rateLimit: optional(RateLimit),
  sourceScope: optional(SourceScope)
}).pipe(
  // A key that may write sources may read all of them, and sets their labels.
  Schema.filter(({ permissions, sourceScope }) =>
    sourceScope === undefined || !allows(permissions, "ingest")
      ? undefined
      : { path: ["permissions"], message: "Expected neither ingest nor * for a key with a source scope" }
  )
)
export type CreateAgentKey = typeof CreateAgentKey.Type

/** Body of `POST /api/keys`: a key for automation of the whole organisation. No `/v1` route accepts it. */
export const CreateOrgKey = Schema.Struct({
  name: KeyName,
  scope: Schema.Literal("org"),
  permissions: Permissions
})
export type CreateOrgKey = typeof CreateOrgKey.Type

/** Body of `PATCH /api/keys/:id`; `null` clears a field. */
export const PatchKey = Schema.Struct({
  name: optional(KeyName),
  allowedOrigins: optional(Schema.NullOr(AllowedOrigins)),
  expiresAt: optional(Schema.NullOr(Moment)),
  rateLimit: optional(Schema.NullOr(RateLimit)),
  active: optional(Schema.Boolean)
})
export type PatchKey = typeof PatchKey.Type

/** All fields except the secret, which is shown once, when the key is created. */
export class ApiKey extends Schema.Class<ApiKey>("ApiKey")({
  id: KeyId,
  name: Schema.String,
  /** The first twelve characters of the secret, to tell keys apart. */
  prefix: Schema.String,
  permissions: Schema.Array(Permission),
  allowedOrigins: Schema.Array(Schema.String),
  status: KeyStatus,
  expiresAt: Schema.NullOr(Schema.DateTimeUtc),
  /** Null for the server's limit for all keys, if there is one. */
  rateLimit: Schema.NullOr(RateLimit),
  /** Sources it may read; null for all of the agent's. */
  sourceScope: Schema.NullOr(SourceScope),
  lastUsedAt: Schema.NullOr(Schema.DateTimeUtc),
  version: Version,
  createdAt: Schema.DateTimeUtc
}) {}
