import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { expectedVersion } from "../../../domain/Version.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Channels } from "../../../usecases/channels/Channels.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { listPage } from "../../Lists.ts"
import { actor, removal } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"channels">) =>
  Effect.gen(function* () {
    const channels = yield* Channels
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ path, urlParams }) =>
        listPage(
          "channels",
          { route: "/api/agents/:id/channels", filter: { id: path.id } },
          urlParams,
          (user, page) => channels.list(user, path.id, page)
        )
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
      .handle("remove", ({ path: { id } }) => removal(audit, "channel.delete", id, channels.remove))
  })

export const ChannelsHandlers = HttpApiBuilder.group(Api, "channels", group)
export const ManagedChannelsHandlers = HttpApiBuilder.group(Api, "managedChannels", group)
