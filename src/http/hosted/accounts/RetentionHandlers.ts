import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { RetentionLimits } from "../../../usecases/accounts/Retention.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { actor } from "./Actor.ts"

const group = (handlers: GroupHandlers<"retention">) =>
  Effect.gen(function* () {
    const limits = yield* RetentionLimits
    const audit = yield* AuditTrail
    return handlers
      .handle("get", () => Effect.flatMap(CurrentUser, limits.find))
      .handle("patch", ({ payload }) =>
        Effect.gen(function* () {
          const by = yield* actor
          const change = limits.patch(yield* CurrentUser, payload)
          return yield* audit.change(by, "retention.update", change, () => by.tenantId)
        })
      )
  })

export const RetentionHandlers = HttpApiBuilder.group(Api, "retention", group)
export const ManagedRetentionHandlers = HttpApiBuilder.group(Api, "managedRetention", group)
