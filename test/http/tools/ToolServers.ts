/** An authorization server, and an MCP server that takes its tokens alone. */
import * as Effect from "effect/Effect"
import { createHash, createPublicKey, generateKeyPairSync, randomUUID, verify } from "node:crypto"
import type * as Http from "node:http"
import Provider from "oidc-provider"
import { listen } from "../accounts/sso/Providers.ts"

export const registeredClient = { clientId: "by-hand", secret: "a-client-secret-of-the-tests-by-hand" }
export const machineClient = { clientId: "machine", secret: "a-client-secret-of-the-tests-machine" }

/** What the authorization server does; a test changes it. */
interface Conduct {
  /** Seconds that an access token lasts. */
  lasts: number
  isDown: boolean
  /** The error of every answer of the token endpoint. */
  error: string | null
  /** Names another resource in every token. */
  audience: string | null
  /** The scopes that it grants. A request for others is refused, or gets what it may have. */
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

/** `oidc-provider` with everything that MCP asks for. */
export const authorizationServer = (redirectUri: string) =>
  Effect.gen(function* () {
    const conduct: Conduct = {
      lasts: 3_600,
      isDown: false,
      error: null,
      audience: null,
      scopes: "mcp:tools mcp:write",
      delay: 0,
      metadata: (document) => document
    }
    /** The grant of each request for a token, and each request to revoke one. */
    const asked: Array<string> = []
    /** Who asked for each revocation: the header `authorization`. */
    const revokers: Array<string> = []
    let provided: Http.RequestListener = (_, response) => response.end()
    const answer = (request: Http.IncomingMessage, response: Http.ServerResponse) => {
      const path = request.url?.split("?")[0] ?? ""
      if (pathsOfMetadata.test(path)) {
        const end = response.end.bind(response)
        Object.assign(response, {
          end: (body: unknown) => {
            const document: Record<string, unknown> = JSON.parse(String(body))
            const changed = Buffer.from(JSON.stringify(conduct.metadata(document)))
            response.setHeader("content-length", changed.length)
            return end(changed)
          }
        })
      }
      if (path.startsWith("/token")) asked.push(path)
      if (path === "/token/revocation") revokers.push(request.headers.authorization ?? "")
      if (path === "/token" && conduct.error !== null) {
        response.writeHead(400, { "content-type": "application/json" })
        return void response.end(JSON.stringify({ error: conduct.error }))
      }
      return provided(request, response)
    }
    const { issuer } = yield* listen((request, response) => {
      if (conduct.isDown) return void response.writeHead(503).end("down")
      const isToken = request.url?.startsWith("/token") === true
      if (isToken && conduct.delay > 0) return void setTimeout(() => answer(request, response), conduct.delay)
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
            scope: conduct.scopes,
            audience: conduct.audience ?? resource,
            accessTokenTTL: conduct.lasts,
            accessTokenFormat: "jwt",
            jwt: { sign: { alg: "ES256" } }
          })
        }
      }
    })
    provided = provider.callback()
    const key = createPublicKey(pair.privateKey)
    /** What a token says that it has given and that has not ended. */
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
    return { issuer, conduct, asked, revokers, audienceOf, scopesOf }
  })

/** Reads what a client's id leads to. */
type ReadDocument = (clientId: string) => Promise<Readonly<Record<string, unknown>>>

/**
 * A server that knows clients by their metadata documents; `oidc-provider` does not. Its sign-in page sends the browser
 * back at once.
 */
export const documentServer = (read: ReadDocument) =>
  Effect.gen(function* () {
    const conduct = { isSupported: true }
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
          ...(conduct.isSupported ? { client_id_metadata_document_supported: true } : {})
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
    return { issuer, conduct, requests, registered, audienceOf, scopesOf }
  })

type AuthorizationServer = Pick<
  Effect.Effect.Success<ReturnType<typeof authorizationServer>>,
  "audienceOf" | "issuer" | "scopesOf"
>

/** How the MCP server names its authorization server; a test changes it. */
interface McpConduct {
  /** Its metadata; null: there is none. */
  metadata: (document: Record<string, unknown>) => Record<string, unknown> | null
  /** The address of the metadata in the challenge; null: it is not named. */
  place: (address: string) => string | null
  /** Whether it refuses a token that is right. */
  refuses: (token: string) => boolean
  /** The scopes that a method needs; none by default. */
  demands: (method: string) => ReadonlyArray<string>
}

/** It echoes the token that it got, as a careless server would. */
export const mcpServer = ({ audienceOf, issuer, scopesOf }: AuthorizationServer) =>
  Effect.gen(function* () {
    const conduct: McpConduct = {
      metadata: (document) => document,
      place: (address) => address,
      refuses: () => false,
      demands: () => []
    }
    const tokens: Array<string> = []
    const server = yield* listen((request, response) => {
      const origin = `http://${request.headers.host}`
      const json = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) => {
        response.writeHead(status, { "content-type": "application/json", ...headers })
        response.end(JSON.stringify(body))
      }
      if (request.url?.startsWith("/.well-known/oauth-protected-resource") === true) {
        const document = conduct.metadata({
          resource: `${origin}/mcp`,
          authorization_servers: [issuer],
          scopes_supported: ["mcp:tools"]
        })
        return document === null ? json(404, {}) : json(200, document)
      }
      const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1]
      const isAccepted =
        token !== undefined && !conduct.refuses(token) && audienceOf(token) === `${origin}/mcp`
      if (token !== undefined) tokens.push(token)
      if (!isAccepted) {
        const place = conduct.place(`${origin}/.well-known/oauth-protected-resource/mcp`)
        const named = place === null ? "" : ` resource_metadata="${place}",`
        return json(401, {}, { "www-authenticate": `Bearer${named} error="invalid_token"` })
      }
      let body = ""
      request.on("data", (chunk) => (body += String(chunk)))
      request.on("end", () => {
        const { id, method } = JSON.parse(body)
        if (id === undefined) return void response.writeHead(202).end()
        const demanded = conduct.demands(method)
        if (!demanded.every((scope) => scopesOf(token).includes(scope))) {
          const challenge = `Bearer error="insufficient_scope", error_description="Not scope=this", scope="${demanded.join(" ")}"`
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
    return { url: `${server.issuer}/mcp`, conduct, tokens }
  })
