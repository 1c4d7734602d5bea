/** The table of declared routes: the access rule of each, and the size limit of its body. */
import * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import type { HttpMethod } from "@effect/platform/HttpMethod"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import type { Requirement, Role } from "../domain/accounts/Access.ts"
import type { RequiredScope } from "../domain/accounts/AccessToken.ts"
import {
  AgentKeyAuth,
  CallerAuth,
  ManageAuth,
  RequiredTokenScope,
  OpenReason,
  OperatorAuth,
  RequiredPermission,
  RequiredRole,
  SessionAuth
} from "./Auth.ts"
import { MaxBodyBytes, UpdatedAt } from "./Envelope.ts"

export interface Route {
  readonly method: HttpMethod
  /** The pattern, such as `/v1/sources/:id`. */
  readonly path: string
  readonly group: string
  /** Set under `AgentKeyAuth` and `CallerAuth`. */
  readonly permission: Requirement | undefined
  /** Set under `SessionAuth`, `CallerAuth` and `ManageAuth`. */
  readonly role: Role | undefined
  /** Set under `ManageAuth`. */
  readonly scope: RequiredScope | undefined
  readonly maxBodyBytes: number | undefined
  /** Whether its declared body is JSON. */
  readonly hasJsonBody: boolean
  /** Status codes of success. */
  readonly statuses: ReadonlyArray<number>
  readonly summary: string | undefined
  readonly updatedAt: string | undefined
}

/** The key of a route: its method and its pattern. */
export const keyOf = (route: { readonly method: string; readonly path: string }) =>
  `${route.method} ${route.path}`

const scopeOf = (
  managed: typeof RequiredTokenScope.Service | undefined,
  method: HttpMethod
): RequiredScope | undefined =>
  typeof managed === "string" ? { resource: managed, verb: method === "GET" ? "read" : "write" } : managed

/** Cached tables: several layers of the server read them. */
const tables = new WeakMap<object, ReadonlyArray<Route>>()

const buildTable = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>
): ReadonlyArray<Route> => {
  const routes: Array<Route> = []
  HttpApi.reflect(api, {
    onGroup: () => undefined,
    onEndpoint: ({ endpoint, group, mergedAnnotations, middleware, payloads, successes }) => {
      const keys = new Set([...middleware].map(({ key }) => key))
      const permission = Option.getOrUndefined(Context.getOption(mergedAnnotations, RequiredPermission))
      const role = Option.getOrUndefined(Context.getOption(mergedAnnotations, RequiredRole))
      const scope = scopeOf(
        Option.getOrUndefined(Context.getOption(mergedAnnotations, RequiredTokenScope)),
        endpoint.method
      )
      const isOpen = Option.isSome(Context.getOption(mergedAnnotations, OpenReason))
      const hasAccessRule =
        (keys.has(AgentKeyAuth.key) && permission !== undefined) ||
        (keys.has(SessionAuth.key) && role !== undefined) ||
        (keys.has(ManageAuth.key) && role !== undefined && scope !== undefined) ||
        (keys.has(CallerAuth.key) && permission !== undefined && role !== undefined) ||
        keys.has(OperatorAuth.key) ||
        isOpen
      if (!hasAccessRule) {
        throw new Error(`${keyOf(endpoint)} does not declare who may call it.`)
      }
      routes.push({
        method: endpoint.method,
        path: endpoint.path,
        group: group.identifier,
        permission,
        role,
        scope: keys.has(ManageAuth.key) ? scope : undefined,
        maxBodyBytes: Option.getOrUndefined(Context.getOption(mergedAnnotations, MaxBodyBytes)),
        hasJsonBody: payloads.has("application/json"),
        statuses: [...successes.keys()],
        summary: Option.getOrUndefined(Context.getOption(mergedAnnotations, OpenApi.Summary)),
        updatedAt: Option.getOrUndefined(Context.getOption(mergedAnnotations, UpdatedAt))
      })
    }
  })
  return routes
}

/** Every endpoint of `api`. Throws when one declares no access rule. */
export const table = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>
): ReadonlyArray<Route> => {
  const routes = tables.get(api) ?? buildTable(api)
  tables.set(api, routes)
  return routes
}

const splitPath = (path: string) => path.split("/").filter((segment) => segment !== "")

/** True when the router would match `pathname` to `pattern`. Repeated and trailing slashes are ignored. */
export const matches = (pattern: string, pathname: string): boolean => {
  const patternSegments = splitPath(pattern)
  const segments = splitPath(pathname)
  for (const [index, segment] of patternSegments.entries()) {
    if (segment === "*") return true
    if (segments[index] === undefined) return false
    if (!segment.startsWith(":") && segment !== segments[index]) return false
  }
  return patternSegments.length === segments.length
}
