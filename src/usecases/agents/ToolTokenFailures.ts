/** Why a tool has no access token. */
import * as Effect from "effect/Effect"
import { ToolAuthorizationError } from "../../capabilities/IdentityProvider.ts"
import { isMachine } from "../../domain/agents/Tool.ts"
import { toolFailure } from "../../domain/agents/ToolFailure.ts"
import type { StoredTool } from "../../store/agents/Tools.ts"

export const unreadableSecret = () =>
  new ToolAuthorizationError({
    reason: "Invalid",
    message: "The client's secret cannot be opened, as it was sealed with another SPOKE_SECRET. Set it again."
  })

export const connectionRequired = (tool: StoredTool) =>
  toolFailure(
    "TOOL_CONNECTION_REQUIRED",
    isMachine(tool.definition)
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
    isMachine(tool.definition)
      ? `the MCP server demands scopes that the tool's client was not granted: ${what}`
      : `the MCP server demands more scopes, so an admin has to connect the tool again: ${what}`
  )
}
