/** Who a dashboard request comes from. Its checks in order: cross-site request (403), session (401), role (403). */
import * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { atLeast, type Role } from "../../domain/Access.ts"
import { Forbidden, Unauthorized } from "../../domain/Errors.ts"
import { Accounts } from "../../usecases/Accounts.ts"
import { RequiredRole, SessionAuth } from "../Auth.ts"
import { SameOrigin } from "./SameOrigin.ts"
import { sessionToken } from "./SessionCookie.ts"

const safeMethods = new Set(["GET", "HEAD", "OPTIONS"])

/** Fails for a request that changes state and neither comes from `origin` nor says that it comes from no site. */
const sameOrigin = (origin: string) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ method, headers }) => {
    const given = headers["origin"]
    const trusted = given === undefined ? headers["x-spoke-csrf"] === "1" : given === origin
    if (safeMethods.has(method) || trusted) return Effect.void
    return Effect.fail(
      new Forbidden({
        message: "The request must come from the app, or carry x-spoke-csrf: 1 and no origin."
      })
    )
  })

/** The least role of every endpoint under SessionAuth, by method and path. An endpoint that names none is a defect. */
const rolesOf = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>
): ReadonlyMap<string, Role> => {
  const roles = new Map<string, Role>()
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, middleware, mergedAnnotations }) => {
      if (![...middleware].some(({ key }) => key === SessionAuth.key)) return
      const route = `${endpoint.method} ${endpoint.path}`
      const least = Context.getOption(mergedAnnotations, RequiredRole)
      if (Option.isNone(least)) throw new Error(`${route} takes a session and does not say which role.`)
      roles.set(route, least.value)
    }
  })
  return roles
}

/** Both middlewares for the endpoints of `api`; `appUrl` is `{app_url}`. */
export const layer = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>,
  appUrl: string
): Layer.Layer<SessionAuth | SameOrigin, never, Accounts> => {
  const check = sameOrigin(new URL(appUrl).origin)
  const session = Effect.gen(function* () {
    const accounts = yield* Accounts
    const roles = rolesOf(api)
    return Effect.gen(function* () {
      yield* check
      const token = yield* sessionToken
      if (Option.isNone(token)) return yield* new Unauthorized({ message: "Sign in first." })
      const user = yield* accounts.authenticate(token.value)
      const { route } = yield* HttpRouter.RouteContext
      const least = roles.get(`${route.method} ${route.path}`)
      if (least !== undefined && atLeast(user.role, least)) return user
      return yield* new Forbidden({ message: "Your role does not allow this." })
    })
  })
  return Layer.merge(Layer.effect(SessionAuth, session), Layer.succeed(SameOrigin, check))
}
