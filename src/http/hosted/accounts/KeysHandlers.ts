import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { expectedVersion } from "../../../domain/Version.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Keys } from "../../../usecases/accounts/Keys.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { actor, removal } from "./Actor.ts"

/** API keys of the tenant's agents and of the tenant itself. */
const group = (handlers: GroupHandlers<"keys">) =>
  Effect.gen(function* () {
    const keys = yield* Keys
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ path, urlParams }) =>
        listPage(
          "keys",
          { route: "/api/agents/:id/keys", filter: { id: path.id } },
          urlParams,
          (user, page) => keys.list(user, path.id, page)
        )
      )
      .handle("create", ({ path, payload }) =>
        Effect.gen(function* () {
          const change = keys.create(yield* CurrentUser, path.id, payload)
          return yield* audit.change(yield* actor, "key.create", change, ({ key }) => key.id)
        })
      )
      .handle("createOrg", ({ payload }) =>
        Effect.gen(function* () {
          const change = keys.createOrg(yield* CurrentUser, payload)
          return yield* audit.change(yield* actor, "key.create", change, ({ key }) => key.id)
        })
      )
      .handle("patch", ({ headers, path, payload }) =>
        Effect.gen(function* () {
          const change = keys.patch(yield* CurrentUser, path.id, payload, expectedVersion(headers))
          return { key: yield* audit.change(yield* actor, "key.update", change, ({ id }) => id) }
        })
      )
      .handle("remove", ({ path: { id } }) => removal(audit, "key.revoke", id, keys.revoke))
  })

export const KeysHandlers = HttpApiBuilder.group(Api, "keys", group)
export const ManagedKeysHandlers = HttpApiBuilder.group(Api, "managedKeys", group)
