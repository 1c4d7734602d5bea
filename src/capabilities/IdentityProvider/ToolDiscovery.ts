/** Finds the authorization server of an MCP server: RFC 9728, then RFC 8414 or OpenID Connect discovery. */
import type { Context } from "effect"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { urlOf } from "../../domain/Address.ts"
import { challengeParameter } from "../../domain/BearerChallenge.ts"
import * as Json from "../../domain/Json.ts"
import {
  type AuthorizationServer,
  type ToolAuthorizationTarget,
  ToolAuthorizationError
} from "../IdentityProvider.ts"
import type { OutboundAddresses, OutboundHttp, OutboundHttpError, OutboundRequest } from "../OutboundHttp.ts"
import { isSafe, isWeb, maxBytes } from "./Requests.ts"

/** Time-out of each request, and of the whole discovery. */
const requestTimeout = "5 seconds"
const discoveryTimeout = "20 seconds"
const maxUrlCharacters = 2_048
const maxScopeCharacters = 4_096

export const invalid = (message: string) => new ToolAuthorizationError({ reason: "Invalid", message })

/** A redirect is invalid, because an endpoint is used at the address that was checked. */
export const fromHttpError = ({ message, reason }: OutboundHttpError): ToolAuthorizationError =>
  new ToolAuthorizationError({
    reason:
      reason === "Unresolved" || reason === "Unreachable" || reason === "TimedOut"
        ? "Unavailable"
        : "Invalid",
    message
  })

const Address = Schema.String.pipe(Schema.maxLength(maxUrlCharacters))
const Names = Schema.Array(Schema.String.pipe(Schema.maxLength(200))).pipe(Schema.maxItems(200))
const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optional(Schema.NullOr(schema))

const decodeResource = Schema.decodeUnknownOption(
  Schema.Struct({
    resource: Address,
    authorization_servers: Schema.Array(Address).pipe(Schema.minItems(1), Schema.maxItems(32)),
    scopes_supported: optional(Names)
  })
)

const decodeServer = Schema.decodeUnknownOption(
  Schema.Struct({
    issuer: Address,
    authorization_endpoint: optional(Address),
    token_endpoint: Address,
    registration_endpoint: optional(Address),
    revocation_endpoint: optional(Address),
    token_endpoint_auth_methods_supported: optional(Names),
    code_challenge_methods_supported: optional(Names),
    scopes_supported: optional(Names),
    authorization_response_iss_parameter_supported: optional(Schema.Boolean),
    client_id_metadata_document_supported: optional(Schema.Boolean)
  })
)

const pathOf = ({ pathname }: URL) => (pathname === "/" ? "" : pathname.replace(/\/$/, ""))

/** Whether the MCP server at `url` is, or is part of, the resource. A token for another one must not be sent to it. */
const covers = (resource: string, url: URL): boolean => {
  const named = urlOf(resource)
  if (named === null || named.origin !== url.origin || named.hash !== "") return false
  if (named.search !== "" && named.search !== url.search) return false
  const path = pathOf(named)
  return pathOf(url) === path || pathOf(url).startsWith(`${path}/`)
}

/** Where metadata may be, the most likely place first. */
const resourceMetadataUrls = (url: URL): ReadonlyArray<string> => {
  const wellKnown = `${url.origin}/.well-known/oauth-protected-resource`
  return pathOf(url) === "" ? [wellKnown] : [`${wellKnown}${pathOf(url)}`, wellKnown]
}
const serverMetadataUrls = (issuer: URL): ReadonlyArray<string> => {
  const path = pathOf(issuer)
  const at = (name: string) => `${issuer.origin}/.well-known/${name}${path}`
  const both = [at("oauth-authorization-server"), at("openid-configuration")]
  return path === "" ? both : [...both, `${issuer.origin}${path}/.well-known/openid-configuration`]
}

type Http = Context.Tag.Service<typeof OutboundHttp>
type Addresses = Context.Tag.Service<typeof OutboundAddresses>

export const makeDiscover = (http: Http, addresses: Addresses) => {
  const send = (request: Pick<OutboundRequest, "url" | "method" | "headers" | "body">) =>
    http
      .fetch({ ...request, maxBytes, timeout: requestTimeout, maxRedirects: 0 })
      .pipe(Effect.mapError(fromHttpError))

  /** The document at `url`; none if there is none. Other statuses than 200 and 4xx are failures of the server. */
  const fetchDocument = Effect.fn("ToolDiscovery.fetchDocument")(function* (url: string) {
    const { body, status } = yield* send({ url, headers: { accept: "application/json" } })
    if (status >= 500 || status === 429) {
      return yield* new ToolAuthorizationError({
        reason: "Unavailable",
        message: `${new URL(url).origin} answers with status ${status}.`
      })
    }
    return status === 200 ? Either.getRight(Json.parse(new TextDecoder().decode(body))) : Option.none()
  })

  const firstDocument = Effect.fn("ToolDiscovery.firstDocument")(function* (urls: ReadonlyArray<string>) {
    for (const metadataUrl of urls) {
      const found = yield* fetchDocument(metadataUrl)
      if (Option.isSome(found)) return found
    }
    return Option.none()
  })

  const protectedResource = Effect.fn("ToolDiscovery.protectedResource")(function* (url: URL) {
    const response = yield* send({
      url: url.href,
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} })
    })
    const challenge = response.status === 401 ? response.headers["www-authenticate"] : undefined
    const metadataUrl = challengeParameter(challenge, "resource_metadata")
    const scope = challengeParameter(challenge, "scope")
    if (metadataUrl !== null && !isSafe(urlOf(metadataUrl))) {
      return yield* invalid("The MCP server names no https address for its metadata.")
    }
    const found = yield* metadataUrl === null
      ? firstDocument(resourceMetadataUrls(url))
      : fetchDocument(metadataUrl)
    if (Option.isNone(found)) return { scope, metadata: Option.none() }
    const metadata = decodeResource(found.value)
    if (Option.isNone(metadata)) return yield* invalid("The MCP server's metadata cannot be read.")
    if (!covers(metadata.value.resource, url)) {
      return yield* invalid("The MCP server's metadata is of another resource.")
    }
    return { scope: scope ?? metadata.value.scopes_supported?.join(" ") ?? null, metadata }
  })

  const checkedEndpoint = (name: string, address: string | null | undefined) => {
    if (address === null || address === undefined) return Effect.succeed(null)
    const url = urlOf(address)
    return isSafe(url) && url.username === "" && url.password === "" && url.hash === ""
      ? Effect.succeed(url)
      : Effect.fail(invalid(`The authorization server's ${name} is not under https.`))
  }

  const findServer = Effect.fn("ToolDiscovery.findServer")(function* (issuer: string) {
    const url = urlOf(issuer)
    if (!isSafe(url) || url.search !== "" || url.hash !== "") {
      return yield* invalid("The MCP server names no https address as its authorization server.")
    }
    const found = Option.flatMap(yield* firstDocument(serverMetadataUrls(url)), (one) => decodeServer(one))
    if (Option.isNone(found)) return yield* invalid("The authorization server's metadata cannot be read.")
    const server = found.value
    if (server.issuer !== issuer) {
      return yield* invalid("The authorization server's metadata is of another issuer.")
    }
    const signInPage = yield* checkedEndpoint("sign-in page", server.authorization_endpoint)
    // A browser goes there, so no request of ours would check the address.
    if (signInPage !== null) {
      const port =
        signInPage.port === "" ? (signInPage.protocol === "https:" ? 443 : 80) : Number(signInPage.port)
      yield* Effect.mapError(addresses.of(signInPage.hostname, port), fromHttpError)
    }
    const token = yield* checkedEndpoint("token endpoint", server.token_endpoint)
    if (token === null) return yield* invalid("The authorization server has no token endpoint.")
    const hasPkce = server.code_challenge_methods_supported?.includes("S256") === true
    const made: AuthorizationServer = {
      issuer,
      authorizationEndpoint: hasPkce ? (signInPage?.href ?? null) : null,
      tokenEndpoint: token.href,
      registrationEndpoint:
        (yield* checkedEndpoint("registration endpoint", server.registration_endpoint))?.href ?? null,
      revocationEndpoint:
        (yield* checkedEndpoint("revocation endpoint", server.revocation_endpoint))?.href ?? null,
      authMethods: server.token_endpoint_auth_methods_supported ?? ["client_secret_basic"],
      namesItself: server.authorization_response_iss_parameter_supported === true,
      readsClientDocuments: server.client_id_metadata_document_supported === true,
      offersOfflineAccess: server.scopes_supported?.includes("offline_access") === true
    }
    return made
  })

  const discover = Effect.fn("ToolDiscovery.discover")(function* (
    address: string,
    requiredIssuer: string | null
  ) {
    const url = urlOf(address)
    if (!isWeb(url)) return yield* invalid("The MCP server's address is none.")
    const { metadata, scope } = yield* protectedResource(url)
    const named = Option.match(metadata, {
      onNone: () => null,
      onSome: ({ authorization_servers }) => authorization_servers
    })
    if (requiredIssuer !== null && named?.includes(requiredIssuer) === false) {
      return yield* invalid("The MCP server does not name the issuer that is configured for the tool.")
    }
    const issuer = requiredIssuer ?? named?.[0]
    if (issuer === undefined) {
      return yield* invalid("The MCP server does not say which authorization server it uses.")
    }
    const target: ToolAuthorizationTarget = {
      server: yield* findServer(issuer),
      resource: Option.match(metadata, {
        onNone: () => `${url.origin}${pathOf(url)}${url.search}`,
        onSome: ({ resource }) => resource
      }),
      scope: scope === null || scope === "" || scope.length > maxScopeCharacters ? null : scope
    }
    return target
  })

  return (url: string, issuer: string | null) =>
    Effect.timeoutFail(discover(url, issuer), {
      duration: discoveryTimeout,
      onTimeout: () =>
        new ToolAuthorizationError({ reason: "Unavailable", message: "The servers answer too slowly." })
    })
}
