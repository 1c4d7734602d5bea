import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Keys } from "../../usecases/Keys.ts"
import { Api } from "../Api.ts"
import { CurrentUser } from "../Auth.ts"
import * as Cursor from "../Cursor.ts"

/** API keys of the tenant's agents and of the tenant itself. */
export const KeysHandlers = HttpApiBuilder.group(Api, "keys", (handlers) =>
  Effect.gen(function* () {
    const keys = yield* Keys
    return handlers
      .handle("list", ({ path, urlParams: { limit = 20, cursor } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const of = { scope: user.tenantId, route: "/api/agents/:id/keys", filter: { id: path.id } }
          const page = yield* keys.list(user, path.id, { limit, after: yield* Cursor.open(of, cursor) })
          return { keys: page.rows, nextCursor: yield* Cursor.seal(of, page.next) }
        })
      )
      .handle("create", ({ path, payload }) =>
        Effect.flatMap(CurrentUser, (user) => keys.create(user, path.id, payload))
      )
      .handle("createOrg", ({ payload }) =>
        Effect.flatMap(CurrentUser, (user) => keys.createOrg(user, payload))
      )
      .handle("patch", ({ path, payload }) =>
        Effect.gen(function* () {
          return { key: yield* keys.patch(yield* CurrentUser, path.id, payload) }
        })
      )
      .handle("remove", ({ path: { id } }) =>
        Effect.gen(function* () {
          yield* keys.revoke(yield* CurrentUser, id)
          return { id, deleted: true } as const
        })
      )
  })
)
