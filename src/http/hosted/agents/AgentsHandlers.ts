import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import type { Agent } from "../../../domain/agents/Agent.ts"
import { expectedVersion } from "../../../domain/Version.ts"
import { Agents } from "../../../usecases/agents/Agents.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { audited, idOf, auditedRemoval } from "../accounts/Actor.ts"

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
    return handlers
      .handle("list", ({ urlParams }) => listPage("agents", { route: "/api/agents" }, urlParams, agents.list))
      .handle("problems", () => Effect.flatMap(CurrentUser, agents.problems).pipe(Effect.bindTo("problems")))
      .handle("create", ({ payload }) =>
        audited("agent.create", (user, by) => agents.create(user, payload, by.actor), idOf).pipe(
          Effect.bindTo("agent")
        )
      )
      .handle("get", ({ path }) =>
        Effect.gen(function* () {
          return { agent: yield* withETag(yield* agents.get(yield* CurrentUser, path.id)) }
        })
      )
      .handle("patch", ({ headers, path, payload, urlParams: { force = false } }) =>
        audited(
          force ? "agent.update_forced" : "agent.update",
          (user, by) => agents.patch(user, path.id, payload, expectedVersion(headers), by.actor, force),
          idOf
        ).pipe(Effect.flatMap(withETag), Effect.bindTo("agent"))
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("agent.delete", id, agents.remove))
  })
export const AgentsHandlers = HttpApiBuilder.group(Api, "agents", agents)
export const ManagedAgentsHandlers = HttpApiBuilder.group(Api, "managedAgents", agents)
