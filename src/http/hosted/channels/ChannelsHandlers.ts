import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { expectedVersion } from "../../../domain/Version.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Channels } from "../../../usecases/channels/Channels.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import { actor } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"channels">) =>
  Effect.gen(function* () {
    const channels = yield* Channels
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ path, urlParams: { limit = 20, cursor } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const of = { scope: user.tenantId, route: "/api/agents/:id/channels", filter: { id: path.id } }
          const page = yield* channels.list(user, path.id, { limit, after: yield* Cursor.open(of, cursor) })
          return { channels: page.rows, nextCursor: yield* Cursor.seal(of, page.next) }
        })
      )
      .handle("create", ({ path, payload }) =>
        Effect.gen(function* () {
          const by = yield* actor
          const change = channels.create(by, path.id, payload)
          return { channel: yield* audit.change(by, "channel.create", change, ({ id }) => id) }
        })
      )
      .handle("patch", ({ headers, path, payload }) =>
        Effect.gen(function* () {
          const by = yield* actor
          const change = channels.patch(by, path.id, payload, expectedVersion(headers))
          return { channel: yield* audit.change(by, "channel.update", change, ({ id }) => id) }
        })
      )
      .handle("remove", ({ path: { id } }) =>
        Effect.gen(function* () {
          const change = channels.remove(yield* CurrentUser, id)
          yield* audit.change(yield* actor, "channel.delete", change, () => id)
          return { id, deleted: true } as const
        })
      )
  })

export const ChannelsHandlers = HttpApiBuilder.group(Api, "channels", group)
export const ManagedChannelsHandlers = HttpApiBuilder.group(Api, "managedChannels", group)
