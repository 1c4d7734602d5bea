import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Team } from "../../../usecases/accounts/Team.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { RequestId } from "../../server/RequestId.ts"
import { actor, removal } from "./Actor.ts"

const group = (handlers: GroupHandlers<"users">) =>
  Effect.gen(function* () {
    const team = yield* Team
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ urlParams }) => listPage("users", { route: "/api/users" }, urlParams, team.list))
      .handle("create", ({ payload }) =>
        Effect.gen(function* () {
          const change = team.create(yield* CurrentUser, payload)
          return yield* audit.change(yield* actor, "user.create", change, ({ user }) => user.id)
        })
      )
      .handle("invite", ({ path: { id } }) =>
        Effect.gen(function* () {
          const change = team.invite(yield* CurrentUser, id)
          return yield* audit.change(yield* actor, "user.invite", change, () => id)
        })
      )
      .handle("patch", ({ path: { id }, payload }) =>
        Effect.gen(function* () {
          const change = team.patch(yield* CurrentUser, id, payload)
          return { user: yield* audit.change(yield* actor, "user.update", change, () => id) }
        })
      )
      .handle("remove", ({ path: { id } }) => removal(audit, "user.delete", id, team.remove))
  })

export const UsersHandlers = HttpApiBuilder.group(Api, "users", group)
export const ManagedUsersHandlers = HttpApiBuilder.group(Api, "managedUsers", group)

/** Invited users choose their password. */
export const PasswordsHandlers = HttpApiBuilder.group(Api, "passwords", (handlers) =>
  Effect.gen(function* () {
    const team = yield* Team
    const audit = yield* AuditTrail
    return handlers.handle("choosePassword", ({ payload }) =>
      Effect.gen(function* () {
        const requestId = yield* RequestId
        const user = yield* team.choosePassword(payload)
        const by = { tenantId: user.tenantId, actor: { type: "user" as const, id: user.id }, requestId }
        yield* audit.record(by, "user.password", user.id)
        return { user }
        // A disconnected client must not leave a change without its audit entry.
      }).pipe(Effect.uninterruptible)
    )
  })
)
