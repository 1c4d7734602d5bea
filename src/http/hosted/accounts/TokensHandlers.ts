import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AccessTokens } from "../../../usecases/accounts/AccessTokens.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Api } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { actor, removal } from "./Actor.ts"

export const TokensHandlers = HttpApiBuilder.group(Api, "tokens", (handlers) =>
  Effect.gen(function* () {
    const tokens = yield* AccessTokens
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ urlParams }) => listPage("tokens", { route: "/api/tokens" }, urlParams, tokens.list))
      .handle("create", ({ payload }) =>
        Effect.gen(function* () {
          const change = tokens.create(yield* CurrentUser, payload)
          return yield* audit.change(yield* actor, "token.create", change, ({ token }) => token.id)
        })
      )
      .handle("remove", ({ path: { id } }) => removal(audit, "token.revoke", id, tokens.revoke))
  })
)
