/** Interface for events that refer to outgoing channel messages. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { DeliveryStatus, InboundMessage } from "../../domain/channels/Channel.ts"

export class DeliveryReceipts extends Context.Tag("usecases/channels/DeliveryReceipts")<
  DeliveryReceipts,
  {
    /** True when `echo` repeats a message that this service sent. */
    readonly isOwn: (echo: InboundMessage) => Effect.Effect<boolean>
    /** Records the delivery state of a message; a state never goes back. */
    readonly recordDelivery: (status: DeliveryStatus) => Effect.Effect<void>
  }
>() {}
