/** Sign-in at a provider chosen by a tenant: starts a sign-in, and returns the person. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** Our registration at a provider. */
export interface IdentityClient {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
  /** The address to which the provider redirects browsers. */
  readonly redirectUri: string
  /** The claim that lists a person's groups; null: groups are not read. */
  readonly groupsClaim: string | null
}

/** Data for checking the answer to one sign-in. Only the browser of that sign-in has it. */
export interface IdentityFlow {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** The person who signed in, with the claims of the provider. */
export interface IdentityClaims {
  readonly subject: string
  readonly email: string | null
  readonly emailVerified: boolean
  readonly groups: ReadonlyArray<string>
}

/**
 * `Denied`: the provider or the person refused. `Unavailable`: transient. `Invalid`: the answer does not belong to a
 * sign-in that we started. `message` is for the person who configured the connection. It contains no token, code or
 * secret.
 */
export class IdentityProviderError extends Schema.TaggedError<IdentityProviderError>()(
  "IdentityProviderError",
  { reason: Schema.Literal("Denied", "Unavailable", "Invalid"), message: Schema.String }
) {}

export class IdentityProvider extends Context.Tag("capabilities/IdentityProvider")<
  IdentityProvider,
  {
    /**
     * The address of the provider's page for one sign-in, prefilled with `email`, and the data that
     * {@link IdentityProvider} `finish` needs.
     */
    readonly begin: (
      client: IdentityClient,
      email: string
    ) => Effect.Effect<{ readonly url: string; readonly flow: IdentityFlow }, IdentityProviderError>
    /** The person in `answer`, the parameters of the redirect. Each flow is valid for one answer. */
    readonly finish: (
      client: IdentityClient,
      flow: IdentityFlow,
      answer: Readonly<Record<string, string>>
    ) => Effect.Effect<IdentityClaims, IdentityProviderError>
  }
>() {}

/** The authorization server of an MCP server. Only checked addresses. */
export const AuthorizationServer = Schema.Struct({
  issuer: Schema.String,
  /** Null when the server offers no sign-in with PKCE (S256). */
  authorizationEndpoint: Schema.NullOr(Schema.String),
  tokenEndpoint: Schema.String,
  registrationEndpoint: Schema.NullOr(Schema.String),
  revocationEndpoint: Schema.NullOr(Schema.String),
  authMethods: Schema.Array(Schema.String),
  /** Whether it names itself in each answer to a sign-in (RFC 9207). */
  namesItself: Schema.Boolean,
  /** Whether a client may name the address of its own metadata instead of being registered. */
  readsClientDocuments: Schema.optionalWith(Schema.Boolean, { exact: true, default: () => false }),
  /** Whether a refresh token has to be asked for. */
  offersOfflineAccess: Schema.Boolean
})
export type AuthorizationServer = typeof AuthorizationServer.Type

/** The resource for which a token is requested, and the server that issues it. */
export interface ToolAuthorizationTarget {
  readonly server: AuthorizationServer
  /** The MCP server's own name for itself (RFC 8707). */
  readonly resource: string
  /** The scopes that the MCP server asks for, separated by spaces; null: it does not say. */
  readonly scope: string | null
}

export interface ToolClient {
  readonly clientId: string
  /** Null for a public client. */
  readonly clientSecret: Redacted.Redacted | null
}

/** Data for checking the answer to one sign-in. */
export interface ToolSignIn {
  readonly state: string
  readonly verifier: string
}

export interface ToolTokens {
  readonly access: Redacted.Redacted
  readonly refresh: Redacted.Redacted | null
  /** Null when the server does not say. */
  readonly lastsSeconds: number | null
  /** The scopes that were granted, separated by spaces; null: those that were requested. */
  readonly scope: string | null
}

/**
 * `Denied`: the person or the server refused the sign-in. `Refused`: the server refuses the code, the refresh token or
 * the client, and will again. `Unavailable`: transient. `Invalid`: the metadata or the answer must not be used. `message`
 * is for the person who configures the tool. It contains no token, code or secret, and no text of the server.
 */
export class ToolAuthorizationError extends Schema.TaggedError<ToolAuthorizationError>()(
  "ToolAuthorizationError",
  { reason: Schema.Literal("Denied", "Refused", "Unavailable", "Invalid"), message: Schema.String }
) {}

type Authorized<A> = Effect.Effect<A, ToolAuthorizationError>

/** OAuth 2.1 for MCP servers. Every address that it finds obeys the rules of {@link OutboundHttp}. */
export class ToolAuthorization extends Context.Tag("capabilities/IdentityProvider/ToolAuthorization")<
  ToolAuthorization,
  {
    /**
     * Asks the MCP server at `url` for its authorization server. `issuer` is the one that must be used; null: the first
     * that the MCP server names.
     */
    readonly discover: (url: string, issuer: string | null) => Authorized<ToolAuthorizationTarget>
    /** Registers a client with that address of return (RFC 7591). */
    readonly register: (server: AuthorizationServer, redirectUri: string) => Authorized<ToolClient>
    /** The address of the sign-in page, and the data that `finish` needs. */
    readonly begin: (
      target: ToolAuthorizationTarget,
      client: ToolClient,
      redirectUri: string
    ) => Authorized<{ readonly url: string; readonly signIn: ToolSignIn }>
    /** The tokens for the code in `answer`, the parameters of the redirect. */
    readonly finish: (
      target: Pick<ToolAuthorizationTarget, "server" | "resource">,
      client: ToolClient,
      redirectUri: string,
      signIn: ToolSignIn,
      answer: Readonly<Record<string, string>>
    ) => Authorized<ToolTokens>
    /** New tokens for a refresh token. It may be used once. */
    readonly refresh: (
      target: Pick<ToolAuthorizationTarget, "server" | "resource">,
      client: ToolClient,
      refresh: Redacted.Redacted
    ) => Authorized<ToolTokens>
    /** A token of the client itself, without a person. */
    readonly clientCredentials: (
      target: ToolAuthorizationTarget,
      client: ToolClient
    ) => Authorized<ToolTokens>
    /** Does nothing if the server has no endpoint for it. */
    readonly revoke: (
      server: AuthorizationServer,
      client: ToolClient,
      token: Redacted.Redacted
    ) => Authorized<void>
  }
>() {}
