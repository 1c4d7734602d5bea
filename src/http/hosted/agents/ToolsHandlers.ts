import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { expectedVersion } from "../../../domain/Version.ts"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Tools } from "../../../usecases/agents/Tools.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"
import { actor } from "../accounts/Actor.ts"

const group = (handlers: GroupHandlers<"tools">) =>
  Effect.gen(function* () {
    const tools = yield* Tools
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ path, urlParams: { limit = 20, cursor } }) =>
        Effect.gen(function* () {
          const user = yield* CurrentUser
          const of = { scope: user.tenantId, route: "/api/agents/:id/tools", filter: { id: path.id } }
          const page = yield* tools.list(user, path.id, { limit, after: yield* Cursor.open(of, cursor) })
          return { tools: page.rows, nextCursor: yield* Cursor.seal(of, page.next) }
        })
      )
      .handle("create", ({ path, payload }) =>
        Effect.gen(function* () {
          const change = tools.create(yield* CurrentUser, path.id, payload)
          return { tool: yield* audit.change(yield* actor, "tool.create", change, ({ id }) => id) }
        })
      )
      .handle("patch", ({ headers, path, payload }) =>
        Effect.gen(function* () {
          const change = tools.patch(yield* CurrentUser, path.id, payload, expectedVersion(headers))
          return { tool: yield* audit.change(yield* actor, "tool.update", change, ({ id }) => id) }
        })
      )
      .handle("remove", ({ path: { id } }) =>
        Effect.gen(function* () {
          const change = tools.remove(yield* CurrentUser, id)
          yield* audit.change(yield* actor, "tool.delete", change, () => id)
          return { id, deleted: true } as const
        })
      )
  })

export const ToolsHandlers = HttpApiBuilder.group(Api, "tools", group)
export const ManagedToolsHandlers = HttpApiBuilder.group(Api, "managedTools", group)
