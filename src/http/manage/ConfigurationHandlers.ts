import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../usecases/accounts/AuditTrail.ts"
import { Configurations } from "../../usecases/agents/Configurations.ts"
import { Api } from "../Api.ts"
import { CurrentUser } from "../Auth.ts"
import { actor } from "../hosted/accounts/Actor.ts"

export const ConfigurationHandlers = HttpApiBuilder.group(Api, "configuration", (handlers) =>
  Effect.gen(function* () {
    const configurations = yield* Configurations
    const audit = yield* AuditTrail
    return handlers
      .handle("read", ({ urlParams }) =>
        Effect.flatMap(CurrentUser, (user) => configurations.read(user, urlParams.agentsOnly))
      )
      .handle("apply", ({ payload }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          if (payload.dryRun === true) {
            return { plan: yield* configurations.plan(user, payload), applied: false }
          }
          const by = yield* actor
          const plan = yield* configurations.apply(by, payload)
          yield* Effect.forEach(plan.changes, ({ action, id }) => {
            const isForced = action === "update" && payload.force === true
            return audit.record(by, isForced ? "agent.update_forced" : `agent.${action}`, id ?? user.tenantId)
          })
          return { plan, applied: true }
          // A disconnected client must not leave a change without its audit entry.
        }).pipe(Effect.uninterruptible)
      )
  })
)
