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
