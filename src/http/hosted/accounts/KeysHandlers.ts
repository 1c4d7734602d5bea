import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { expectedVersion } from "../../../domain/Version.ts"
import { Keys } from "../../../usecases/accounts/Keys.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { listPage } from "../../Lists.ts"
import { audited, idOf, auditedRemoval } from "./Actor.ts"

/** API keys of the tenant's agents and of the tenant itself. */
const group = (handlers: GroupHandlers<"keys">) =>
  Effect.gen(function* () {
    const keys = yield* Keys
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
        audited(
          "key.create",
          (user) => keys.create(user, path.id, payload),
          ({ key }) => key.id
        )
      )
      .handle("createOrg", ({ payload }) =>
        audited(
          "key.create",
          (user) => keys.createOrg(user, payload),
          ({ key }) => key.id
        )
      )
      .handle("patch", ({ headers, path, payload }) =>
        audited(
          "key.update",
          (user) => keys.patch(user, path.id, payload, expectedVersion(headers)),
          idOf
        ).pipe(Effect.bindTo("key"))
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("key.revoke", id, keys.revoke))
  })

export const KeysHandlers = HttpApiBuilder.group(Api, "keys", group)
export const ManagedKeysHandlers = HttpApiBuilder.group(Api, "managedKeys", group)
