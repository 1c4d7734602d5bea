/**
 * Authenticates requests of the widget or the dashboard's test chat: by the agent key, else by the session cookie. An
 * invalid key is refused even with a valid cookie.
 */
import type * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { KeyStore } from "../../../capabilities/KeyStore.ts"
import { atLeast, type Caller } from "../../../domain/accounts/Access.ts"
import { Forbidden, Unauthorized, forbiddenForRole } from "../../../domain/Errors.ts"
import { Accounts } from "../../../usecases/accounts/Accounts.ts"
import type { RateLimits } from "../../../usecases/billing/RateLimits.ts"
import type { TenantGate } from "../../../usecases/operations/moves/TenantGate.ts"
import type { VisitorTokens } from "../../../usecases/chat/widget/VisitorTokens.ts"
import { CallerAuth } from "../../Auth.ts"
import { authenticate, keyServices, keySecretOf } from "../../KeyAuth.ts"
import * as Routes from "../../Routes.ts"
import { requireSameOrigin } from "./SessionAuth.ts"
import { sessionToken } from "./SessionCookie.ts"

/** The middleware for the endpoints of `api` that declare it. `appUrl` is `{app_url}`. */
export const layer = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>,
  appUrl: string
): Layer.Layer<CallerAuth, never, Accounts | KeyStore | RateLimits | TenantGate | VisitorTokens> => {
  const check = requireSameOrigin(new URL(appUrl).origin)
  return Layer.effect(
    CallerAuth,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const services = yield* keyServices
      const routes = new Map(Routes.table(api).map((route) => [Routes.keyOf(route), route] as const))

      const bySession = Effect.fn("CallerAuth.bySession")(function* (minRole: Routes.Route["role"]) {
        const token = yield* sessionToken
        if (Option.isNone(token)) {
          return yield* new Unauthorized({ message: "Send an API key of an agent, or sign in." })
        }
        yield* check
        const user = yield* accounts.authenticate(token.value)
        yield* services.gate.enter(user.tenantId)
        if (minRole === undefined || !atLeast(user.role, minRole)) {
          return yield* forbiddenForRole()
        }
        return user
      })

      return Effect.gen(function* () {
        const { route } = yield* HttpRouter.RouteContext
        const request = yield* HttpServerRequest.HttpServerRequest
        const { permission, role } = routes.get(Routes.keyOf(route)) ?? {}
        if (permission === undefined) return yield* new Forbidden({ message: "Nobody may use this route." })
        const caller: Caller = Option.isSome(keySecretOf(request))
          ? {
              _tag: "Key",
              key: yield* authenticate(services, { permission, publicApi: false, widgets: true }, request)
            }
          : { _tag: "User", user: yield* bySession(role) }
        return caller
      })
    })
  )
}
