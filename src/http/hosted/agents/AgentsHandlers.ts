import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import type { Agent } from "../../../domain/agents/Agent.ts"
import { expectedVersion } from "../../../domain/Version.ts"
import { Agents } from "../../../usecases/agents/Agents.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import { actor } from "../accounts/Actor.ts"

/** Adds the newest version as `ETag`, for use in `If-Match`. */
const tagged = (agent: Agent) =>
  Effect.as(
    HttpApp.appendPreResponseHandler((_, response) =>
      Effect.succeed(HttpServerResponse.setHeader(response, "etag", `"${agent.version}"`))
    ),
    agent
  )

const agents = (handlers: GroupHandlers<"agents">) =>
  Effect.gen(function* () {
    const agents = yield* Agents
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ urlParams: { limit = 20, cursor } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const of = { scope: user.tenantId, route: "/api/agents" }
          const page = yield* agents.list(user, { limit, after: yield* Cursor.open(of, cursor) })
          return { agents: page.rows, nextCursor: yield* Cursor.seal(of, page.next) }
        })
      )
      .handle("problems", () =>
        Effect.gen(function* () {
          return { problems: yield* agents.problems(yield* CurrentUser) }
        })
      )
      .handle("create", ({ payload }) =>
        Effect.gen(function* () {
          const by = yield* actor
          const change = agents.create(by, payload, by.actor)
          return { agent: yield* audit.change(by, "agent.create", change, ({ id }) => id) }
        })
      )
      .handle("get", ({ path }) =>
        Effect.gen(function* () {
          return { agent: yield* tagged(yield* agents.get(yield* CurrentUser, path.id)) }
        })
      )
      .handle("patch", ({ headers, path, payload, urlParams: { force = false } }) =>
        Effect.gen(function* () {
          const by = yield* actor
          const change = agents.patch(by, path.id, payload, expectedVersion(headers), by.actor, force)
          const action = force ? "agent.update_forced" : "agent.update"
          return { agent: yield* tagged(yield* audit.change(by, action, change, ({ id }) => id)) }
        })
      )
      .handle("remove", ({ path: { id } }) =>
        Effect.gen(function* () {
          const change = agents.remove(yield* CurrentUser, id)
          yield* audit.change(yield* actor, "agent.delete", change, () => id)
          return { id, deleted: true } as const
        })
      )
  })
export const AgentsHandlers = HttpApiBuilder.group(Api, "agents", agents)
export const ManagedAgentsHandlers = HttpApiBuilder.group(Api, "managedAgents", agents)
