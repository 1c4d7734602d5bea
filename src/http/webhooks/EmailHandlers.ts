import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { EmailDeliveries } from "../../usecases/accounts/EmailDeliveries.ts"
import { Api } from "../Api.ts"

export const EmailHandlers = HttpApiBuilder.group(Api, "emailEvents", (handlers) =>
  Effect.map(EmailDeliveries, (deliveries) =>
    handlers.handle("receive", ({ payload }) => deliveries.receive(payload))
  )
)
