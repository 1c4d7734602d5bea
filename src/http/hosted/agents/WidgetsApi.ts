/** The widgets of the tenant's agents, for the dashboard and for programs: viewers read, admins write. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { AgentWidget, PatchWidget } from "../../../domain/agents/Widget.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { AgentId } from "../../../domain/Ids.ts"
import { IfMatchHeader } from "../../../domain/Version.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"

export const OneWidget = Schema.Struct({ widget: AgentWidget })
const path = Schema.Struct({ id: AgentId })

const get = HttpApiEndpoint.get("get", "/agents/:id/widget")
  .setPath(path)
  .addSuccess(success(OneWidget))
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

/** Omitted fields stay; `null` clears. `If-Match` has the version that the change is based on. */
const patch = HttpApiEndpoint.patch("patch", "/agents/:id/widget")
  .setPath(path)
  .setHeaders(IfMatchHeader)
  .setPayload(PatchWidget)
  .addSuccess(success(OneWidget))
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const widgets = <const Id extends string>(id: Id) => HttpApiGroup.make(id).add(get).add(patch)

export class WidgetsApi extends widgets("widgets").prefix("/api").middleware(SessionAuth) {}

export class ManagedWidgetsApi extends managed(widgets("managedWidgets"), "widget") {}
