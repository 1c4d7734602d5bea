/** E-mails sent for the tenant, for the dashboard's admins. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { EmailLog } from "../../../domain/accounts/EmailLog.ts"
import { ValidationError } from "../../../domain/Errors.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { RequiredRole, SessionAuth } from "../../Auth.ts"
import { failure, success } from "../../Envelope.ts"

/** Newest first. */
const list = HttpApiEndpoint.get("list", "/api/email-logs")
  .setUrlParams(pageParams)
  .addSuccess(success(Schema.Struct({ emailLogs: Schema.Array(EmailLog), nextCursor })))
  .addError(failure(ValidationError))
  .annotate(RequiredRole, "admin")

export class EmailLogsApi extends HttpApiGroup.make("emailLogs").add(list).middleware(SessionAuth) {}
