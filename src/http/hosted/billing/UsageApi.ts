/** Usage of the tenant in the current period, for the dashboard. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import { InternalError } from "../../../domain/Errors.ts"
import { TenantUsage } from "../../../domain/billing/Usage.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"

/** Totals, figures per agent, and days with turns. */
const get = HttpApiEndpoint.get("get", "/usage")
  .addSuccess(success(TenantUsage))
  .addError(failure(InternalError))
  .annotate(RequiredRole, "viewer")

const usage = <const Id extends string>(id: Id) => HttpApiGroup.make(id).add(get)

export class HostedUsageApi extends usage("hostedUsage").prefix("/api").middleware(SessionAuth) {}

export class ManagedUsageApi extends managed(usage("managedUsage"), "limits") {}
