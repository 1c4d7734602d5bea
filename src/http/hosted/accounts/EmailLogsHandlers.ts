import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { EmailDeliveries } from "../../../usecases/accounts/EmailDeliveries.ts"
import { Api } from "../../Api.ts"
import { listPage } from "../../Lists.ts"

export const EmailLogsHandlers = HttpApiBuilder.group(Api, "emailLogs", (handlers) =>
  Effect.map(EmailDeliveries, (deliveries) =>
    handlers.handle("list", ({ urlParams }) =>
      listPage("emailLogs", { route: "/api/email-logs" }, urlParams, deliveries.list)
    )
  )
)
