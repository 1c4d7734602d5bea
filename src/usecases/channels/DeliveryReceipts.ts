/** What went out through a channel, as far as what comes in has to know it. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { DeliveryStatus, InboundMessage } from "../../domain/channels/Channel.ts"

export class DeliveryReceipts extends Context.Tag("usecases/channels/DeliveryReceipts")<
  DeliveryReceipts,
  {
    /** True when `echo` repeats a message that this service has sent. */
    readonly ours: (echo: InboundMessage) => Effect.Effect<boolean>
    /** Notes how far a message has come; only forward. */
    readonly delivered: (status: DeliveryStatus) => Effect.Effect<void>
  }
>() {}
