import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { EndUsers } from "../../../usecases/conversations/EndUsers.ts"
import { Api, type GroupHandlers } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import { listPage } from "../../Lists.ts"
import { actor, auditedRemoval } from "../accounts/Actor.ts"

/** End users: list, export, erase. */
const group = (handlers: GroupHandlers<"endUsers">) =>
  Effect.gen(function* () {
    const endUsers = yield* EndUsers
    const audit = yield* AuditTrail
    return handlers
      .handle("list", ({ urlParams: { externalId, ...params } }) =>
        listPage("endUsers", { route: "/api/end-users", filter: { externalId } }, params, (user, page) =>
          endUsers.list(user, { ...page, externalId })
        )
      )
      .handle("export", ({ path: { id } }) =>
        Effect.gen(function* () {
          const lines = yield* endUsers.exportData(yield* CurrentUser, id)
          yield* audit.record(yield* actor, "end_user.export", id)
          const text = Stream.map(lines, (line) => `${JSON.stringify(line)}\n`)
          return HttpServerResponse.stream(Stream.encodeText(text), {
            contentType: "application/x-ndjson",
            headers: {
              "cache-control": "no-store",
              "content-disposition": 'attachment; filename="end-user.ndjson"'
            }
          })
        })
      )
      .handle("remove", ({ path: { id } }) => auditedRemoval("end_user.delete", id, endUsers.erase))
  })

export const EndUsersHandlers = HttpApiBuilder.group(Api, "endUsers", group)
export const ManagedEndUsersHandlers = HttpApiBuilder.group(Api, "managedEndUsers", group)
