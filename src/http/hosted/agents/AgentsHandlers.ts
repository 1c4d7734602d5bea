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
import { listPage } from "../../Lists.ts"
import { actor, removal } from "../accounts/Actor.ts"

/** Adds the newest version as `ETag`, for use in `If-Match`. */
const withETag = (agent: Agent) =>
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
      .handle("list", ({ urlParams }) => listPage("agents", { route: "/api/agents" }, urlParams, agents.list))
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
          return { agent: yield* withETag(yield* agents.get(yield* CurrentUser, path.id)) }
        })
      )
      .handle("patch", ({ headers, path, payload, urlParams: { force = false } }) =>
        Effect.gen(function* () {
          const by = yield* actor
          const change = agents.patch(by, path.id, payload, expectedVersion(headers), by.actor, force)
          const action = force ? "agent.update_forced" : "agent.update"
          return { agent: yield* withETag(yield* audit.change(by, action, change, ({ id }) => id)) }
        })
      )
      .handle("remove", ({ path: { id } }) => removal(audit, "agent.delete", id, agents.remove))
  })
export const AgentsHandlers = HttpApiBuilder.group(Api, "agents", agents)
export const ManagedAgentsHandlers = HttpApiBuilder.group(Api, "managedAgents", agents)
