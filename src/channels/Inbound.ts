/** How each provider's deliveries are read. */
import type { MessagingChannel } from "../domain/channels/Channel.ts"
import type { Normalizer } from "./Normalized.ts"
import * as Messenger from "./messenger/Inbound.ts"
import * as Whatsapp from "./whatsapp/Inbound.ts"

/** The reader of a provider's webhooks; never throws. */
export const normalizers = {
  whatsapp: Whatsapp.normalize,
  messenger: Messenger.normalize
} as const satisfies Record<MessagingChannel, Normalizer>
