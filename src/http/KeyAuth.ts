/** From the key in a header to the agent and what it may do (specification 5.1–5.3, contract 5 and 11). */
import type * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { KeyStore, type LiveKey } from "../capabilities/KeyStore.ts"
import { type AgentKey, allows, type Requirement } from "../domain/Access.ts"
import { Forbidden, InternalError, PlanRestricted, Unauthorized } from "../domain/Errors.ts"
import { AgentKeyAuth } from "./Auth.ts"
import * as Routes from "./Routes.ts"

/** Longer ones are not looked up. */
const longest = 512

const unauthorized = () =>
  new Unauthorized({
    message: "Send a valid API key, as x-api-key or as Authorization: Bearer."
  })

/** The key of a request: `x-api-key`, else the bearer token. */
export const secretOf = ({
  headers
}: HttpServerRequest.HttpServerRequest): Option.Option<Redacted.Redacted> => {
  const bearer = /^bearer +(\S+) *$/iu.exec(headers["authorization"] ?? "")
  // An empty header is what a proxy or a template makes of a key that is not there.
  const secret = headers["x-api-key"] || (bearer?.[1] ?? "")
  return secret === "" || secret.length > longest ? Option.none() : Option.some(Redacted.make(secret))
}

const checkOrigin = ({ allowedOrigins }: LiveKey, origin: string | undefined) =>
  allowedOrigins.length === 0 || (origin !== undefined && allowedOrigins.includes(origin))
    ? Effect.void
    : Effect.fail(new Forbidden({ message: "This key may not be used from this origin." }))

const checkPermission = ({ permissions }: LiveKey, required: Requirement) =>
  allows(permissions, required)
    ? Effect.void
    : Effect.fail(new Forbidden({ message: `This key lacks the permission ${required}.` }))

export interface Demands {
  readonly permission: Requirement
  /** The plan must include the public API: so it is on `/v1`, and on no other surface. */
  readonly publicApi: boolean
}

/** The live agent key of the request. Fails in this order: key, plan, agent, origin, permission. */
export const authenticate = Effect.fn("KeyAuth.authenticate")(function* (
  keys: KeyStore["Type"],
  demands: Demands
) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const secret = secretOf(request)
  if (Option.isNone(secret)) return yield* unauthorized()
  const found = yield* keys.find(secret.value)
  if (Option.isNone(found)) return yield* unauthorized()
  const live = found.value
  yield* Effect.annotateCurrentSpan({ keyId: live.keyId, tenantId: live.tenantId })
  if (demands.publicApi && !live.publicApi) {
    return yield* new PlanRestricted({ message: "The plan does not include the public API." })
  }
  if (live.scope !== "agent") {
    return yield* new Forbidden({ message: "This route needs the key of one agent." })
  }
  if (live.agentId === null) {
    yield* Effect.logError("An agent key has no agent", { keyId: live.keyId })
    return yield* new InternalError({ message: "Something went wrong on our side." })
  }
  yield* checkOrigin(live, request.headers["origin"])
  yield* checkPermission(live, demands.permission)
  const key: AgentKey = {
    keyId: live.keyId,
    tenantId: live.tenantId,
    agentId: live.agentId,
    permissions: live.permissions
  }
  return key
})

/** The middleware for every endpoint of `api` that declares it, each with the permission that it declares. */
export const layer = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>
): Layer.Layer<AgentKeyAuth, never, KeyStore> =>
  Layer.effect(
    AgentKeyAuth,
    Effect.gen(function* () {
      const keys = yield* KeyStore
      const permissions = new Map(
        Routes.table(api).map((route) => [Routes.keyOf(route), route.permission] as const)
      )
      return Effect.gen(function* () {
        const { route } = yield* HttpRouter.RouteContext
        const permission = permissions.get(Routes.keyOf(route))
        if (permission === undefined) return yield* new Forbidden({ message: "Nobody may use this route." })
        return yield* authenticate(keys, { permission, publicApi: true })
      })
    })
  )
