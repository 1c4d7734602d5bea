/** The tenant's agents, for the dashboard and for programs: viewers read, admins write. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Agent, CreateAgent, PatchAgent } from "../../../domain/agents/Agent.ts"
import { AgentProblem } from "../../../domain/agents/AgentProblem.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { IfMatchHeader } from "../../../domain/Version.ts"
import { optional } from "../../../domain/Optional.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { deletion, failure, success } from "../../Envelope.ts"

export const OneAgent = Schema.Struct({ agent: Agent })
export const AgentPage = Schema.Struct({ agents: Schema.Array(Agent), nextCursor })
export const AgentProblems = Schema.Struct({ problems: Schema.Array(AgentProblem) })
const path = Schema.Struct({ id: AgentId })
/** Publishes also settings that fail the agent's thresholds. */
export const forced = Schema.Struct({ force: optional(Schema.BooleanFromString) })

const list = HttpApiEndpoint.get("list", "/agents")
  .setUrlParams(pageParams)
  .addSuccess(success(AgentPage))
  .addError(failure(ValidationError))
  .annotate(RequiredRole, "viewer")

/** Accounts at channels, models and tools of the tenant's agents that fail now, longest first. */
const problems = HttpApiEndpoint.get("problems", "/agent-problems")
  .addSuccess(success(AgentProblems))
  .annotate(RequiredRole, "agent")

const create = HttpApiEndpoint.post("create", "/agents")
  .setPayload(CreateAgent)
  .addSuccess(success(OneAgent), { status: 201 })
  .addError(failure(ValidationError, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const get = HttpApiEndpoint.get("get", "/agents/:id")
  .setPath(path)
  .addSuccess(success(OneAgent))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

/** Omitted fields stay; `null` clears. `If-Match` has the version that the change is based on. */
const patch = HttpApiEndpoint.patch("patch", "/agents/:id")
  .setPath(path)
  .setHeaders(IfMatchHeader)
  .setUrlParams(forced)
  .setPayload(PatchAgent)
  .addSuccess(success(OneAgent))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

/** Removes the agent with everything that belongs to it. Its keys are 401 at once. */
const remove = deletion("remove", "/agents/:id", AgentId).annotate(RequiredRole, "admin")

const agents = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).add(list).add(problems).add(create).add(get).add(patch).add(remove)

export class AgentsApi extends agents("agents").prefix("/api").middleware(SessionAuth) {}

export class ManagedAgentsApi extends managed(agents("managedAgents"), "agents") {}
