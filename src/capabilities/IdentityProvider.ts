/** Sign-in at a provider that a tenant has chosen: where the browser is sent, and who came back. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"

/** How we are known to a provider. */
export interface IdentityClient {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: Redacted.Redacted
  /** The address to which the provider redirects browsers. */
  readonly redirectUri: string
  /** The claim that lists a person's groups; null: groups are not read. */
  readonly groupsClaim: string | null
}

/** What one sign-in is checked against when the browser comes back. Kept from everybody but that browser. */
export interface IdentityFlow {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** The person who signed in, as the provider describes them. */
export interface IdentityClaims {
  readonly subject: string
  readonly email: string | null
  readonly emailVerified: boolean
  readonly groups: ReadonlyArray<string>
}

/**
 * `Denied`: the provider or the person said no. `Unavailable`: it may pass by itself. `Invalid`: what came is not what a sign-in
 * that we began answers with. `message` is for the person who configured the connection: it holds no token, code or secret.
 */
export class IdentityProviderError extends Schema.TaggedError<IdentityProviderError>()(
  "IdentityProviderError",
  { reason: Schema.Literal("Denied", "Unavailable", "Invalid"), message: Schema.String }
) {}

export class IdentityProvider extends Context.Tag("capabilities/IdentityProvider")<
  IdentityProvider,
  {
    /** The provider's page for one sign-in, filled in with `email`, and what {@link IdentityProvider} `finish` needs afterwards. */
    readonly begin: (
      client: IdentityClient,
      email: string
    ) => Effect.Effect<{ readonly url: string; readonly flow: IdentityFlow }, IdentityProviderError>
    /** The person of `answer`, the parameters of the redirect. Each flow is good for one answer. */
    readonly finish: (
      client: IdentityClient,
      flow: IdentityFlow,
      answer: Readonly<Record<string, string>>
    ) => Effect.Effect<IdentityClaims, IdentityProviderError>
  }
>() {}
