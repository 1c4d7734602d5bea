/** An authorization server, and an MCP server that accepts only its tokens. */
import * as Effect from "effect/Effect"
import { createHash, createPublicKey, generateKeyPairSync, randomUUID, verify } from "node:crypto"
import type * as Http from "node:http"
import Provider from "oidc-provider"
import { listen } from "../accounts/sso/Providers.ts"

export const registeredClient = { clientId: "by-hand", secret: "a-client-secret-of-the-tests-by-hand" }
export const machineClient = { clientId: "machine", secret: "a-client-secret-of-the-tests-machine" }

/** The behaviour of the authorization server. Tests change it. */
interface Behaviour {
  /** Validity of an access token, in seconds. */
  tokenSeconds: number
  isDown: boolean
  /** The error that the token endpoint returns for every request; null for none. */
  error: string | null
  /** The audience of every token; null for the requested resource. */
  audience: string | null
  /** The scopes that it grants at most. A request for others is refused, or gets these. */
  scopes: string
  /** Milliseconds before each answer of the token endpoint. */
  delay: number
  metadata: (document: Record<string, unknown>) => Record<string, unknown>
}

interface Claims {
  readonly aud: string
  readonly exp: number
  readonly scope?: string
}

const pathsOfMetadata = /^\/\.well-known\/(?:openid-configuration|oauth-authorization-server)$/

/** `oidc-provider` with the features that MCP requires. */
export const authorizationServer = (redirectUri: string) =>
  Effect.gen(function* () {
    const behaviour: Behaviour = {
      tokenSeconds: 3_600,
      isDown: false,
      error: null,
      audience: null,
      scopes: "mcp:tools mcp:write",
      delay: 0,
      metadata: (document) => document
    }
    /** The path of each request for a token and to revoke one. */
    const tokenRequests: Array<string> = []
    /** The header `authorization` of each revocation. */
    const revocationCredentials: Array<string> = []
    let providerListener: Http.RequestListener = (_, response) => response.end()
    const answer = (request: Http.IncomingMessage, response: Http.ServerResponse) => {
      const path = request.url?.split("?")[0] ?? ""
      if (pathsOfMetadata.test(path)) {
        const end = response.end.bind(response)
        Object.assign(response, {
          end: (body: unknown) => {
            const document: Record<string, unknown> = JSON.parse(String(body))
            const changed = Buffer.from(JSON.stringify(behaviour.metadata(document)))
            response.setHeader("content-length", changed.length)
            return end(changed)
          }
        })
      }
      if (path.startsWith("/token")) tokenRequests.push(path)
      if (path === "/token/revocation") revocationCredentials.push(request.headers.authorization ?? "")
      if (path === "/token" && behaviour.error !== null) {
        response.writeHead(400, { "content-type": "application/json" })
        return void response.end(JSON.stringify({ error: behaviour.error }))
      }
      return providerListener(request, response)
    }
    const { issuer } = yield* listen((request, response) => {
      if (behaviour.isDown) return void response.writeHead(503).end("down")
      const isToken = request.url?.startsWith("/token") === true
      if (isToken && behaviour.delay > 0)
        return void setTimeout(() => answer(request, response), behaviour.delay)
      return answer(request, response)
    })
    const pair = generateKeyPairSync("ec", { namedCurve: "P-256" })
    const provider = new Provider(issuer, {
      clients: [
        {
          client_id: registeredClient.clientId,
          client_secret: registeredClient.secret,
          redirect_uris: [redirectUri],
          grant_types: ["authorization_code", "refresh_token"],
          id_token_signed_response_alg: "ES256"
        },
        {
          client_id: machineClient.clientId,
          client_secret: machineClient.secret,
          redirect_uris: [],
          response_types: [],
          grant_types: ["client_credentials"]
        }
      ],
      jwks: { keys: [{ ...pair.privateKey.export({ format: "jwk" }), use: "sig", alg: "ES256", kid: "ec" }] },
      clientDefaults: { id_token_signed_response_alg: "ES256" },
      cookies: { keys: ["of the tests"] },
      scopes: ["openid", "offline_access"],
      findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
      rotateRefreshToken: true,
      features: {
        registration: { enabled: true },
        revocation: { enabled: true },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          useGrantedResource: () => true,
          getResourceServerInfo: (_: unknown, resource: string) => ({
            scope: behaviour.scopes,
            audience: behaviour.audience ?? resource,
            accessTokenTTL: behaviour.tokenSeconds,
            accessTokenFormat: "jwt",
            jwt: { sign: { alg: "ES256" } }
          })
        }
      }
    })
    providerListener = provider.callback()
    const key = createPublicKey(pair.privateKey)
    /** The claims of a token that this server has issued and that has not expired; null for any other. */
    const claimsOf = (token: string): Claims | null => {
      const [head = "", body = "", signature = ""] = token.split(".")
      const isSigned = verify(
        "sha256",
        Buffer.from(`${head}.${body}`),
        { key, dsaEncoding: "ieee-p1363" },
        Buffer.from(signature, "base64url")
      )
      if (!isSigned) return null
      const claims: Claims = JSON.parse(Buffer.from(body, "base64url").toString())
      return claims.exp * 1_000 > Date.now() ? claims : null
    }
    const audienceOf = (token: string): string | null => claimsOf(token)?.aud ?? null
    const scopesOf = (token: string): ReadonlyArray<string> => claimsOf(token)?.scope?.split(" ") ?? []
    return { issuer, behaviour, tokenRequests, revocationCredentials, audienceOf, scopesOf }
  })

/** Reads the metadata document at the address that is a client's id. */
type ReadDocument = (clientId: string) => Promise<Readonly<Record<string, unknown>>>

/**
 * An authorization server with support for metadata documents of clients, which `oidc-provider` lacks. Its sign-in page
 * redirects the browser back at once.
 */
export const documentServer = (read: ReadDocument) =>
  Effect.gen(function* () {
    const behaviour = { isSupported: true }
    /** The bodies of requests for tokens, and the ids of clients that were registered. */
    const requests: Array<Readonly<Record<string, string>>> = []
    const registered: Array<string> = []
    const codes = new Map<string, Readonly<Record<string, string>>>()
    const given = new Map<string, string>()
    const { issuer } = yield* listen((request, response) => {
      const json = (status: number, body: unknown) => {
        response.writeHead(status, { "content-type": "application/json" })
        response.end(JSON.stringify(body))
      }
      const own = `http://${request.headers.host}`
      const { pathname, searchParams } = new URL(request.url ?? "", own)
      if (pathname.startsWith("/.well-known/")) {
        return json(200, {
          issuer: own,
          authorization_endpoint: `${own}/authorize`,
          token_endpoint: `${own}/token`,
          registration_endpoint: `${own}/register`,
          token_endpoint_auth_methods_supported: ["none"],
          code_challenge_methods_supported: ["S256"],
          ...(behaviour.isSupported ? { client_id_metadata_document_supported: true } : {})
        })
      }
      if (pathname === "/authorize") {
        const asked = Object.fromEntries(searchParams)
        const { client_id: id = "", redirect_uri: uri = "", state = "" } = asked
        const document = registered.includes(id)
          ? Promise.resolve({ client_id: id, redirect_uris: [uri] })
          : read(id)
        return void document.then(({ client_id, redirect_uris: uris }) => {
          if (client_id !== id || !Array.isArray(uris) || !uris.includes(uri)) return json(400, {})
          const code = randomUUID()
          codes.set(code, asked)
          return response.writeHead(302, { location: `${uri}?code=${code}&state=${state}` }).end()
        })
      }
      let body = ""
      request.on("data", (chunk) => (body += String(chunk)))
      request.on("end", () => {
        if (pathname === "/register") {
          registered.push(`client-${registered.length}`)
          return json(201, { ...JSON.parse(body), client_id: registered.at(-1) })
        }
        const sent = Object.fromEntries(new URLSearchParams(body))
        requests.push(sent)
        const asked = codes.get(sent["code"] ?? "")
        const challenge = createHash("sha256").update(sent["code_verifier"] ?? "")
        const isRefresh = sent["grant_type"] === "refresh_token" && sent["refresh_token"] === "again"
        const isRight =
          asked !== undefined &&
          asked["client_id"] === sent["client_id"] &&
          asked["code_challenge"] === challenge.digest("base64url")
        if (!isRight && !isRefresh) return json(400, { error: "invalid_grant" })
        const access = randomUUID()
        given.set(access, sent["resource"] ?? "")
        const lasts = { expires_in: 3_600, refresh_token: "again" }
        return json(200, { access_token: access, token_type: "Bearer", ...lasts })
      })
      return undefined
    })
    const audienceOf = (token: string): string | null => given.get(token) ?? null
    const scopesOf = (): ReadonlyArray<string> => []
    return { issuer, behaviour, requests, registered, audienceOf, scopesOf }
  })

type AuthorizationServer = Pick<
  Effect.Effect.Success<ReturnType<typeof authorizationServer>>,
  "audienceOf" | "issuer" | "scopesOf"
>

/** The behaviour of the MCP server. Tests change it. */
interface McpBehaviour {
  /** Changes its metadata; null for none. */
  metadata: (document: Record<string, unknown>) => Record<string, unknown> | null
  /** The address of the metadata in the challenge; null to omit it. */
  metadataUrl: (address: string) => string | null
  /** Whether it refuses a valid token. */
  refuses: (token: string) => boolean
  /** The scopes that a method requires; none by default. */
  requiredScopes: (method: string) => ReadonlyArray<string>
}

/** An MCP server whose tool returns the token that it got, as a careless server might. */
export const mcpServer = ({ audienceOf, issuer, scopesOf }: AuthorizationServer) =>
  Effect.gen(function* () {
    const behaviour: McpBehaviour = {
      metadata: (document) => document,
      metadataUrl: (address) => address,
      refuses: () => false,
      requiredScopes: () => []
    }
    const tokens: Array<string> = []
    const server = yield* listen((request, response) => {
      const origin = `http://${request.headers.host}`
      const json = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) => {
        response.writeHead(status, { "content-type": "application/json", ...headers })
        response.end(JSON.stringify(body))
      }
      if (request.url?.startsWith("/.well-known/oauth-protected-resource") === true) {
        const document = behaviour.metadata({
          resource: `${origin}/mcp`,
          authorization_servers: [issuer],
          scopes_supported: ["mcp:tools"]
        })
        return document === null ? json(404, {}) : json(200, document)
      }
      const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1]
      const isAccepted =
        token !== undefined && !behaviour.refuses(token) && audienceOf(token) === `${origin}/mcp`
      if (token !== undefined) tokens.push(token)
      if (!isAccepted) {
        const metadataUrl = behaviour.metadataUrl(`${origin}/.well-known/oauth-protected-resource/mcp`)
        const parameter = metadataUrl === null ? "" : ` resource_metadata="${metadataUrl}",`
        return json(401, {}, { "www-authenticate": `Bearer${parameter} error="invalid_token"` })
      }
      let body = ""
      request.on("data", (chunk) => (body += String(chunk)))
      request.on("end", () => {
        const { id, method } = JSON.parse(body)
        if (id === undefined) return void response.writeHead(202).end()
        const required = behaviour.requiredScopes(method)
        if (!required.every((scope) => scopesOf(token).includes(scope))) {
          const challenge = `Bearer error="insufficient_scope", error_description="Not scope=this", scope="${required.join(" ")}"`
          return json(403, {}, { "www-authenticate": challenge })
        }
        const results: Readonly<Record<string, unknown>> = {
          initialize: {
            protocolVersion: "2025-06-18",
            capabilities: {},
            serverInfo: { name: "t", version: "1" }
          },
          "tools/list": { tools: [{ name: "find", description: "Finds.", inputSchema: { type: "object" } }] },
          "tools/call": { content: [{ type: "text", text: `found with ${token}` }] }
        }
        const result = results[method]
        const error = { code: -32_601, message: "Method not found" }
        return json(200, { jsonrpc: "2.0", id, ...(result === undefined ? { error } : { result }) })
      })
      return undefined
    })
    return { url: `${server.issuer}/mcp`, behaviour, tokens }
  })
