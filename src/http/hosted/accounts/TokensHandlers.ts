import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AccessTokens } from "../../../usecases/accounts/AccessTokens.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Api } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import { actor } from "./Actor.ts"

export const TokensHandlers = HttpApiBuilder.group(Api, "tokens", (handlers) =>
  Effect.gen(function* () {
    const tokens = yield* AccessTokens
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ urlParams: { limit = 20, cursor } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const of = { scope: user.tenantId, route: "/api/tokens" }
          const page = yield* tokens.list(user, { limit, after: yield* Cursor.open(of, cursor) })
          return { tokens: page.rows, nextCursor: yield* Cursor.seal(of, page.next) }
        })
      )
      .handle("create", ({ payload }) =>
        Effect.gen(function* () {
          const change = tokens.create(yield* CurrentUser, payload)
          return yield* audit.change(yield* actor, "token.create", change, ({ token }) => token.id)
        })
      )
      .handle("remove", ({ path: { id } }) =>
        Effect.gen(function* () {
          const change = tokens.revoke(yield* CurrentUser, id)
          yield* audit.change(yield* actor, "token.revoke", change, () => id)
          return { id, deleted: true } as const
        })
      )
  })
)
