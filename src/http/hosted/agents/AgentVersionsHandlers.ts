import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { AgentVersions } from "../../../usecases/agents/AgentVersions.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import { actor } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"agentVersions">) =>
  Effect.gen(function* () {
    const versions = yield* AgentVersions
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ path: { id }, urlParams: { limit = 20, cursor } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const of = { scope: user.tenantId, route: "/api/agents/:id/versions", filter: { id } }
          const { nextCursor, rows } = yield* Cursor.page(of, cursor, (after) =>
            versions.list(user, id, { limit, before: after === undefined ? null : Number(after) })
          )
          return { versions: rows, nextCursor }
        })
      )
      .handle("get", ({ path }) =>
        Effect.flatMap(CurrentUser, (user) => versions.get(user, path.id, path.version))
      )
      .handle("publish", ({ path, urlParams: { force = false } }) =>
        Effect.gen(function* () {
          const change = versions.publish(yield* CurrentUser, path.id, path.version, force)
          const action = force ? "agent.publish_forced" : "agent.publish"
          return { agent: yield* audit.change(yield* actor, action, change, ({ id }) => id) }
        })
      )
      .handle("split", ({ path, payload, urlParams: { force = false } }) =>
        Effect.gen(function* () {
          const change = versions.split(yield* CurrentUser, path.id, payload, force)
          const action = force ? "agent.split_forced" : "agent.split"
          return { agent: yield* audit.change(yield* actor, action, change, ({ id }) => id) }
        })
      )
      .handle("endSplit", ({ path }) =>
        Effect.gen(function* () {
          const change = versions.endSplit(yield* CurrentUser, path.id)
          return { agent: yield* audit.change(yield* actor, "agent.split", change, ({ id }) => id) }
        })
      )
  })

export const AgentVersionsHandlers = HttpApiBuilder.group(Api, "agentVersions", group)
export const ManagedAgentVersionsHandlers = HttpApiBuilder.group(Api, "managedAgentVersions", group)
