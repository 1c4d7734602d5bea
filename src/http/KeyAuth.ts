/**
 * Authenticates the key in a header, and checks its permission and rate limit. Every response to a limited key has the
 * headers `RateLimit-*` of draft-ietf-httpapi-ratelimit-headers-06.
 */
import type * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { KeyStore, type LiveKey } from "../capabilities/KeyStore.ts"
import { type AgentKey, allows, allowsVisitors, type Requirement } from "../domain/accounts/Access.ts"
import { widgetPrefix } from "../domain/agents/Widget.ts"
import { networkOf } from "../domain/ClientNetwork.ts"
import { Forbidden, PlanRestricted, RateLimited, Unauthorized, internalError } from "../domain/Errors.ts"
import * as CheapSpans from "../concurrency/CheapSpans.ts"
import { intersectScopes } from "../domain/knowledge/SourceScope.ts"
import { type Allowance, RateLimits } from "../usecases/billing/RateLimits.ts"
import { TenantGate } from "../usecases/operations/moves/TenantGate.ts"
import { VisitorTokens } from "../usecases/chat/widget/VisitorTokens.ts"
import { AgentKeyAuth } from "./Auth.ts"
import { bearerToken } from "./BearerToken.ts"
import * as Headers from "./server/Headers.ts"
import * as Routes from "./Routes.ts"

/** Longer keys are refused without a query. */
const maxKeyCharacters = 512

const unauthorized = () =>
  new Unauthorized({
    message: "Send a valid API key, as x-api-key or as Authorization: Bearer."
  })

/** The data of a request that identifies its sender. */
export interface Requester {
  readonly headers: Headers.HeaderValues
  readonly remoteAddress: Option.Option<string>
}

/** The key of a request: `x-api-key`, else the bearer token. */
export const keySecretOf = ({ headers }: Requester): Option.Option<Redacted.Redacted> => {
  // Proxies and templates send an empty header when there is no key.
  const secret = Headers.get(headers, "x-api-key") || bearerToken(Headers.get(headers, "authorization"))
  return secret === "" || secret.length > maxKeyCharacters
    ? Option.none()
    : Option.some(Redacted.make(secret))
}

const isOriginAllowed = (
  { allowedOrigins }: LiveKey,
  { ownOrigin }: KeyRequirements,
  origin: string | undefined
) =>
  allowedOrigins.length === 0
    ? ownOrigin === undefined || origin === undefined || origin === ownOrigin
    : origin !== undefined && allowedOrigins.includes(origin)

const checkOrigin = (key: LiveKey, requirements: KeyRequirements, origin: string | undefined) =>
  isOriginAllowed(key, requirements, origin)
    ? Effect.void
    : Effect.fail(new Forbidden({ message: "This key may not be used from this origin." }))

const permissionsOf = ({ permission }: KeyRequirements): ReadonlyArray<Requirement> =>
  typeof permission === "string" ? [permission] : permission

const checkPermission = ({ permissions }: LiveKey, requirements: KeyRequirements) => {
  const required = permissionsOf(requirements)
  return required.some((required) => allows(permissions, required))
    ? Effect.void
    : Effect.fail(new Forbidden({ message: `This key lacks the permission ${required.join(" or ")}.` }))
}

const checkVisitor = (requirements: KeyRequirements) =>
  permissionsOf(requirements).some(allowsVisitors)
    ? Effect.void
    : Effect.fail(new Forbidden({ message: "A visitor's token does not allow this." }))

const addLimitHeaders = ({ limit, remaining, reset }: Allowance) =>
  FiberRef.update(Headers.extra, (others) => ({
    ...others,
    "ratelimit-limit": String(limit.requests),
    "ratelimit-remaining": String(remaining),
    "ratelimit-reset": String(reset),
    "ratelimit-policy": `${limit.requests};w=${limit.window}`
  }))

const checkRate = CheapSpans.fn("KeyAuth.checkRate")(function* (
  limits: RateLimits,
  live: LiveKey,
  isWidget: boolean,
  { remoteAddress }: Requester
) {
  const address = networkOf(Option.getOrUndefined(remoteAddress))
  const allowance = yield* limits.take(live, address, isWidget)
  if (allowance === null) return
  yield* addLimitHeaders(allowance)
  if (allowance.granted) return
  const { limit, reset } = allowance
  return yield* new RateLimited({
    message: `This key may be used ${limit.requests} times in ${limit.window} seconds. Try again later.`,
    details: { retryAfterSeconds: reset, limit }
  })
})

export interface KeyRequirements {
  /** One of them suffices. */
  readonly permission: Requirement | ReadonlyArray<Requirement>
  /** True when the plan must include the public API, as on `/v1`. */
  readonly publicApi: boolean
  /** Accepts the public id of a widget. Only the chat of pages allows it. */
  readonly widgets?: true
  /** The only allowed origin for a key without a list of origins; undefined allows any. */
  readonly ownOrigin?: string
}

/**
 * Narrows `key` by the token in `x-visitor-token`. A widget's public id is not secret, so the token alone decides what
 * its visitor may read; for any other key it removes access. An invalid token is refused, because without it the key
 * may read more.
 */
const restrictToVisitor = Effect.fn("KeyAuth.restrictToVisitor")(function* (
  visitors: VisitorTokens,
  key: AgentKey,
  isWidget: boolean,
  token: string
) {
  const grant = yield* visitors.verify(key, token)
  if (Option.isNone(grant)) {
    return yield* new Unauthorized({ message: "The visitor's token is not valid, or has expired." })
  }
  const { externalEndUserId, sourceScope } = grant.value
  const restrictedKey: AgentKey = {
    ...key,
    sourceScope: isWidget ? sourceScope : intersectScopes(key.sourceScope, sourceScope),
    ...(externalEndUserId === null ? {} : { visitor: externalEndUserId })
  }
  return restrictedKey
})

/** The services that check keys. */
interface KeyServices {
  readonly keys: KeyStore["Type"]
  readonly limits: RateLimits
  readonly visitors: VisitorTokens
  readonly gate: TenantGate
}

export const keyServices = Effect.all({
  keys: KeyStore,
  limits: RateLimits,
  visitors: VisitorTokens,
  gate: TenantGate
})

/**
 * The live agent key of `requester`. Fails in this order: key, tenant not served here, plan, agent, origin, permission,
 * rate limit, visitor.
 */
export const authenticate = CheapSpans.fn("KeyAuth.authenticate")(function* (
  { gate, keys, limits, visitors }: KeyServices,
  requirements: KeyRequirements,
  requester: Requester
) {
  const secret = keySecretOf(requester)
  if (Option.isNone(secret)) return yield* unauthorized()
  const found = yield* keys.find(secret.value)
  if (Option.isNone(found)) return yield* unauthorized()
  const live = found.value
  yield* CheapSpans.annotate({ keyId: live.keyId, tenantId: live.tenantId })
  yield* gate.enter(live.tenantId)
  const isWidget = Redacted.value(secret.value).startsWith(widgetPrefix)
  if (requirements.widgets !== true && isWidget) {
    return yield* new Forbidden({ message: "The public name of a widget is valid only for its chat." })
  }
  if (requirements.publicApi && !live.publicApi) {
    return yield* new PlanRestricted({ message: "The plan does not include the public API." })
  }
  if (live.scope !== "agent") {
    return yield* new Forbidden({ message: "This route needs the key of one agent." })
  }
  if (live.agentId === null) {
    yield* Effect.logError("An agent key has no agent", { keyId: live.keyId })
    return yield* internalError()
  }
  yield* checkOrigin(live, requirements, Headers.get(requester.headers, "origin"))
  yield* checkPermission(live, requirements)
  if (limits.limitOf(live) !== null) yield* checkRate(limits, live, isWidget, requester)
  const key: AgentKey = {
    keyId: live.keyId,
    tenantId: live.tenantId,
    agentId: live.agentId,
    permissions: live.permissions,
    sourceScope: live.sourceScope
  }
  const token = Headers.get(requester.headers, "x-visitor-token")
  if (token === undefined) return key
  const restrictedKey = yield* restrictToVisitor(visitors, key, isWidget, token)
  yield* checkVisitor(requirements)
  return restrictedKey
})

/** The middleware for every endpoint of `api` that declares it, with the endpoint's permission. */
export const layer = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>
): Layer.Layer<AgentKeyAuth, never, KeyStore | RateLimits | TenantGate | VisitorTokens> =>
  Layer.effect(
    AgentKeyAuth,
    Effect.gen(function* () {
      const services = yield* keyServices
      const permissions = new Map(
        Routes.table(api).map((route) => [Routes.keyOf(route), route.permission] as const)
      )
      return Effect.gen(function* () {
        const { route } = yield* HttpRouter.RouteContext
        const permission = permissions.get(Routes.keyOf(route))
        if (permission === undefined) return yield* new Forbidden({ message: "Nobody may use this route." })
        const request = yield* HttpServerRequest.HttpServerRequest
        return yield* authenticate(services, { permission, publicApi: true }, request)
      })
    })
  )
