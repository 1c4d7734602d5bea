import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { RetentionLimits } from "../../../usecases/accounts/Retention.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { audited } from "./Actor.ts"

const group = (handlers: GroupHandlers<"retention">) =>
  Effect.gen(function* () {
    const limits = yield* RetentionLimits
    return handlers
      .handle("get", () => Effect.flatMap(CurrentUser, limits.find))
      .handle("patch", ({ payload }) =>
        audited(
          "retention.update",
          (user) => limits.patch(user, payload),
          (_, user) => user.tenantId
        )
      )
  })

export const RetentionHandlers = HttpApiBuilder.group(Api, "retention", group)
export const ManagedRetentionHandlers = HttpApiBuilder.group(Api, "managedRetention", group)
