import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { InboxView } from "../../../usecases/conversations/InboxView.ts"
import { Api } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import { actor } from "../accounts/Actor.ts"
import { fileResponse } from "./FileResponse.ts"
import * as ChannelFilter from "./ChannelFilter.ts"

/** Conversations of the tenant's agents, for the dashboard's inbox. */
export const InboxViewHandlers = HttpApiBuilder.group(Api, "inboxView", (handlers) =>
  Effect.gen(function* () {
    const inbox = yield* InboxView
    const checkChannel = yield* ChannelFilter.makeCheck
    return handlers
      .handle("list", ({ urlParams: { cursor, limit = 20, ...filter } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          yield* checkChannel(filter.channel)
          const list = { scope: `${user.tenantId} ${user.userId}`, route: "/api/inbox", filter }
          const { nextCursor, rows } = yield* Cursor.page(list, cursor, (after) =>
            inbox.list(user, filter, { limit, after })
          )
          return { conversations: rows, nextCursor }
        })
      )
      .handle("recent", ({ path: { id }, urlParams: { before, limit = 20 } }) =>
        Effect.flatMap(CurrentUser, (user) => inbox.recent(user, id, { before, limit }))
      )
      .handle("attachment", ({ path: { artifact, id } }) =>
        Effect.flatMap(CurrentUser, ({ tenantId }) =>
          Effect.map(inbox.attachment({ tenantId }, id, artifact), fileResponse)
        )
      )
      .handle("realtime", ({ path: { id } }) =>
        Effect.flatMap(CurrentUser, (user) => inbox.realtime(user, id))
      )
      .handle("lastRun", ({ path: { id } }) =>
        Effect.flatMap(CurrentUser, ({ tenantId }) =>
          Effect.map(inbox.lastRun({ tenantId }, id), (run) => ({ run }))
        )
      )
      .handle("trace", ({ path: { runId }, urlParams: { cursor = 0, limit = 20 } }) =>
        Effect.flatMap(actor, (by) => inbox.trace(by, runId, { limit, after: cursor }))
      )
  })
)
