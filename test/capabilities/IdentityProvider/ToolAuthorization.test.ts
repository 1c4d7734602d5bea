/** Authorization servers that leave their documents incomplete, as many of MCP servers do. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { type AuthorizationServer, ToolAuthorization } from "../../../src/capabilities/IdentityProvider.ts"
import { layerToolOAuth } from "../../../src/capabilities/IdentityProvider/ToolOAuth.ts"
import { OutboundAddresses, OutboundHttp } from "../../../src/capabilities/OutboundHttp.ts"

const server: AuthorizationServer = {
  issuer: "https://id.example",
  authorizationEndpoint: "https://id.example/authorize",
  tokenEndpoint: "https://id.example/token",
  registrationEndpoint: "https://id.example/register",
  revocationEndpoint: null,
  authMethods: ["client_secret_basic", "none"],
  namesItself: false,
  readsClientDocuments: false,
  offersOfflineAccess: false
}

/** The capability, where every request gets this answer. */
const answering = (status: number, document: object) =>
  Effect.provide(
    ToolAuthorization,
    layerToolOAuth.pipe(
      Layer.provide([
        Layer.succeed(OutboundHttp, {
          fetch: ({ url }) =>
            Effect.succeed({
              url,
              status,
              headers: { "content-type": "application/json" },
              body: Buffer.from(JSON.stringify(document))
            })
        }),
        Layer.succeed(OutboundAddresses, { of: () => Effect.die("not used") })
      ])
    )
  )

const secretOf = (secret: Redacted.Redacted | null) => (secret === null ? null : Redacted.value(secret))

it.effect("A registration may answer 200, and leave out or null what a client does not need", () =>
  Effect.gen(function* () {
    for (const [status, document, secret] of [
      [201, { client_id: "c", client_secret: "s", client_secret_expires_at: 0 }, "s"],
      [201, { client_id: "c", client_secret: "s" }, "s"],
      [200, { client_id: "c", client_secret: "s", client_secret_expires_at: null }, "s"],
      [200, { client_id: "c", client_secret: null, client_uri: null }, null]
    ] as const) {
      const authorization = yield* answering(status, document)
      const { clientId, clientSecret } = yield* authorization.register(
        server,
        "https://spoke.example/callback"
      )
      expect([clientId, secretOf(clientSecret)]).toEqual(["c", secret])
    }
    for (const [status, document] of [
      [400, { error: "invalid_redirect_uri" }],
      [200, {}],
      [201, []]
    ] as const) {
      const authorization = yield* answering(status, document)
      const failure = yield* Effect.flip(authorization.register(server, "https://spoke.example/callback"))
      expect(failure._tag).toBe("ToolAuthorizationError")
    }
  })
)

it.effect("An answer with a token may have null for what it leaves out, and any status of success", () =>
  Effect.gen(function* () {
    const document = {
      access_token: "a",
      token_type: "Bearer",
      expires_in: null,
      refresh_token: null,
      scope: null,
      id_token: null
    }
    for (const status of [200, 201]) {
      const authorization = yield* answering(status, document)
      const tokens = yield* authorization.refresh(
        { server, resource: "https://mcp.example/mcp" },
        { clientId: "c", clientSecret: null },
        Redacted.make("r")
      )
      expect({ ...tokens, access: Redacted.value(tokens.access) }).toEqual({
        access: "a",
        refresh: null,
        lastsSeconds: null,
        scope: null
      })
    }
  })
)
