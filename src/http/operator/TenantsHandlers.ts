import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Accounts } from "../../usecases/accounts/Accounts.ts"
import { AuditTrail } from "../../usecases/accounts/AuditTrail.ts"
import { Subscriptions } from "../../usecases/billing/Subscriptions.ts"
import { Api } from "../Api.ts"
import * as Cursor from "../Cursor.ts"
import { operatorActor } from "./OperatorActor.ts"

const tenantList = { scope: "operator", route: "/api/operator/tenants" }

export const TenantsHandlers = HttpApiBuilder.group(Api, "tenants", (handlers) =>
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const subscriptions = yield* Subscriptions
    const audit = yield* AuditTrail
    return handlers
      .handle("create", ({ payload }) => accounts.createTenant(payload))
      .handle("list", ({ urlParams: { limit = 20, cursor } }) =>
        Effect.gen(function* () {
          const { nextCursor, rows } = yield* Cursor.page(tenantList, cursor, (after) =>
            accounts.listTenants({ limit, after })
          )
          return { tenants: rows, nextCursor }
        })
      )
      .handle("putSubscription", ({ path, payload }) =>
        Effect.gen(function* () {
          const by = yield* operatorActor(path.id)
          const change = subscriptions.put({ tenantId: path.id }, payload)
          return { subscription: yield* audit.change(by, "subscription.update", change, path.id) }
        })
      )
      .handle("getSubscription", ({ path }) => subscriptions.get({ tenantId: path.id }))
  })
)
