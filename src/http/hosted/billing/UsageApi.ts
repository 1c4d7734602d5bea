/** What the tenant has used of the period, for the dashboard. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import { InternalError } from "../../../domain/Errors.ts"
import { TenantUsage } from "../../../domain/billing/Usage.ts"
import { RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"

/** Totals, each agent's part, and the days that had turns. */
const get = HttpApiEndpoint.get("get", "/api/usage")
  .addSuccess(success(TenantUsage))
  .addError(failure(InternalError))
  .annotate(RequiredRole, "viewer")

export class HostedUsageApi extends HttpApiGroup.make("hostedUsage").add(get).middleware(SessionAuth) {}
