/**
 * Access rules, declared on the endpoints themselves. A group has one of the middlewares, and each of its endpoints an
 * annotation with its requirements. An endpoint without a middleware has {@link OpenReason}. The server does not start
 * when an endpoint declares nothing. The middlewares are implemented elsewhere.
 */
import type * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import * as Context from "effect/Context"
import type { AgentKey, Caller, Requirement, Role, SessionUser } from "../domain/accounts/Access.ts"
import type { RequiredScope } from "../domain/accounts/AccessToken.ts"
import {
  Conflict,
  Forbidden,
  InternalError,
  NotConfigured,
  PlanRestricted,
  RateLimited,
  ServiceUnavailable,
  Unauthorized,
  ValidationError
} from "../domain/Errors.ts"
import { failure } from "./Envelope.ts"

/** The agent key of the request, with its permissions at the time of authentication. */
export class CurrentKey extends Context.Tag("http/CurrentKey")<CurrentKey, AgentKey>() {}

/** The dashboard user of the request. */
export class CurrentUser extends Context.Tag("http/CurrentUser")<CurrentUser, SessionUser>() {}

/** The caller of a route that takes a key or, without one, a session. */
export class CurrentCaller extends Context.Tag("http/CurrentCaller")<CurrentCaller, Caller>() {}

/** Provided when the request carries the operator's token. */
export class Operator extends Context.Tag("http/Operator")<Operator, { readonly actor: "operator" }>() {}

/** Annotation of endpoints under {@link AgentKeyAuth}: the permission that the key must satisfy. */
export class RequiredPermission extends Context.Tag("http/RequiredPermission")<
  RequiredPermission,
  Requirement
>() {}

/** Annotation of endpoints under {@link SessionAuth} and {@link ManageAuth}: the minimum role. */
export class RequiredRole extends Context.Tag("http/RequiredRole")<RequiredRole, Role>() {}

/**
 * Annotation of endpoints under {@link ManageAuth}: the resource that the token's scopes must include. The default verb
 * is `read` for GET and `write` for all other methods.
 */
export class RequiredTokenScope extends Context.Tag("http/RequiredTokenScope")<
  RequiredTokenScope,
  RequiredScope["resource"] | RequiredScope
>() {}

/** Annotation of endpoints without a middleware: the reason why they are open. */
export class OpenReason extends Context.Tag("http/OpenReason")<OpenReason, string>() {}

/**
 * `x-api-key` or `Authorization: Bearer`. Fails in this order: key, tenant not served here, plan, agent, origin,
 * permission, rate limit.
 */
export class AgentKeyAuth extends HttpApiMiddleware.Tag<AgentKeyAuth>()("http/AgentKeyAuth", {
  provides: CurrentKey,
  failure: failure(
    Unauthorized,
    PlanRestricted,
    Forbidden,
    RateLimited,
    ValidationError,
    ServiceUnavailable,
    InternalError
  )
}) {}

/** Cookie `spoke_session`. Fails in this order: cross-site request, session, tenant not served here, role. */
export class SessionAuth extends HttpApiMiddleware.Tag<SessionAuth>()("http/SessionAuth", {
  provides: CurrentUser,
  failure: failure(Unauthorized, Forbidden, ValidationError, ServiceUnavailable, InternalError)
}) {}

/**
 * `Authorization: Bearer spt_…`, an access token: provides its author with the current role. Fails in this order:
 * token, role, scope. Endpoints under it declare a role and a resource.
 */
export class ManageAuth extends HttpApiMiddleware.Tag<ManageAuth>()("http/ManageAuth", {
  provides: CurrentUser,
  failure: failure(Unauthorized, Forbidden, ValidationError, Conflict, ServiceUnavailable, InternalError)
}) {}

/** The endpoints of a dashboard group for programs, whose access tokens need a scope of `resource`. */
export const managed = <Id extends string, Endpoints extends HttpApiEndpoint.HttpApiEndpoint.Any, E, R>(
  group: HttpApiGroup.HttpApiGroup<Id, Endpoints, E, R>,
  resource: RequiredScope["resource"]
) => group.prefix("/api/manage/v1").middleware(ManageAuth).annotateEndpoints(RequiredTokenScope, resource)

/**
 * An agent key as for {@link AgentKeyAuth}, also when the plan excludes the public API; else a session as for {@link
 * SessionAuth}. Endpoints under it declare a permission and a role.
 */
export class CallerAuth extends HttpApiMiddleware.Tag<CallerAuth>()("http/CallerAuth", {
  provides: CurrentCaller,
  failure: failure(
    Unauthorized,
    Forbidden,
    PlanRestricted,
    RateLimited,
    ValidationError,
    ServiceUnavailable,
    InternalError
  )
}) {}

/** `Authorization: Bearer $SPOKE_OPERATOR_TOKEN`. */
export class OperatorAuth extends HttpApiMiddleware.Tag<OperatorAuth>()("http/OperatorAuth", {
  provides: Operator,
  failure: failure(Unauthorized, NotConfigured, ValidationError, InternalError)
}) {}
