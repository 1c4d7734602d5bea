/** Restores access for owners whom their identity provider refuses. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Email } from "../../domain/accounts/Account.ts"
import { Invitation, Member } from "../../domain/accounts/Team.ts"
import { NotFound, ServiceUnavailable, ValidationError } from "../../domain/Errors.ts"
import { TenantId } from "../../domain/Ids.ts"
import { OperatorAuth } from "../Auth.ts"
import { failure, success } from "../Envelope.ts"

/**
 * Switches password sign-in of the tenant on again. The owner chooses a password with the returned invitation. 404 for
 * a user who is not an owner.
 */
const recover = HttpApiEndpoint.post("recover", "/api/operator/tenants/:id/recovery")
  .setPath(Schema.Struct({ id: TenantId }))
  .setPayload(Schema.Struct({ email: Email }))
  .addSuccess(success(Schema.Struct({ user: Member, invitation: Invitation })), { status: 201 })
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))

export class RecoveryApi extends HttpApiGroup.make("recovery").add(recover).middleware(OperatorAuth) {}
