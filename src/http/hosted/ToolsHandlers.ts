import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { Tools } from "../../usecases/Tools.ts"
import { Api } from "../Api.ts"
import { CurrentUser } from "../Auth.ts"

/** Tools of the tenant's agents. */
export const ToolsHandlers = HttpApiBuilder.group(Api, "tools", (handlers) =>
  Effect.gen(function* () {
    const tools = yield* Tools
    return handlers
      .handle("list", ({ path }) =>
        Effect.gen(function* () {
          return { tools: yield* tools.list(yield* CurrentUser, path.id) }
        })
      )
      .handle("create", ({ path, payload }) =>
        Effect.gen(function* () {
          return { tool: yield* tools.create(yield* CurrentUser, path.id, payload) }
        })
      )
      .handle("patch", ({ path, payload }) =>
        Effect.gen(function* () {
          return { tool: yield* tools.patch(yield* CurrentUser, path.id, payload) }
        })
      )
      .handle("remove", ({ path: { id } }) =>
        Effect.gen(function* () {
          yield* tools.remove(yield* CurrentUser, id)
          return { id, deleted: true } as const
        })
      )
  })
)
