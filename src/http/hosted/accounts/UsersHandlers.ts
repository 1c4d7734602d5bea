import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Team } from "../../../usecases/accounts/Team.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { listPage } from "../../Lists.ts"
import { RequestId } from "../../server/RequestId.ts"
import { audited, auditedRemoval } from "./Actor.ts"

const group = (handlers: GroupHandlers<"users">) =>
  Effect.gen(function* () {
    const team = yield* Team
    return handlers
      .handle("list", ({ urlParams }) => listPage("users", { route: "/api/users" }, urlParams, team.list))
      .handle("create", ({ payload }) =>
        audited(
          "user.create",
          (user) => team.create(user, payload),
          ({ user }) => user.id
        )
      )
      .handle("invite", ({ path: { id } }) => audited("user.invite", (user) => team.invite(user, id), id))
      .handle("patch", ({ path: { id }, payload }) =>
        audited("user.update", (user) => team.patch(user, id, payload), id).pipe(Effect.bindTo("user"))
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("user.delete", id, team.remove))
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
