import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { Impact } from "../../../usecases/knowledge/Impact.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import { actor, audited, idOf, recordReplays } from "../accounts/Actor.ts"

const isoOf = (time: DateTime.Utc | undefined) => (time === undefined ? undefined : DateTime.formatIso(time))

const group = (handlers: GroupHandlers<"impact">) =>
  Effect.gen(function* () {
    const impact = yield* Impact
    return handlers
      .handle("list", ({ path: { id }, urlParams: { limit = 20, cursor, ...filter } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const { from, sourceId, to } = filter
          const list = {
            scope: user.tenantId,
            route: "/api/agents/:id/impact",
            filter: { id, sourceId, from: isoOf(from), to: isoOf(to) }
          }
          return yield* Cursor.page(list, cursor, (after) => impact.list(user, id, filter, { limit, after }))
        })
      )
      .handle("replay", ({ path, payload }) =>
        Effect.gen(function* () {
          const by = yield* actor
          const runIds = yield* impact.turnsOf(by, path.id, payload)
          const started = impact.replay(by, path.id, runIds, payload.version, by.actor)
          const change = Effect.zipLeft(started, recordReplays(runIds))
          return { experiment: yield* audited("experiment.start", () => change, idOf) }
        })
      )
  })

export const ImpactHandlers = HttpApiBuilder.group(Api, "impact", group)
export const ManagedImpactHandlers = HttpApiBuilder.group(Api, "managedImpact", group)
