import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import type { SessionUser } from "../../../../domain/accounts/Access.ts"
import { deviceOf } from "../../../../domain/accounts/Session.ts"
import { sessionLifetime } from "../../../../usecases/accounts/Accounts.ts"
import { challengeLifetime, Passkeys } from "../../../../usecases/accounts/Passkeys.ts"
import { Api } from "../../../Api.ts"
import { CurrentUser } from "../../../Auth.ts"
import { networkOfRequest, TrustedProxies } from "../../../server/ClientAddress.ts"
import { audited, idOf, auditedRemoval } from "../Actor.ts"
import { SessionCookie } from "../SessionCookie.ts"
import { PasskeyCookie } from "./PasskeyCookie.ts"

/** The caller's own passkeys. */
export const PasskeysHandlers = HttpApiBuilder.group(Api, "passkeys", (handlers) =>
  Effect.gen(function* () {
    const passkeys = yield* Passkeys
    const cookie = yield* PasskeyCookie
    return handlers
      .handle("list", () =>
        Effect.gen(function* () {
          return { passkeys: yield* passkeys.list(yield* CurrentUser), available: cookie.isAvailable }
        })
      )
      .handle("beginAdding", () =>
        Effect.gen(function* () {
          const { flow, options } = yield* passkeys.beginAdding(yield* CurrentUser, cookie.site)
          yield* cookie.set(flow, challengeLifetime)
          return { options }
        })
      )
      .handle("add", ({ payload }) =>
        Effect.gen(function* () {
          const flow = yield* cookie.take
          const add = (user: SessionUser) => passkeys.add(user, flow, payload, cookie.site)
          return { passkey: yield* audited("passkey.create", add, idOf) }
        })
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("passkey.delete", id, passkeys.remove))
  })
)

export const PasskeySignInHandlers = HttpApiBuilder.group(Api, "passkeySignIn", (handlers) =>
  Effect.gen(function* () {
    const passkeys = yield* Passkeys
    const cookie = yield* PasskeyCookie
    const session = yield* SessionCookie
    const proxies = yield* TrustedProxies
    return handlers
      .handle("challenge", () =>
        Effect.gen(function* () {
          const { flow, options } = yield* passkeys.beginSignIn(cookie.site)
          yield* cookie.set(flow, challengeLifetime)
          return { options }
        })
      )
      .handle("signIn", ({ payload: { credential }, request }) =>
        Effect.gen(function* () {
          const { token, user } = yield* passkeys.signIn(yield* cookie.take, credential, cookie.site, {
            address: networkOfRequest(proxies, request),
            device: deviceOf(request.headers["user-agent"])
          })
          yield* session.set(token, sessionLifetime)
          return { user }
        })
      )
  })
)
