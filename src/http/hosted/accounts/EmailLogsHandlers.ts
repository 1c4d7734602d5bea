import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { EmailDeliveries } from "../../../usecases/accounts/EmailDeliveries.ts"
import { Api } from "../../Api.ts"
import { CurrentUser } from "../../Auth.ts"
import * as Cursor from "../../Cursor.ts"

export const EmailLogsHandlers = HttpApiBuilder.group(Api, "emailLogs", (handlers) =>
  Effect.map(EmailDeliveries, (deliveries) =>
    handlers.handle("list", ({ urlParams: { limit = 20, cursor } }) =>
      Effect.gen(function* () {
        const user = yield* CurrentUser
        const of = { scope: user.tenantId, route: "/api/email-logs" }
        const page = yield* deliveries.list(user, { limit, after: yield* Cursor.open(of, cursor) })
        return { emailLogs: page.rows, nextCursor: yield* Cursor.seal(of, page.next) }
      })
    )
  )
)
