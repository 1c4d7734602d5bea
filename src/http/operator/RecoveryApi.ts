/** The operator's way in for owners whom their provider keeps out. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Email } from "../../domain/accounts/Account.ts"
import { Invitation, Member } from "../../domain/accounts/Team.ts"
import { NotFound, ServiceUnavailable, ValidationError } from "../../domain/Errors.ts"
import { TenantId } from "../../domain/Ids.ts"
import { OperatorAuth } from "../Auth.ts"
import { failure, success } from "../Envelope.ts"

/** Passwords open sessions of the tenant again, and the owner chooses one by the invitation. 404 for anybody but an owner. */
const recover = HttpApiEndpoint.post("recover", "/api/operator/tenants/:id/recovery")
  .setPath(Schema.Struct({ id: TenantId }))
  .setPayload(Schema.Struct({ email: Email }))
  .addSuccess(success(Schema.Struct({ user: Member, invitation: Invitation })), { status: 201 })
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))

export class RecoveryApi extends HttpApiGroup.make("recovery").add(recover).middleware(OperatorAuth) {}
