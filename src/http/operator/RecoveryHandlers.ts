import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../usecases/accounts/AuditTrail.ts"
import { Team } from "../../usecases/accounts/Team.ts"
import { Api } from "../Api.ts"
import { operatorActor } from "./OperatorActor.ts"

export const RecoveryHandlers = HttpApiBuilder.group(Api, "recovery", (handlers) =>
  Effect.gen(function* () {
    const team = yield* Team
    const audit = yield* AuditTrail
    return handlers.handle("recover", ({ path, payload }) =>
      Effect.gen(function* () {
        const by = yield* operatorActor(path.id)
        const change = team.recover({ tenantId: path.id }, payload.email)
        return yield* audit.change(by, "user.recover", change, ({ user }) => user.id)
      })
    )
  })
)
