/** Usage of the key's agent in the current period. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import { InternalError } from "../../../domain/Errors.ts"
import { Usage } from "../../../domain/billing/Usage.ts"
import { AgentKeyAuth, RequiredPermission } from "../../Auth.ts"
import { failure, success, UpdatedAt } from "../../Envelope.ts"

export const UsageApi = HttpApiGroup.make("usage")
  .add(
    HttpApiEndpoint.get("current", "/v1/usage")
      .addSuccess(success(Usage))
      .addError(failure(InternalError))
      .annotate(RequiredPermission, "usage.read")
      .annotate(OpenApi.Summary, "Read what the agent has used of the current period")
      .annotate(
        OpenApi.Description,
        "Limits are what the plan allows, never amounts used. A subscription's period that is over is followed by the " +
          "next of the same length; without one the calendar month in UTC counts."
      )
  )
  .annotate(UpdatedAt, "2026-11-21T00:00:00.000Z")
  .middleware(AgentKeyAuth)
