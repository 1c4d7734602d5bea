import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Experiments } from "../../../usecases/agents/Experiments.ts"
import { PublishGate } from "../../../usecases/agents/PublishGate.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import { listPage } from "../../Lists.ts"
import { actor, removal } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"experiments">) =>
  Effect.gen(function* () {
    const experiments = yield* Experiments
    const gate = yield* PublishGate
    const audit = yield* AuditTrail
    return handlers
      .handle("start", ({ path, payload }) =>
        Effect.gen(function* () {
          const by = yield* actor
          const replayed = Effect.forEach(
            payload.runIds ?? [],
            (id) => audit.record(by, "agent_run.replay", id),
            { discard: true }
          )
          const change = Effect.zipLeft(experiments.start(by, path.id, payload, by.actor), replayed)
          return { experiment: yield* audit.change(by, "experiment.start", change, ({ id }) => id) }
        })
      )
      .handle("list", ({ path: { id }, urlParams }) =>
        listPage(
          "experiments",
          { route: "/api/agents/:id/experiments", filter: { id } },
          urlParams,
          (user, page) => experiments.list(user, id, page)
        )
      )
      .handle("get", ({ path }) => Effect.flatMap(CurrentUser, (user) => experiments.report(user, path.id)))
      .handle("results", ({ path: { id }, urlParams: { limit = 20, cursor } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const of = { scope: user.tenantId, route: "/api/experiments/:id/results", filter: { id } }
          const { nextCursor, rows } = yield* Cursor.page(of, cursor, (after = "-1") =>
            experiments.results(user, id, { limit, after: Number(after) })
          )
          return { results: rows, nextCursor }
        })
      )
      .handle("cancel", ({ path }) =>
        Effect.gen(function* () {
          const change = experiments.cancel(yield* CurrentUser, path.id)
          return {
            experiment: yield* audit.change(yield* actor, "experiment.cancel", change, ({ id }) => id)
          }
        })
      )
      .handle("remove", ({ path: { id } }) => removal(audit, "experiment.delete", id, experiments.remove))
      .handle("threshold", ({ path }) =>
        Effect.gen(function* () {
          return { threshold: yield* gate.find(yield* CurrentUser, path.id) }
        })
      )
      .handle("setThreshold", ({ path: { id }, payload }) =>
        Effect.gen(function* () {
          const change = gate.set(yield* CurrentUser, id, payload)
          return { threshold: yield* audit.change(yield* actor, "agent.threshold", change, () => id) }
        })
      )
  })

export const ExperimentsHandlers = HttpApiBuilder.group(Api, "experiments", group)
export const ManagedExperimentsHandlers = HttpApiBuilder.group(Api, "managedExperiments", group)
