import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Accounts, sessionLasts } from "../../../usecases/accounts/Accounts.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Team } from "../../../usecases/accounts/Team.ts"
import { Api } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { networkOfRequest, TrustedProxies } from "../../server/ClientAddress.ts"
import { RequestId } from "../../server/RequestId.ts"
import { SessionCookie, sessionToken } from "./SessionCookie.ts"

/** Sign-in, sign-out and who is signed in. */
export const SessionsHandlers = HttpApiBuilder.group(Api, "sessions", (handlers) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const team = yield* Team
    const audit = yield* AuditTrail
    const cookie = yield* SessionCookie
    const proxies = yield* TrustedProxies
    return handlers
      .handle("login", ({ payload, request }) =>
        Effect.gen(function* () {
          const { user, token } = yield* accounts.signIn(payload, networkOfRequest(proxies, request))
          yield* cookie.set(token, sessionLasts)
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
      .handle("choosePassword", ({ payload }) =>
        Effect.gen(function* () {
          const requestId = yield* RequestId
          const user = yield* team.choosePassword(payload)
          const by = { tenantId: user.tenantId, actor: { type: "user" as const, id: user.id }, requestId }
          yield* audit.record(by, "user.password", user.id)
          return { user }
          // Nobody who goes away in between leaves a change without its entry.
        }).pipe(Effect.uninterruptible)
      )
  })
)
