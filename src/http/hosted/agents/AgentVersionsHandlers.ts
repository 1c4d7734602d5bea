import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AgentVersions } from "../../../usecases/agents/AgentVersions.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { audited, idOf } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"agentVersions">) =>
  Effect.gen(function* () {
    const versions = yield* AgentVersions
    return handlers
      .handle("list", ({ path: { id }, urlParams }) =>
        listPage(
          "versions",
          { route: "/api/agents/:id/versions", filter: { id } },
          urlParams,
          (user, { after, limit }) =>
            versions.list(user, id, { limit, before: after === undefined ? null : Number(after) })
        )
      )
      .handle("get", ({ path }) =>
        Effect.flatMap(CurrentUser, (user) => versions.get(user, path.id, path.version))
      )
      .handle("publish", ({ path, urlParams: { force = false } }) =>
        audited(
          force ? "agent.publish_forced" : "agent.publish",
          (user) => versions.publish(user, path.id, path.version, force),
          idOf
        ).pipe(Effect.bindTo("agent"))
      )
      .handle("split", ({ path, payload, urlParams: { force = false } }) =>
        audited(
          force ? "agent.split_forced" : "agent.split",
          (user) => versions.split(user, path.id, payload, force),
          idOf
        ).pipe(Effect.bindTo("agent"))
      )
      .handle("endSplit", ({ path }) =>
        audited("agent.split", (user) => versions.endSplit(user, path.id), idOf).pipe(Effect.bindTo("agent"))
      )
  })

export const AgentVersionsHandlers = HttpApiBuilder.group(Api, "agentVersions", group)
export const ManagedAgentVersionsHandlers = HttpApiBuilder.group(Api, "managedAgentVersions", group)
