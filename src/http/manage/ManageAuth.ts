/** Authenticates access tokens. Checks, in order: token (401), role of its author (403), scope (403). */
import type * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { atLeast } from "../../domain/accounts/Access.ts"
import { permits } from "../../domain/accounts/AccessToken.ts"
import { Forbidden } from "../../domain/Errors.ts"
import { AccessTokens } from "../../usecases/accounts/AccessTokens.ts"
import { RepeatedRequests } from "../../usecases/accounts/RepeatedRequests.ts"
import { TenantGate } from "../../usecases/operations/moves/TenantGate.ts"
import { ManageAuth } from "../Auth.ts"
import { bearerToken } from "../BearerToken.ts"
import * as Routes from "../Routes.ts"
import { executeOnce } from "./IdempotentRequests.ts"

/** The middleware for every endpoint of `api` that declares it. */
export const layer = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>
): Layer.Layer<ManageAuth, never, AccessTokens | RepeatedRequests | TenantGate> =>
  Layer.effect(
    ManageAuth,
    Effect.gen(function* () {
      const tokens = yield* AccessTokens
      const repeatedRequests = yield* RepeatedRequests
      const gate = yield* TenantGate
      const routes = new Map(Routes.table(api).map((route) => [Routes.keyOf(route), route] as const))
      return Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        const secret = Redacted.make(bearerToken(headers["authorization"]))
        const { scopes, user } = yield* tokens.authenticate(secret)
        yield* gate.enter(user.tenantId)
        const { route } = yield* HttpRouter.RouteContext
        const { role, scope } = routes.get(Routes.keyOf(route)) ?? {}
        if (role === undefined || scope === undefined || !atLeast(user.role, role)) {
          return yield* new Forbidden({ message: "The role of the token's creator does not allow this." })
        }
        if (!permits(scopes, scope)) {
          return yield* new Forbidden({
            message: `This token lacks the scope ${scope.resource}:${scope.verb}.`
          })
        }
        yield* executeOnce(repeatedRequests, user, user.token)
        return user
      })
    })
  )
