import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Starts } from "../../../usecases/agents/Starts.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"

/** The tenant's setup checklist. */
const group = (handlers: GroupHandlers<"start">) =>
  Effect.gen(function* () {
    const starts = yield* Starts
    return handlers
      .handle("get", ({ urlParams: { agentId } }) =>
        Effect.flatMap(CurrentUser, (user) => starts.get(user, agentId))
      )
      .handle("put", ({ payload }) =>
        Effect.flatMap(CurrentUser, (user) => Effect.as(starts.dismiss(user, payload.dismissed), payload))
      )
      .handle("questions", ({ path }) =>
        Effect.flatMap(CurrentUser, (user) => starts.questions(user, path.id)).pipe(
          Effect.bindTo("questions")
        )
      )
  })

export const StartHandlers = HttpApiBuilder.group(Api, "start", group)
export const ManagedStartHandlers = HttpApiBuilder.group(Api, "managedStart", group)
