import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { Insights } from "../../../usecases/conversations/Insights.ts"
import { Api } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"

export const InsightsHandlers = HttpApiBuilder.group(Api, "insights", (handlers) =>
  Effect.gen(function* () {
    const insights = yield* Insights
    return handlers
      .handle("list", ({ urlParams: { agentId, cursor, from, limit = 20, to } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const list = {
            scope: user.tenantId,
            route: "/api/insights",
            filter: {
              agentId,
              from: from === undefined ? undefined : DateTime.formatIso(from),
              to: to === undefined ? undefined : DateTime.formatIso(to)
            }
          }
          return yield* Cursor.page(list, cursor, (after) =>
            insights.groups(user, { agentId, from, to }, { limit, after })
          )
        })
      )
      .handle("measures", ({ urlParams: { by = "day", ...filter } }) =>
        Effect.flatMap(CurrentUser, (user) => insights.measures(user, filter, by))
      )
  })
)
