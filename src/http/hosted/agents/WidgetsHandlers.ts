import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { expectedVersion } from "../../../domain/Version.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Widgets } from "../../../usecases/agents/Widgets.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { actor } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"widgets">) =>
  Effect.gen(function* () {
    const widgets = yield* Widgets
    const audit = yield* AuditTrail
    return handlers
      .handle("get", ({ path }) =>
        Effect.gen(function* () {
          return { widget: yield* widgets.get(yield* CurrentUser, path.id) }
        })
      )
      .handle("patch", ({ headers, path, payload }) =>
        Effect.gen(function* () {
          const change = widgets.patch(yield* CurrentUser, path.id, payload, expectedVersion(headers))
          return { widget: yield* audit.change(yield* actor, "widget.update", change, () => path.id) }
        })
      )
  })

export const WidgetsHandlers = HttpApiBuilder.group(Api, "widgets", group)
export const ManagedWidgetsHandlers = HttpApiBuilder.group(Api, "managedWidgets", group)
