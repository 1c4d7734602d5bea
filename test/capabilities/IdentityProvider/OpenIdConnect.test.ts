/** What the other sign-ins at a provider get when one of them is given up. */
import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { IdentityProvider } from "../../../src/capabilities/IdentityProvider.ts"
import { layerOpenIdConnect } from "../../../src/capabilities/IdentityProvider/OpenIdConnect.ts"
import { OutboundHttp } from "../../../src/capabilities/OutboundHttp.ts"

const issuer = "https://id.example"
const client = {
  issuer,
  clientId: "spoke",
  clientSecret: Redacted.make("secret"),
  redirectUri: "https://spoke.example/api/auth/sso/callback",
  groupsClaim: null
}
const metadata = {
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/keys`
}

it.live("A sign-in that is given up does not end others that wait for the same provider", () =>
  Effect.gen(function* () {
    const asked = yield* Deferred.make<void>()
    const answered = yield* Deferred.make<void>()
    const http = OutboundHttp.of({
      fetch: ({ url }) =>
        Deferred.succeed(asked, undefined).pipe(
          Effect.zipRight(Deferred.await(answered)),
          Effect.as({
            url,
            status: 200,
            headers: { "content-type": "application/json" },
            body: Buffer.from(JSON.stringify(metadata))
          })
        )
    })
    const { begin } = yield* Effect.provide(
      IdentityProvider,
      Layer.provide(layerOpenIdConnect, Layer.succeed(OutboundHttp, http))
    )
    const first = yield* Effect.fork(begin(client, "ada@acme.example"))
    yield* Deferred.await(asked)
    const second = yield* Effect.fork(begin(client, "bob@acme.example"))
    yield* Effect.yieldNow()
    yield* Fiber.interrupt(first)
    yield* Deferred.succeed(answered, undefined)
    expect(new URL((yield* Fiber.join(second)).url).origin).toBe(issuer)
  })
)
