/** Answers whose cited passages have changed or been removed, and their replay. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId, SourceId } from "../../../domain/Ids.ts"
import { optional } from "../../../domain/Optional.ts"
import { ImpactPage, ReplayImpact } from "../../../domain/knowledge/Impact.ts"
import { pageParams } from "../../../domain/Page.ts"
import { TimestampInput } from "../../../domain/TimestampInput.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"
import { OneExperiment } from "../agents/ExperimentsApi.ts"

const path = Schema.Struct({ id: AgentId })

/** Most frequent first. */
const list = HttpApiEndpoint.get("list", "/agents/:id/impact")
  .setPath(path)
  .setUrlParams(
    Schema.Struct({
      from: optional(TimestampInput),
      to: optional(TimestampInput),
      sourceId: optional(SourceId),
      ...pageParams.fields
    })
  )
  .addSuccess(success(ImpactPage))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "agent")

/** Responds at once. A job replays one turn of each answer, as an experiment. */
const replay = HttpApiEndpoint.post("replay", "/agents/:id/impact/replay")
  .setPath(path)
  .setPayload(ReplayImpact)
  .addSuccess(success(OneExperiment), { status: 201 })
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const impact = <const Id extends string>(id: Id) => HttpApiGroup.make(id).add(list).add(replay)

export class ImpactApi extends impact("impact").prefix("/api").middleware(SessionAuth) {}

export class ManagedImpactApi extends managed(impact("managedImpact"), "agents") {}
