/** Confirmation of domains that tenants claim for single sign-on, by the operator. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Domain } from "../../domain/accounts/SingleSignOn.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../domain/Errors.ts"
import { TenantId } from "../../domain/Ids.ts"
import { OperatorAuth } from "../Auth.ts"
import { failure, success } from "../Envelope.ts"

const path = Schema.Struct({ id: TenantId, domain: Domain })
const Answer = success(Schema.Struct({ domain: Domain, confirmed: Schema.Boolean }))

/**
 * Confirms that the domain belongs to the tenant: its people can sign in by it. 409 when it is confirmed for another
 * tenant.
 */
const confirm = HttpApiEndpoint.put("confirm", "/api/operator/tenants/:id/domains/:domain")
  .setPath(path)
  .addSuccess(Answer)
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))

/** Withdraws the confirmation. The domain no longer leads to a sign-in and adds no members. */
const withdraw = HttpApiEndpoint.del("withdraw", "/api/operator/tenants/:id/domains/:domain")
  .setPath(path)
  .addSuccess(Answer)
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))

export class DomainsApi extends HttpApiGroup.make("domains")
  .add(confirm)
  .add(withdraw)
  .middleware(OperatorAuth) {}
