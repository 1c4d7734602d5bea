/** The versions of an agent, for the dashboard and for programs: viewers read, admins publish. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Split } from "../../../domain/agents/Agent.ts"
import { AgentVersion, AgentVersionSettings, SettingChange } from "../../../domain/agents/AgentVersion.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { nextCursor, pageParams, WholeNumber } from "../../../domain/Page.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"
import { forced, OneAgent } from "./AgentsApi.ts"

export const AgentVersionPage = Schema.Struct({ versions: Schema.Array(AgentVersion), nextCursor })
export const OneAgentVersion = Schema.Struct({
  version: Schema.Struct({ ...AgentVersion.fields, settings: AgentVersionSettings }),
  /** Changes from the previous version. */
  changes: Schema.Array(SettingChange)
})

const agentPath = Schema.Struct({ id: AgentId })
const versionPath = Schema.Struct({ id: AgentId, version: WholeNumber.pipe(Schema.lessThan(2 ** 31)) })

/** Newest first. */
const list = HttpApiEndpoint.get("list", "/agents/:id/versions")
  .setPath(agentPath)
  .setUrlParams(pageParams)
  .addSuccess(success(AgentVersionPage))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

const get = HttpApiEndpoint.get("get", "/agents/:id/versions/:version")
  .setPath(versionPath)
  .addSuccess(success(OneAgentVersion))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

/** Publishes a version, newer or older than the current one. New turns use it. */
const publish = HttpApiEndpoint.post("publish", "/agents/:id/versions/:version/publish")
  .setPath(versionPath)
  .setUrlParams(forced)
  .addSuccess(success(OneAgent))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Sends a share of the conversations to a version that is not published. */
const split = HttpApiEndpoint.put("split", "/agents/:id/split")
  .setPath(agentPath)
  .setUrlParams(forced)
  .setPayload(Split)
  .addSuccess(success(OneAgent))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const endSplit = HttpApiEndpoint.del("endSplit", "/agents/:id/split")
  .setPath(agentPath)
  .addSuccess(success(OneAgent))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const versions = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).add(list).add(get).add(publish).add(split).add(endSplit)

export class AgentVersionsApi extends versions("agentVersions").prefix("/api").middleware(SessionAuth) {}

export class ManagedAgentVersionsApi extends managed(versions("managedAgentVersions"), "agents") {}
