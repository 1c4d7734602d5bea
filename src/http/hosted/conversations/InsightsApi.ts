/** Failed turns grouped by question, and figures over all turns. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { optional } from "../../../domain/Optional.ts"
import { InsightPage, MeasuredBy, MeasuresReport } from "../../../domain/conversations/Insights.ts"
import { NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { pageParams } from "../../../domain/Page.ts"
import { TimestampInput } from "../../../domain/TimestampInput.ts"
import { RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"

/** The time range, end excluded; by default the last 30 days. */
const time = { from: optional(TimestampInput), to: optional(TimestampInput), agentId: optional(AgentId) }

/** The largest group first. */
const list = HttpApiEndpoint.get("list", "/api/insights")
  .setUrlParams(Schema.Struct({ ...time, ...pageParams.fields }))
  .addSuccess(success(InsightPage))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "viewer")

const measures = HttpApiEndpoint.get("measures", "/api/measures")
  .setUrlParams(Schema.Struct({ ...time, by: optional(MeasuredBy) }))
  .addSuccess(success(MeasuresReport))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))
  .annotate(RequiredRole, "viewer")

export class InsightsApi extends HttpApiGroup.make("insights")
  .add(list)
  .add(measures)
  .middleware(SessionAuth) {}
