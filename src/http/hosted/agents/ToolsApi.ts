/** The tools of an agent, for the dashboard. Secrets can be written but not read. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as Schema from "effect/Schema"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { IfMatchHeader } from "../../../domain/Version.ts"
import { CreateTool, PatchTool, Tool, ToolId } from "../../../domain/agents/Tool.ts"
import { ToolTrial, ToolTrialRequest } from "../../../domain/agents/ToolTrial.ts"
import { ToolAuthorizationResponse } from "../../../domain/agents/ToolConnection.ts"
import { managed, OpenReason, RequiredRole, SessionAuth } from "../../Auth.ts"
import { deletion, failure, success } from "../../Envelope.ts"

const One = success(Schema.Struct({ tool: Tool }))
export const ToolPage = Schema.Struct({ tools: Schema.Array(Tool), nextCursor })
const agentPath = Schema.Struct({ id: AgentId })
const toolPath = Schema.Struct({ id: ToolId })

/** Oldest first. Roles below admin do not get the values of fixed headers, query parameters and bodies. */
const list = HttpApiEndpoint.get("list", "/agents/:id/tools")
  .setPath(agentPath)
  .setUrlParams(pageParams)
  .addSuccess(success(ToolPage))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

const create = HttpApiEndpoint.post("create", "/agents/:id/tools")
  .setPath(agentPath)
  .setPayload(CreateTool)
  .addSuccess(One, { status: 201 })
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Omitted fields stay, including the secret. `If-Match` has the version that the change is based on. */
const patch = HttpApiEndpoint.patch("patch", "/tools/:id")
  .setPath(toolPath)
  .setHeaders(IfMatchHeader)
  .setPayload(PatchTool)
  .addSuccess(One)
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const remove = deletion("remove", "/tools/:id", ToolId).annotate(RequiredRole, "admin")

/** Where the browser signs in; null when the tool is connected without a person. */
export const BegunConnection = Schema.Struct({ url: Schema.NullOr(Schema.String) })

/**
 * Connects a tool with OAuth. The user of the session signs in at `url` and is redirected back. A tool with client
 * credentials is connected at once. 409 when the tool needs a person and the caller is a program.
 */
const connect = HttpApiEndpoint.post("connect", "/tools/:id/connection")
  .setPath(toolPath)
  .addSuccess(success(BegunConnection))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Removes the tool's tokens, and revokes them where the authorization server can. */
const disconnect = deletion("disconnect", "/tools/:id/connection", ToolId).annotate(RequiredRole, "admin")

/** Calls the tool as a turn would, without a model. The call is really sent. */
const trial = HttpApiEndpoint.post("trial", "/tools/:id/trial")
  .setPath(toolPath)
  .setPayload(ToolTrialRequest)
  .addSuccess(success(ToolTrial))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const tools = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).add(list).add(create).add(patch).add(remove).add(connect).add(disconnect).add(trial)

export class ToolsApi extends tools("tools").prefix("/api").middleware(SessionAuth) {}

export class ManagedToolsApi extends managed(tools("managedTools"), "tools") {}

export const toolCallback = "/api/tool-sign-ins/callback"

/**
 * The address to which an authorization server returns the browser. Redirects to the tools of the agent, with the
 * problem in `?connection=` if there is one.
 */
const callback = HttpApiEndpoint.get("callback", toolCallback)
  .setUrlParams(ToolAuthorizationResponse)
  .addSuccess(HttpApiSchema.Empty(302))
  .addError(failure(ValidationError, ServiceUnavailable))
  .annotate(OpenReason, "It checks the session itself, and explains a missing one in the dashboard.")

export class ToolSignInsApi extends HttpApiGroup.make("toolSignIns").add(callback) {}
