/** Access of a tool to an MCP server by OAuth 2.1: how it is configured, and how its state is shown. */
import * as Schema from "effect/Schema"
import { isLocalHost } from "../Address.ts"
import { Issuer } from "../Issuer.ts"
import { Text } from "../Text.ts"

const parameter = Schema.optionalWith(Text.pipe(Schema.maxLength(4_096)), { exact: true })

const Scope = Schema.String.pipe(
  Schema.maxLength(200),
  Schema.pattern(/^[\x21\x23-\x5b\x5d-\x7e]+$/, { message: () => "Expected the name of a scope" })
)

/** Settings of the kind `oauth`. */
export const oauthFields = {
  /** `authorization_code`, the default, needs a person to sign in. `client_credentials` needs a client and its secret. */
  grant: Schema.optionalWith(Schema.Literal("authorization_code", "client_credentials"), { exact: true }),
  /** A client registered by hand. If omitted, the service names its metadata or registers itself. */
  clientId: Schema.optionalWith(Text.pipe(Schema.minLength(1), Schema.maxLength(500)), { exact: true }),
  /** The authorization server that the client belongs to. The secret is sent to no other. */
  issuer: Schema.optionalWith(Issuer, { exact: true }),
  /** If omitted, the scopes that the server asks for. */
  scopes: Schema.optionalWith(Schema.Array(Scope).pipe(Schema.maxItems(50)), { exact: true })
} as const

/** Maximum number of scopes of one connection. */
const maxScopes = 100

/** The scopes of all lists, each once. */
export const allScopes = (...lists: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> =>
  [...new Set(lists.flat())].slice(0, maxScopes)

const isScope = Schema.is(Scope)

/** The names in a list of scopes that is separated by spaces. */
export const scopesIn = (text: string | null): ReadonlyArray<string> =>
  allScopes(text?.split(" ").filter((name) => isScope(name)) ?? [])

const Scopes = Schema.Array(Schema.String)

/** The scopes of a connection. */
export const ToolScopes = Schema.Struct({
  /** Scopes with which the last token was requested. */
  requested: Scopes,
  /** Scopes that the authorization server has granted. */
  granted: Scopes,
  /** Scopes that the MCP server demands in addition. */
  missing: Scopes,
  /** Demanded scopes that were requested once without a person. They are not requested without a person again. */
  tried: Scopes
})
export type ToolScopes = typeof ToolScopes.Type

export const noScopes: ToolScopes = { requested: [], granted: [], missing: [], tried: [] }

/** `none`: there has been no token yet. */
export const StoredConnectionState = Schema.Literal("none", "connected", "refused")

/**
 * `insufficient`: the MCP server demands more scopes for a call; others work. `refused`: the authorization server or the
 * MCP server no longer accepts it, so a person has to connect again.
 */
const ToolConnectionState = Schema.Literal("connected", "insufficient", "refused")

/** The connection of a tool in answers. It contains no token. */
export const ToolConnection = Schema.Struct({
  state: ToolConnectionState,
  issuer: Schema.String,
  /** Scopes that the MCP server demands in addition. Connecting again requests them. */
  missingScopes: Scopes,
  connectedAt: Schema.DateTimeUtc
})
export type ToolConnection = typeof ToolConnection.Type

/** The addresses of the service that authorization servers get. */
export interface ClientAddresses {
  /** Where they return the browser. */
  readonly redirectUri: string
  /** The Client ID Metadata Document; null when they could not read it, because it is not under a public https address. */
  readonly documentUrl: string | null
}

/** The client's metadata for an authorization server, whichever way of registration is used. */
export const clientMetadata = (redirectUri: string) => ({
  client_name: "Spoke",
  redirect_uris: [redirectUri],
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  application_type: isLocalHost(new URL(redirectUri).hostname) ? "native" : "web"
})

/** The parameters with which an authorization server returns the browser. */
export const ToolAuthorizationResponse = Schema.Struct({
  code: parameter,
  state: parameter,
  iss: parameter,
  error: parameter,
  error_description: parameter
})
export type ToolAuthorizationResponse = typeof ToolAuthorizationResponse.Type

/**
 * Why a connection was not made, as the dashboard explains it. `retry`: the sign-in is over, was started elsewhere, or
 * the tool was changed meanwhile. `denied`: the person or the server refused. `provider`: the server failed. `signed-out`:
 * the session ended or has too low a role.
 */
export const ToolSignInProblem = Schema.Literal("retry", "denied", "provider", "signed-out")
export type ToolSignInProblem = typeof ToolSignInProblem.Type
