/** The dashboard's setup checklist, and questions that an agent's content answers. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { PutStart, Questions, Start } from "../../../domain/agents/Start.ts"
import { NotFound, ValidationError } from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { optional } from "../../../domain/Optional.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"

const get = HttpApiEndpoint.get("get", "/start")
  .setUrlParams(Schema.Struct({ agentId: optional(AgentId) }))
  .addSuccess(success(Start))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

/** Not audited: whether the checklist is shown is a setting of the tenant without security relevance. */
const put = HttpApiEndpoint.put("put", "/start")
  .setPayload(PutStart)
  .addSuccess(success(PutStart))
  .addError(failure(ValidationError))
  .annotate(RequiredRole, "admin")

const questions = HttpApiEndpoint.get("questions", "/agents/:id/questions")
  .setPath(Schema.Struct({ id: AgentId }))
  .addSuccess(success(Questions))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

const start = <const Id extends string>(id: Id) => HttpApiGroup.make(id).add(get).add(put).add(questions)

export class StartApi extends start("start").prefix("/api").middleware(SessionAuth) {}

export class ManagedStartApi extends managed(start("managedStart"), "agents") {}
