import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { deviceOf } from "../../../domain/accounts/Session.ts"
import { Accounts, sessionLifetime } from "../../../usecases/accounts/Accounts.ts"
import { Api } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { networkOfRequest, TrustedProxies } from "../../server/ClientAddress.ts"
import { SessionCookie, sessionToken } from "./SessionCookie.ts"

/** Sign-in, sign-out and the current user. */
export const SessionsHandlers = HttpApiBuilder.group(Api, "sessions", (handlers) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const cookie = yield* SessionCookie
    const proxies = yield* TrustedProxies
    return handlers
      .handle("login", ({ payload, request }) =>
        Effect.gen(function* () {
          const { user, token } = yield* accounts.signIn(
            payload,
            networkOfRequest(proxies, request),
            deviceOf(request.headers["user-agent"])
          )
          yield* cookie.set(token, sessionLifetime)
          return { user }
        })
      )
      .handle("logout", () =>
        Effect.gen(function* () {
          yield* Effect.flatMap(sessionToken, Effect.transposeMapOption(accounts.signOut))
          yield* cookie.clear
          return { signedOut: true } as const
        })
      )
      .handle("session", () =>
        Effect.map(CurrentUser, ({ userId, ...user }) => ({ user: { ...user, id: userId } }))
      )
  })
)
