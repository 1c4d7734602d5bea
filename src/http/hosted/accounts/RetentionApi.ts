/** Retention periods of the tenant, for admins; owners change them. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { PatchRetention, Retention } from "../../../domain/accounts/Retention.ts"
import { ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"

/** The tenant's limits and those of the installation: for each kind, the shorter one holds. */
export const RetentionAnswer = Schema.Struct({ retention: Retention, installation: Retention })

const get = HttpApiEndpoint.get("get", "/retention")
  .addSuccess(success(RetentionAnswer))
  .annotate(RequiredRole, "admin")

/** Omitted fields stay. */
const patch = HttpApiEndpoint.patch("patch", "/retention")
  .setPayload(PatchRetention)
  .addSuccess(success(RetentionAnswer))
  .addError(failure(ValidationError, ServiceUnavailable))
  .annotate(RequiredRole, "owner")

const retention = <const Id extends string>(id: Id) => HttpApiGroup.make(id).add(get).add(patch)

export class RetentionApi extends retention("retention").prefix("/api").middleware(SessionAuth) {}

export class ManagedRetentionApi extends managed(retention("managedRetention"), "limits") {}
