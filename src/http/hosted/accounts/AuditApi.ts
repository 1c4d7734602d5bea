/** The audit trail, for the dashboard's admins. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { AuditEntry } from "../../../domain/accounts/Audit.ts"
import { ValidationError } from "../../../domain/Errors.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"

export const AuditPage = Schema.Struct({ entries: Schema.Array(AuditEntry), nextCursor })

/** Newest first. */
const list = HttpApiEndpoint.get("list", "/api/audit")
  .setUrlParams(pageParams)
  .addSuccess(success(AuditPage))
  .addError(failure(ValidationError))
  .annotate(RequiredRole, "admin")

export class AuditApi extends HttpApiGroup.make("audit").add(list).middleware(SessionAuth) {}
