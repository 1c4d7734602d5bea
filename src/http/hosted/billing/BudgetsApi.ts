/** Cost limits for models, per tenant, agent and key: everybody reads them, admins change them. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Schema from "effect/Schema"
import { Budget, BudgetId, CreateBudget, PatchBudget } from "../../../domain/billing/Budget.ts"
import { Conflict, NotFound, ServiceUnavailable, ValidationError } from "../../../domain/Errors.ts"
import { nextCursor, pageParams } from "../../../domain/Page.ts"
import { IfMatchHeader } from "../../../domain/Version.ts"
import { managed, RequiredRole, SessionAuth } from "../../Auth.ts"
import { deletion, failure, success } from "../../Envelope.ts"

const One = success(Schema.Struct({ budget: Budget }))
const BudgetPage = Schema.Struct({ budgets: Schema.Array(Budget), nextCursor })
const path = Schema.Struct({ id: BudgetId })

/** Oldest first. */
const list = HttpApiEndpoint.get("list", "/budgets")
  .setUrlParams(pageParams)
  .addSuccess(success(BudgetPage))
  .addError(failure(ValidationError))
  .annotate(RequiredRole, "viewer")

const create = HttpApiEndpoint.post("create", "/budgets")
  .setPayload(CreateBudget)
  .addSuccess(One, { status: 201 })
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const find = HttpApiEndpoint.get("find", "/budgets/:id")
  .setPath(path)
  .addSuccess(One)
  .addError(failure(ValidationError, NotFound))
  .annotate(RequiredRole, "viewer")

/** The cost so far is kept. `If-Match` has the version that the change is based on. */
const patch = HttpApiEndpoint.patch("patch", "/budgets/:id")
  .setPath(path)
  .setHeaders(IfMatchHeader)
  .setPayload(PatchBudget)
  .addSuccess(One)
  .addError(failure(ValidationError, NotFound, Conflict, ServiceUnavailable))
  .annotate(RequiredRole, "admin")

const remove = deletion("remove", "/budgets/:id", BudgetId).annotate(RequiredRole, "admin")

const group = <const Id extends string>(id: Id) =>
  HttpApiGroup.make(id).add(list).add(create).add(find).add(patch).add(remove)

export class BudgetsApi extends group("budgets").prefix("/api").middleware(SessionAuth) {}

export class ManagedBudgetsApi extends managed(group("managedBudgets"), "limits") {}
