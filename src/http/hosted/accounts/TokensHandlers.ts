import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AccessTokens } from "../../../usecases/accounts/AccessTokens.ts"
import { Api } from "../../Api.ts"
import { listPage } from "../../Lists.ts"
import { audited, auditedRemoval } from "./Actor.ts"

export const TokensHandlers = HttpApiBuilder.group(Api, "tokens", (handlers) =>
  Effect.gen(function* () {
    const tokens = yield* AccessTokens
    return handlers
      .handle("list", ({ urlParams }) => listPage("tokens", { route: "/api/tokens" }, urlParams, tokens.list))
      .handle("create", ({ payload }) =>
        audited(
          "token.create",
          (user) => tokens.create(user, payload),
          ({ token }) => token.id
        )
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("token.revoke", id, tokens.revoke))
  })
)
