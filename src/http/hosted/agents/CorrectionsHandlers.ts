import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import type { Correction } from "../../../domain/agents/Correction.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Corrections } from "../../../usecases/agents/Corrections.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { actor, removal } from "../accounts/Actor.ts"

const idOf = ({ id }: Correction) => id

const group = (handlers: GroupHandlers<"corrections">) =>
  Effect.gen(function* () {
    const corrections = yield* Corrections
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ path: { id }, urlParams }) =>
        listPage(
          "corrections",
          { route: "/api/agents/:id/corrections", filter: { id } },
          urlParams,
          (user, page) => corrections.list(user, id, page)
        )
      )
      .handle("create", ({ path, payload }) =>
        Effect.gen(function* () {
          const by = yield* actor
          const change = corrections.create(by, path.id, payload, by.actor)
          return { correction: yield* audit.change(by, "correction.create", change, idOf) }
        })
      )
      .handle("get", ({ path }) =>
        Effect.gen(function* () {
          return { correction: yield* corrections.get(yield* CurrentUser, path.id) }
        })
      )
      .handle("update", ({ path, payload }) =>
        Effect.gen(function* () {
          const change = corrections.update(yield* CurrentUser, path.id, payload)
          return { correction: yield* audit.change(yield* actor, "correction.update", change, idOf) }
        })
      )
      .handle("preview", ({ path, payload }) =>
        Effect.gen(function* () {
          const by = yield* actor
          const found = yield* corrections.toReplay(by, path.id, payload.turns)
          const replayed = Effect.forEach(found.runIds, (id) => audit.record(by, "agent_run.replay", id), {
            discard: true
          })
          const change = Effect.zipLeft(corrections.preview(by, found, by.actor), replayed)
          return { correction: yield* audit.change(by, "correction.preview", change, idOf) }
        })
      )
      .handle("approve", ({ path, urlParams: { force = false } }) =>
        Effect.gen(function* () {
          const change = corrections.approve(yield* CurrentUser, path.id, { force })
          const action = force ? "correction.approve_forced" : "correction.approve"
          return { correction: yield* audit.change(yield* actor, action, change, idOf) }
        })
      )
      .handle("remove", ({ path: { id } }) => removal(audit, "correction.delete", id, corrections.remove))
  })

export const CorrectionsHandlers = HttpApiBuilder.group(Api, "corrections", group)
export const ManagedCorrectionsHandlers = HttpApiBuilder.group(Api, "managedCorrections", group)
