import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Experiments } from "../../../usecases/agents/Experiments.ts"
import { PublishGate } from "../../../usecases/agents/PublishGate.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import { listPage } from "../../Lists.ts"
import { audited, idOf, recordReplays, auditedRemoval } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"experiments">) =>
  Effect.gen(function* () {
    const experiments = yield* Experiments
    const gate = yield* PublishGate
    return handlers
      .handle("start", ({ path, payload }) =>
        audited(
          "experiment.start",
          (user, by) =>
            Effect.zipLeft(
              experiments.start(user, path.id, payload, by.actor),
              recordReplays(payload.runIds ?? [])
            ),
          idOf
        ).pipe(Effect.bindTo("experiment"))
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
          const list = { scope: user.tenantId, route: "/api/experiments/:id/results", filter: { id } }
          const { nextCursor, rows } = yield* Cursor.page(list, cursor, (after = "-1") =>
            experiments.results(user, id, { limit, after: Number(after) })
          )
          return { results: rows, nextCursor }
        })
      )
      .handle("cancel", ({ path }) =>
        audited("experiment.cancel", (user) => experiments.cancel(user, path.id), idOf).pipe(
          Effect.bindTo("experiment")
        )
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("experiment.delete", id, experiments.remove))
      .handle("threshold", ({ path }) =>
        Effect.flatMap(CurrentUser, (user) => gate.find(user, path.id)).pipe(Effect.bindTo("threshold"))
      )
      .handle("setThreshold", ({ path: { id }, payload }) =>
        audited("agent.threshold", (user) => gate.set(user, id, payload), id).pipe(Effect.bindTo("threshold"))
      )
  })

export const ExperimentsHandlers = HttpApiBuilder.group(Api, "experiments", group)
export const ManagedExperimentsHandlers = HttpApiBuilder.group(Api, "managedExperiments", group)
