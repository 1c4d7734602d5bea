import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Corrections } from "../../../usecases/agents/Corrections.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { actor, audited, idOf, recordReplays, auditedRemoval } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"corrections">) =>
  Effect.gen(function* () {
    const corrections = yield* Corrections
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
        audited(
          "correction.create",
          (user, by) => corrections.create(user, path.id, payload, by.actor),
          idOf
        ).pipe(Effect.bindTo("correction"))
      )
      .handle("get", ({ path }) =>
        Effect.flatMap(CurrentUser, (user) => corrections.get(user, path.id)).pipe(
          Effect.bindTo("correction")
        )
      )
      .handle("update", ({ path, payload }) =>
        audited("correction.update", (user) => corrections.update(user, path.id, payload), idOf).pipe(
          Effect.bindTo("correction")
        )
      )
      .handle("preview", ({ path, payload }) =>
        Effect.gen(function* () {
          const by = yield* actor
          const replay = yield* corrections.toReplay(by, path.id, payload.turns)
          const change = Effect.zipLeft(
            corrections.preview(by, replay, by.actor),
            recordReplays(replay.runIds)
          )
          return { correction: yield* audited("correction.preview", () => change, idOf) }
        })
      )
      .handle("approve", ({ path, urlParams: { force = false } }) =>
        audited(
          force ? "correction.approve_forced" : "correction.approve",
          (user) => corrections.approve(user, path.id, { force }),
          idOf
        ).pipe(Effect.bindTo("correction"))
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("correction.delete", id, corrections.remove))
  })

export const CorrectionsHandlers = HttpApiBuilder.group(Api, "corrections", group)
export const ManagedCorrectionsHandlers = HttpApiBuilder.group(Api, "managedCorrections", group)
