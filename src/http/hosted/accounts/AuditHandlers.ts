import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AuditTrail } from "../../../usecases/accounts/AuditTrail.ts"
import { Api } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"

export const AuditHandlers = HttpApiBuilder.group(Api, "audit", (handlers) =>
  Effect.map(AuditTrail, (trail) =>
    handlers.handle("list", ({ urlParams: { limit = 20, cursor } }) =>
      Effect.gen(function* () {
        const user = yield* CurrentUser
        const of = { scope: user.tenantId, route: "/api/audit" }
        const page = yield* trail.list(user, { limit, after: yield* Cursor.open(of, cursor) })
        return { entries: page.rows, nextCursor: yield* Cursor.seal(of, page.next) }
      })
    )
  )
)
