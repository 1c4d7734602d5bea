/** The scopes of a tool's connection: which to request, and what changes when the MCP server demands more. */
import { allScopes, noScopes, type StoredConnectionState, type ToolScopes } from "./ToolConnection.ts"

interface Connection {
  readonly basis: string | null
  readonly state: typeof StoredConnectionState.Type
  readonly scopes: ToolScopes | null
}

const hasAll = (scopes: ReadonlyArray<string>, wanted: ReadonlyArray<string>) =>
  wanted.every((scope) => scopes.includes(scope))

/** Scopes to request when the tool is connected again. They include all that it had. */
export const scopesToRequest = (connection: Connection | null, basis: string): ReadonlyArray<string> => {
  const { granted, missing, requested } = (connection?.basis === basis ? connection.scopes : null) ?? noScopes
  return allScopes(requested, granted, missing)
}

/** Whether `wider` requests a scope that the connection does not have. */
export const requestsMoreScopes = (connection: Connection | null, wider: ToolScopes | null): boolean => {
  if (wider === null || connection?.state !== "connected") return false
  const { granted, requested } = connection.scopes ?? noScopes
  return !hasAll(allScopes(requested, granted), wider.requested)
}

/**
 * `refused`: the connection's scopes if it cannot get the `demanded` ones. `wider`: the scopes of a request for them;
 * null when they were requested before, or are too many.
 */
export const scopesAfterDemand = (before: ToolScopes | null, demanded: ReadonlyArray<string>) => {
  const { granted, missing, requested, tried } = before ?? noScopes
  const lacking = demanded.filter((scope) => !granted.includes(scope))
  const all = allScopes(requested, granted, demanded)
  const refused: ToolScopes = {
    requested,
    granted,
    missing: allScopes(missing, lacking.length === 0 ? demanded : lacking),
    tried
  }
  const wider: ToolScopes = { requested: all, granted: all, missing: [], tried: allScopes(tried, demanded) }
  // More scopes than fit are not requested at all, which bounds the number of requests.
  const isNew = hasAll(all, demanded) && hasAll(wider.tried, demanded) && !hasAll(tried, demanded)
  return { refused, wider: isNew ? wider : null }
}
