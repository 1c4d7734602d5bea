/** Replays of stored turns. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { ReplayedRuns, ReplayRequest } from "../../../domain/chat/ReplayedRun.ts"
import { NotFound, ServiceUnavailable, TurnLimitExceeded, ValidationError } from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { CallerAuth, RequiredPermission, RequiredRole } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"

/** With a key of that agent, or a session. Each run gets an audit entry, because its conversation is shown. */
const create = HttpApiEndpoint.post("create", "/api/agents/:id/replays")
  .setPath(Schema.Struct({ id: AgentId }))
  .setPayload(ReplayRequest)
  .addSuccess(success(ReplayedRuns))
  .addError(failure(ValidationError, NotFound, TurnLimitExceeded, ServiceUnavailable))
  .annotate(RequiredPermission, "trace_read")
  .annotate(RequiredRole, "agent")

export class ReplaysApi extends HttpApiGroup.make("replays").add(create).middleware(CallerAuth) {}
