import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Findings } from "../../../usecases/knowledge/Findings.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import { audited } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"findings">) =>
  Effect.gen(function* () {
    const findings = yield* Findings
    return handlers
      .handle("list", ({ path: { id }, urlParams: { limit = 20, cursor, dismissed, kind } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const list = {
            scope: user.tenantId,
            route: "/api/agents/:id/findings",
            filter: { id, kind, dismissed: dismissed === undefined ? undefined : `${dismissed}` }
          }
          return yield* Cursor.page(list, cursor, (after) =>
            findings.list(user, id, { kind, dismissed, limit, after })
          )
        })
      )
      .handle("dismiss", ({ path: { finding, id } }) =>
        audited("finding.dismiss", (user) => findings.setDismissed(user, id, finding, true), finding).pipe(
          Effect.bindTo("finding")
        )
      )
      .handle("restore", ({ path: { finding, id } }) =>
        audited("finding.restore", (user) => findings.setDismissed(user, id, finding, false), finding).pipe(
          Effect.bindTo("finding")
        )
      )
      .handle("values", ({ path: { id }, urlParams: { limit = 100, cursor, month } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const list = {
            scope: user.tenantId,
            route: "/api/agents/:id/source-values",
            filter: { id, month }
          }
          return yield* Cursor.page(list, cursor, (after = "") =>
            findings.values(user, id, month, { after, limit })
          )
        })
      )
  })

export const FindingsHandlers = HttpApiBuilder.group(Api, "findings", group)
export const ManagedFindingsHandlers = HttpApiBuilder.group(Api, "managedFindings", group)
