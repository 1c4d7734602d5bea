/**
 * {@link IdentityProvider} by OpenID Connect: code flow with PKCE, state and nonce. It uses `oauth4webapi`, which has
 * no dependencies, uses Node's cryptography, and allows every request to go through {@link OutboundHttp}.
 * (`openid-client` wraps it and adds `jose`; packages with their own cryptography are not allowed.)
 */
import * as Cache from "effect/Cache"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Oauth from "oauth4webapi"
import { inSharedFiber } from "../../concurrency/InOwnFiber.ts"
import { urlOf } from "../../domain/Address.ts"
import { codeOf, isError } from "../../domain/ThrownErrors.ts"
import {
  type IdentityClaims,
  type IdentityClient,
  type IdentityFlow,
  IdentityProvider,
  IdentityProviderError
} from "../IdentityProvider.ts"
import { OutboundHttp, type OutboundHttpError } from "../OutboundHttp.ts"
import * as Requests from "./Requests.ts"

/** Maximum clock difference. */
const skewSeconds = 60
/** Cache of providers' metadata. The library caches signing keys for at most five minutes. */
const metadataCache = {
  capacity: 256,
  timeToLive: Duration.minutes(10),
  failureTimeToLive: Duration.seconds(5)
}
const maxGroups = 1_000
const maxSubjectCharacters = 255

const invalid = (message: string) => new IdentityProviderError({ reason: "Invalid", message })

/** The library's messages are constant. The data is in the cause, which is not passed on. */
const fromThrown = (thrown: unknown): IdentityProviderError => {
  if (thrown instanceof IdentityProviderError) return thrown
  if (thrown instanceof Oauth.AuthorizationResponseError) {
    return new IdentityProviderError({ reason: "Denied", message: "The provider refused the sign-in." })
  }
  if (thrown instanceof Oauth.ResponseBodyError) {
    return invalid(`The provider refused the code with status ${thrown.status}.`)
  }
  return invalid(isError(thrown) ? thrown.message : "The provider's answer could not be read.")
}

const fromHttpError = ({ message, reason }: OutboundHttpError) =>
  new IdentityProviderError({
    reason: reason === "InvalidUrl" || reason === "Refused" ? "Invalid" : "Unavailable",
    message
  })

const textOf = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null)
const groupsOf = (value: unknown): ReadonlyArray<string> =>
  (typeof value === "string" ? [value] : Array.isArray(value) ? value : [])
    .filter((group): group is string => typeof group === "string")
    .slice(0, maxGroups)
/** Some providers write booleans as text. */
const isTrue = (value: unknown) => value === true || value === "true"

const make = Effect.gen(function* () {
  const http = yield* OutboundHttp

  const ask = <A>(issuer: URL, call: (options: Requests.Options) => Promise<A>) =>
    Requests.ask(http, issuer, call, fromHttpError, fromThrown)

  const fetchMetadata = (issuer: string) =>
    Effect.gen(function* () {
      const url = urlOf(issuer)
      if (!Requests.isWeb(url)) return yield* invalid("The issuer is not a URL.")
      const server = yield* ask(url, async (options) =>
        Oauth.processDiscoveryResponse(url, await Oauth.discoveryRequest(url, options))
      )
      const page = urlOf(server.authorization_endpoint ?? "")
      if (!Requests.isSafe(page)) {
        return yield* invalid("The provider's sign-in page does not use https.")
      }
      if (server.token_endpoint === undefined || server.jwks_uri === undefined) {
        return yield* invalid("The provider has no address for tokens or keys.")
      }
      return { server, issuer: url, page }
    })

  const providers = yield* Cache.makeWith({
    capacity: metadataCache.capacity,
    lookup: fetchMetadata,
    timeToLive: (exit) => (Exit.isSuccess(exit) ? metadataCache.timeToLive : metadataCache.failureTimeToLive)
  })

  const providerOf = (issuer: string) => inSharedFiber(providers.get(issuer))

  const begin = Effect.fn("IdentityProvider.begin")(function* (client: IdentityClient, email: string) {
    const { page, server } = yield* providerOf(client.issuer)
    const flow: IdentityFlow = {
      state: Oauth.generateRandomState(),
      nonce: Oauth.generateRandomNonce(),
      verifier: Oauth.generateRandomCodeVerifier()
    }
    const challenge = yield* Effect.promise(() => Oauth.calculatePKCECodeChallenge(flow.verifier))
    // Some providers return groups only with this scope.
    const groups = client.groupsClaim !== null && server.scopes_supported?.includes("groups") === true
    const url = new URL(page)
    for (const [name, value] of Object.entries({
      response_type: "code",
      client_id: client.clientId,
      redirect_uri: client.redirectUri,
      scope: `openid email profile${groups ? " groups" : ""}`,
      state: flow.state,
      nonce: flow.nonce,
      login_hint: email,
      code_challenge: challenge,
      code_challenge_method: "S256"
    })) {
      url.searchParams.set(name, value)
    }
    return { url: url.href, flow }
  })

  const authentication = (server: Oauth.AuthorizationServer, secret: Redacted.Redacted) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"]
    return methods.includes("client_secret_basic")
      ? Oauth.ClientSecretBasic(Redacted.value(secret))
      : Oauth.ClientSecretPost(Redacted.value(secret))
  }

  const finish = Effect.fn("IdentityProvider.finish")(function* (
    given: IdentityClient,
    flow: IdentityFlow,
    answer: Readonly<Record<string, string>>
  ) {
    const { issuer, server } = yield* providerOf(given.issuer)
    const client: Oauth.Client = { client_id: given.clientId, [Oauth.clockTolerance]: skewSeconds }
    const parameters = yield* Effect.try({
      try: () => Oauth.validateAuthResponse(server, client, new URLSearchParams(answer), flow.state),
      catch: fromThrown
    })
    const { claims, response, tokens } = yield* ask(issuer, async (options) => {
      const received = await Oauth.authorizationCodeGrantRequest(
        server,
        client,
        authentication(server, given.clientSecret),
        parameters,
        given.redirectUri,
        flow.verifier,
        options
      )
      const tokens = await Oauth.processAuthorizationCodeResponse(server, client, received, {
        expectedNonce: flow.nonce,
        requireIdToken: true
      })
      return { claims: Oauth.getValidatedIdTokenClaims(tokens), response: received, tokens }
    })
    if (claims === undefined) return yield* invalid("The provider sent no id token.")
    const verifySignature = (keys: Oauth.AuthorizationServer) =>
      ask(issuer, (options) =>
        Oauth.validateApplicationLevelSignature(keys, response, options).then(
          () => true,
          (thrown: unknown) =>
            codeOf(thrown) === Oauth.KEY_SELECTION ? false : Promise.reject(fromThrown(thrown))
        )
      )
    // The library caches keys by the metadata object. A new object makes it fetch them again.
    if (!(yield* verifySignature(server)) && !(yield* verifySignature({ ...server }))) {
      return yield* invalid("The id token is signed with a key that the provider does not list.")
    }
    if (claims.sub === "" || claims.sub.length > maxSubjectCharacters) {
      return yield* invalid("The id token's subject is empty or too long.")
    }
    const now = (yield* Clock.currentTimeMillis) / 1_000
    if (claims.iat > now + skewSeconds) return yield* invalid("The id token was issued in the future.")
    const needsUserInfo = claims["email"] === undefined || lacksGroups(claims, given)
    const userInfo =
      needsUserInfo && server.userinfo_endpoint !== undefined
        ? yield* ask(issuer, async (options) =>
            Oauth.processUserInfoResponse(
              server,
              client,
              claims.sub,
              await Oauth.userInfoRequest(server, client, tokens.access_token, options)
            )
          )
        : {}
    const allClaims: Readonly<Record<string, unknown>> = { ...userInfo, ...claims }
    return {
      subject: claims.sub,
      email: textOf(allClaims["email"]),
      emailVerified: isTrue(allClaims["email_verified"]),
      groups: given.groupsClaim === null ? [] : groupsOf(allClaims[given.groupsClaim])
    } satisfies IdentityClaims
  })

  return { begin, finish }
})

const lacksGroups = (claims: Oauth.IDToken, { groupsClaim }: IdentityClient) =>
  groupsClaim !== null && claims[groupsClaim] === undefined

export const layerOpenIdConnect: Layer.Layer<IdentityProvider, never, OutboundHttp> = Layer.effect(
  IdentityProvider,
  make
)
