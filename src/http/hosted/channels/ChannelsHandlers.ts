import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { expectedVersion } from "../../../domain/Version.ts"
import { Channels } from "../../../usecases/channels/Channels.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { listPage } from "../../Lists.ts"
import { audited, idOf, auditedRemoval } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"channels">) =>
  Effect.gen(function* () {
    const channels = yield* Channels
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
        audited("channel.create", (_, by) => channels.create(by, path.id, payload), idOf).pipe(
          Effect.bindTo("channel")
        )
      )
      .handle("patch", ({ headers, path, payload }) =>
        audited(
          "channel.update",
          (_, by) => channels.patch(by, path.id, payload, expectedVersion(headers)),
          idOf
        ).pipe(Effect.bindTo("channel"))
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("channel.delete", id, channels.remove))
  })

export const ChannelsHandlers = HttpApiBuilder.group(Api, "channels", group)
export const ManagedChannelsHandlers = HttpApiBuilder.group(Api, "managedChannels", group)
