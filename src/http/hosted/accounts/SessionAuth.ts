/** Authenticates dashboard requests. Checks, in order: cross-site request (403), session (401), role (403). */
import type * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { atLeast } from "../../../domain/accounts/Access.ts"
import { Forbidden, Unauthorized, forbiddenForRole } from "../../../domain/Errors.ts"
import { Accounts } from "../../../usecases/accounts/Accounts.ts"
import { TenantGate } from "../../../usecases/operations/moves/TenantGate.ts"
import { SessionAuth } from "../../Auth.ts"
import * as Routes from "../../Routes.ts"
import { SameOrigin } from "./SameOrigin.ts"
import { sessionToken } from "./SessionCookie.ts"

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"])

/**
 * Fails for a request that changes state unless it comes from `origin`, or has no origin and the header `x-spoke-csrf`.
 */
export const requireSameOrigin = (origin: string) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method, headers }) => {
    const requestOrigin = headers["origin"]
    const trusted = requestOrigin === undefined ? headers["x-spoke-csrf"] === "1" : requestOrigin === origin
    if (safeMethods.has(method) || trusted) return Effect.void
    return Effect.fail(
      new Forbidden({
        message: `The request must come from ${origin}: open the dashboard there, or set APP_URL to the address that you use. A program sends x-spoke-csrf: 1 and no origin.`
      })
    )
  })

/** Both middlewares for the endpoints of `api`; `appUrl` is `{app_url}`. */
export const layer = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>,
  appUrl: string
): Layer.Layer<SessionAuth | SameOrigin, never, Accounts | TenantGate> => {
  const check = requireSameOrigin(new URL(appUrl).origin)
  const session = Effect.gen(function* () {
    const accounts = yield* Accounts
    const gate = yield* TenantGate
    const roles = new Map(Routes.table(api).map((route) => [Routes.keyOf(route), route.role] as const))
    return Effect.gen(function* () {
      yield* check
      const token = yield* sessionToken
      if (Option.isNone(token)) return yield* new Unauthorized({ message: "Sign in first." })
      const user = yield* accounts.authenticate(token.value)
      yield* gate.enter(user.tenantId)
      const { route } = yield* HttpRouter.RouteContext
      const minRole = roles.get(Routes.keyOf(route))
      if (minRole !== undefined && atLeast(user.role, minRole)) return user
      return yield* forbiddenForRole()
    })
  })
  return Layer.merge(Layer.effect(SessionAuth, session), Layer.succeed(SameOrigin, check))
}
