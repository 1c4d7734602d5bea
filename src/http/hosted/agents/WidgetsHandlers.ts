import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { expectedVersion } from "../../../domain/Version.ts"
import { Widgets } from "../../../usecases/agents/Widgets.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { audited } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"widgets">) =>
  Effect.gen(function* () {
    const widgets = yield* Widgets
    return handlers
      .handle("get", ({ path }) =>
        Effect.flatMap(CurrentUser, (user) => widgets.get(user, path.id)).pipe(Effect.bindTo("widget"))
      )
      .handle("patch", ({ headers, path, payload }) =>
        audited(
          "widget.update",
          (user) => widgets.patch(user, path.id, payload, expectedVersion(headers)),
          path.id
        ).pipe(Effect.bindTo("widget"))
      )
  })

export const WidgetsHandlers = HttpApiBuilder.group(Api, "widgets", group)
export const ManagedWidgetsHandlers = HttpApiBuilder.group(Api, "managedWidgets", group)
