/** {@link ToolAuthorization} by OAuth 2.1 with PKCE, on `oauth4webapi`. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Oauth from "oauth4webapi"
import { clientMetadata } from "../../domain/agents/ToolConnection.ts"
import { isError } from "../../domain/ThrownErrors.ts"
import {
  type AuthorizationServer,
  ToolAuthorization,
  ToolAuthorizationError,
  type ToolAuthorizationTarget,
  type ToolClient,
  type ToolTokens
} from "../IdentityProvider.ts"
import { OutboundAddresses, OutboundHttp } from "../OutboundHttp.ts"
import * as Requests from "./Requests.ts"
import { makeDiscover, invalid, fromHttpError } from "./ToolDiscovery.ts"

const maxTokenCharacters = 16_384

const unavailable = (message: string) => new ToolAuthorizationError({ reason: "Unavailable", message })
const refused = (message: string) => new ToolAuthorizationError({ reason: "Refused", message })

/** Codes of transient errors (RFC 6749 and 8628). */
const transientErrors = new Set(["server_error", "temporarily_unavailable", "slow_down"])

/** The library's messages are constant. The data is in the cause, which is not passed on. */
const fromThrown = (thrown: unknown): ToolAuthorizationError => {
  if (thrown instanceof ToolAuthorizationError) return thrown
  if (thrown instanceof Oauth.AuthorizationResponseError) {
    return new ToolAuthorizationError({ reason: "Denied", message: "The sign-in was refused." })
  }
  if (thrown instanceof Oauth.ResponseBodyError) {
    const { error, status } = thrown
    const message = `The authorization server refused with status ${status}.`
    return transientErrors.has(error) ? unavailable(message) : refused(message)
  }
  if (thrown instanceof Oauth.WWWAuthenticateChallengeError) {
    return refused("The authorization server does not accept the client.")
  }
  return invalid(isError(thrown) ? thrown.message : "The authorization server's answer could not be read.")
}

const metadataOf = (server: AuthorizationServer): Oauth.AuthorizationServer => ({
  issuer: server.issuer,
  token_endpoint: server.tokenEndpoint,
  ...(server.authorizationEndpoint === null ? {} : { authorization_endpoint: server.authorizationEndpoint }),
  ...(server.registrationEndpoint === null ? {} : { registration_endpoint: server.registrationEndpoint }),
  ...(server.revocationEndpoint === null ? {} : { revocation_endpoint: server.revocationEndpoint }),
  authorization_response_iss_parameter_supported: server.namesItself
})

const authentication = ({ authMethods }: AuthorizationServer, { clientSecret }: ToolClient) => {
  if (clientSecret === null) return Oauth.None()
  const secret = Redacted.value(clientSecret)
  return authMethods.includes("client_secret_basic") || !authMethods.includes("client_secret_post")
    ? Oauth.ClientSecretBasic(secret)
    : Oauth.ClientSecretPost(secret)
}

/** Prefers a client with a secret, because its refresh tokens are useless without the secret. */
const registrationMethod = ({ authMethods }: AuthorizationServer) =>
  ["client_secret_basic", "client_secret_post"].find((method) => authMethods.includes(method)) ?? "none"

/**
 * The answer for the library, which is stricter than many servers: with the expected status of success, and without null
 * for what was left out. An id token is not used, so it is not checked either.
 */
const toConforming = async (
  response: Response,
  status: 200 | 201,
  defaults: Readonly<Record<string, unknown>> = {}
): Promise<Response> => {
  if (response.status >= 500 || response.status === 429) {
    throw unavailable(`The authorization server answers with status ${response.status}.`)
  }
  if (!response.ok) return response
  const body: unknown = await response.json().catch(() => null)
  if (typeof body !== "object" || body === null) {
    throw invalid("The authorization server's answer could not be read.")
  }
  const members = Object.entries(body).filter(([name, value]) => value !== null && name !== "id_token")
  return Response.json({ ...defaults, ...Object.fromEntries(members) }, { status })
}

/** A secret never ends unless the server says when it does. */
const registrationDefaults = { client_secret_expires_at: 0 }

const isToken = (text: string) =>
  text !== "" && text.length <= maxTokenCharacters && /^[\x21-\x7e]+$/.test(text)

const tokensOf = (answer: Oauth.TokenEndpointResponse): ToolTokens => {
  const {
    access_token: access,
    expires_in: expiresInSeconds,
    refresh_token: refresh,
    scope,
    token_type: type
  } = answer
  if (type !== "bearer") throw invalid("The authorization server sent a token that is no bearer token.")
  if (!isToken(access) || (refresh !== undefined && !isToken(refresh))) {
    throw invalid("The authorization server sent a token that cannot be used.")
  }
  return {
    access: Redacted.make(access),
    refresh: refresh === undefined ? null : Redacted.make(refresh),
    lastsSeconds: expiresInSeconds === undefined ? null : Math.min(expiresInSeconds, 31_536_000),
    scope: scope ?? null
  }
}

const make = Effect.gen(function* () {
  const http = yield* OutboundHttp
  const discover = makeDiscover(http, yield* OutboundAddresses)

  const ask = <A>(
    { issuer }: AuthorizationServer,
    call: (options: Requests.Options) => Promise<A>
  ): Effect.Effect<A, ToolAuthorizationError> =>
    Requests.ask(http, new URL(issuer), call, fromHttpError, fromThrown)

  const register = Effect.fn("ToolAuthorization.register")(function* (
    server: AuthorizationServer,
    redirectUri: string
  ) {
    if (server.registrationEndpoint === null) {
      return yield* invalid(
        "The authorization server registers no clients. Register one there, and enter its id at the tool."
      )
    }
    const method = registrationMethod(server)
    const registered = yield* ask(server, async (options) => {
      const received = await Oauth.dynamicClientRegistrationRequest(
        metadataOf(server),
        { ...clientMetadata(redirectUri), token_endpoint_auth_method: method },
        options
      )
      return Oauth.processDynamicClientRegistrationResponse(
        await toConforming(received, 201, registrationDefaults)
      )
    })
    const secret = registered.client_secret
    const client: ToolClient = {
      clientId: registered.client_id,
      clientSecret: typeof secret === "string" && secret !== "" ? Redacted.make(secret) : null
    }
    return client
  })

  const begin = Effect.fn("ToolAuthorization.begin")(function* (
    { resource, scope, server }: ToolAuthorizationTarget,
    { clientId }: ToolClient,
    redirectUri: string
  ) {
    if (server.authorizationEndpoint === null) {
      return yield* invalid("The authorization server offers no sign-in with PKCE (S256).")
    }
    const signIn = { state: Oauth.generateRandomState(), verifier: Oauth.generateRandomCodeVerifier() }
    const challenge = yield* Effect.promise(() => Oauth.calculatePKCECodeChallenge(signIn.verifier))
    const scopes = [...(scope?.split(" ") ?? []), ...(server.offersOfflineAccess ? ["offline_access"] : [])]
    const url = new URL(server.authorizationEndpoint)
    for (const [name, value] of Object.entries({
      response_type: "code",
      client_id: clientId,
      redirect_uri: redirectUri,
      ...(scopes.length === 0 ? {} : { scope: [...new Set(scopes)].join(" ") }),
      // OpenID Connect gives offline access only with consent.
      ...(server.offersOfflineAccess ? { prompt: "consent" } : {}),
      state: signIn.state,
      resource,
      code_challenge: challenge,
      code_challenge_method: "S256"
    })) {
      url.searchParams.set(name, value)
    }
    return { url: url.href, signIn }
  })

  type TokenTarget = Pick<ToolAuthorizationTarget, "server" | "resource">

  const finish = Effect.fn("ToolAuthorization.finish")(function* (
    { resource, server }: TokenTarget,
    given: ToolClient,
    redirectUri: string,
    { state, verifier }: { readonly state: string; readonly verifier: string },
    answer: Readonly<Record<string, string>>
  ) {
    const metadata = metadataOf(server)
    const client: Oauth.Client = { client_id: given.clientId }
    const parameters = yield* Effect.try({
      try: () => Oauth.validateAuthResponse(metadata, client, new URLSearchParams(answer), state),
      catch: fromThrown
    })
    return yield* ask(server, async (options) => {
      const received = await Oauth.authorizationCodeGrantRequest(
        metadata,
        client,
        authentication(server, given),
        parameters,
        redirectUri,
        verifier,
        { ...options, additionalParameters: { resource } }
      )
      return tokensOf(
        await Oauth.processAuthorizationCodeResponse(metadata, client, await toConforming(received, 200))
      )
    })
  })

  const refresh = Effect.fn("ToolAuthorization.refresh")(function* (
    { resource, server }: TokenTarget,
    given: ToolClient,
    token: Redacted.Redacted
  ) {
    const metadata = metadataOf(server)
    const client: Oauth.Client = { client_id: given.clientId }
    return yield* ask(server, async (options) => {
      const received = await Oauth.refreshTokenGrantRequest(
        metadata,
        client,
        authentication(server, given),
        Redacted.value(token),
        { ...options, additionalParameters: { resource } }
      )
      return tokensOf(
        await Oauth.processRefreshTokenResponse(metadata, client, await toConforming(received, 200))
      )
    })
  })

  const clientCredentials = Effect.fn("ToolAuthorization.clientCredentials")(function* (
    { resource, scope, server }: ToolAuthorizationTarget,
    given: ToolClient
  ) {
    const metadata = metadataOf(server)
    const client: Oauth.Client = { client_id: given.clientId }
    return yield* ask(server, async (options) => {
      const received = await Oauth.clientCredentialsGrantRequest(
        metadata,
        client,
        authentication(server, given),
        { resource, ...(scope === null ? {} : { scope }) },
        options
      )
      return tokensOf(
        await Oauth.processClientCredentialsResponse(metadata, client, await toConforming(received, 200))
      )
    })
  })

  const revoke = Effect.fn("ToolAuthorization.revoke")(function* (
    server: AuthorizationServer,
    given: ToolClient,
    token: Redacted.Redacted
  ) {
    if (server.revocationEndpoint === null) return
    yield* ask(server, async (options) =>
      Oauth.processRevocationResponse(
        await Oauth.revocationRequest(
          metadataOf(server),
          { client_id: given.clientId },
          authentication(server, given),
          Redacted.value(token),
          options
        )
      )
    )
  })

  return { discover, register, begin, finish, refresh, clientCredentials, revoke }
})

export const layerToolOAuth: Layer.Layer<ToolAuthorization, never, OutboundHttp | OutboundAddresses> =
  Layer.effect(ToolAuthorization, make)
