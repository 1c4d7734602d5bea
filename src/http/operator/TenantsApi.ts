/** Tenants and their subscriptions, for the operator. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { CreateTenant, PutSubscription, User } from "../../domain/accounts/Account.ts"
import { Credits, Subscription, Tenant } from "../../domain/agents/Agent.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../domain/Errors.ts"
import { TenantId } from "../../domain/Ids.ts"
import { nextCursor, pageParams } from "../../domain/Page.ts"
import { OperatorAuth } from "../Auth.ts"
import { failure, success } from "../Envelope.ts"

const { id, email, role } = User.fields

/** Creates a tenant on plan `self-hosted` and its owner. 409 when another user has the e-mail address. */
const create = HttpApiEndpoint.post("create", "/api/operator/tenants")
  .setPayload(CreateTenant)
  .addSuccess(success(Schema.Struct({ tenant: Tenant, owner: Schema.Struct({ id, email, role }) })), {
    status: 201
  })
  .addError(failure(ValidationError, Conflict, ServiceUnavailable))

const list = HttpApiEndpoint.get("list", "/api/operator/tenants")
  .setUrlParams(pageParams)
  .addSuccess(success(Schema.Struct({ tenants: Schema.Array(Tenant), nextCursor })))
  .addError(failure(ValidationError))

/** Replaces the tenant's subscription. Without `period` the calendar month is used. */
const putSubscription = HttpApiEndpoint.put("putSubscription", "/api/operator/tenants/:id/subscription")
  .setPath(Schema.Struct({ id: TenantId }))
  .setPayload(PutSubscription)
  .addSuccess(success(Schema.Struct({ subscription: Subscription })))
  .addError(failure(ValidationError, NotFound, ServiceUnavailable))

/** The stored subscription. `period` is null for the calendar month; credits are turns in addition to the plan's. */
const getSubscription = HttpApiEndpoint.get("getSubscription", "/api/operator/tenants/:id/subscription")
  .setPath(Schema.Struct({ id: TenantId }))
  .addSuccess(
    success(
      Schema.Struct({
        subscription: Subscription,
        credits: Credits
      })
    )
  )
  .addError(failure(ValidationError, NotFound))

export class TenantsApi extends HttpApiGroup.make("tenants")
  .add(create)
  .add(list)
  .add(putSubscription)
  .add(getSubscription)
  .middleware(OperatorAuth) {}
