/**
 * The scopes of a tool's connection: which to request, and what changes when the MCP server demands more. Also the client
 * of a connection, and the failures of a tool that has no token.
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { ToolAuthorizationError, type ToolClient } from "../../capabilities/IdentityProvider.ts"
import { allScopes, noScopes, type ToolScopes } from "../../domain/agents/ToolConnection.ts"
import { toolFailure } from "../../domain/agents/ToolFailure.ts"
import type { StoredConnection } from "../../store/agents/ToolConnections.ts"
import type { StoredTool } from "../../store/agents/Tools.ts"

const hasAll = (scopes: ReadonlyArray<string>, wanted: ReadonlyArray<string>) =>
  wanted.every((scope) => scopes.includes(scope))

/** Scopes to request when the tool is connected again. They include all that it had. */
export const scopesToRequest = (row: StoredConnection | null, basis: string): ReadonlyArray<string> => {
  const { granted, missing, requested } = (row?.basis === basis ? row.scopes : null) ?? noScopes
  return allScopes(requested, granted, missing)
}

/** Whether `wider` requests a scope that the connection does not have. */
export const requestsMoreScopes = (row: StoredConnection | null, wider: ToolScopes | null): boolean => {
  if (wider === null || row?.state !== "connected") return false
  const { granted, requested } = row.scopes ?? noScopes
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

/** A client that registered itself. */
export const registeredClient = (clientId: string, secret: string | null): ToolClient => ({
  clientId,
  clientSecret: secret === null ? null : Redacted.make(secret)
})

export const unreadableSecret = () =>
  new ToolAuthorizationError({
    reason: "Invalid",
    message: "The client's secret cannot be opened, as it was sealed with another SPOKE_SECRET. Set it again."
  })

export const isMachine = ({ definition: { auth } }: StoredTool) => auth.grant === "client_credentials"
export const connectionRequired = (tool: StoredTool) =>
  toolFailure(
    "TOOL_CONNECTION_REQUIRED",
    isMachine(tool)
      ? "the authorization server or the MCP server does not accept the tool's client"
      : "an admin has to connect the tool again"
  )
export const renewedElsewhere = () => toolFailure("TOOL_TIMEOUT", "another process requests its token")
export const toolFailed = (error: ToolAuthorizationError) =>
  Effect.fail(toolFailure("TOOL_FAILED", error.message))

export const scopesRequired = (tool: StoredTool, scopes: ReadonlyArray<string>) => {
  const what = scopes.length === 0 ? "that it does not name" : scopes.join(" ")
  return toolFailure(
    "TOOL_SCOPE_REQUIRED",
    isMachine(tool)
      ? `the MCP server demands scopes that the tool's client was not granted: ${what}`
      : `the MCP server demands more scopes, so an admin has to connect the tool again: ${what}`
  )
}
