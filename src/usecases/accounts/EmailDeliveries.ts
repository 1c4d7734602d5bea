/** Delivery results of e-mails. */
import * as Effect from "effect/Effect"
import { deliveriesOf, type EmailEvents } from "../../domain/accounts/EmailLog.ts"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import { EmailDeliveryStore } from "../../store/accounts/EmailDeliveries.ts"

export class EmailDeliveries extends Effect.Service<EmailDeliveries>()("usecases/accounts/EmailDeliveries", {
  effect: Effect.gen(function* () {
    const store = yield* EmailDeliveryStore

    /** Updates the delivery states of e-mails. SERVICE_UNAVAILABLE when nothing was stored. */
    const receive = Effect.fn("EmailDeliveries.receive")(function* (events: EmailEvents) {
      yield* store.apply(deliveriesOf(events)).pipe(
        Effect.timeout("15 seconds"),
        Effect.catchAllCause((cause) =>
          Effect.zipRight(
            Effect.logError("E-mail events could not be applied", cause),
            new ServiceUnavailable({ message: "The events could not be applied. Send them again." })
          )
        )
      )
      return { received: true } as const
    })

    return { receive, list: store.list } as const
  })
}) {}
