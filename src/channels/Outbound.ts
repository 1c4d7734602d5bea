/** Each provider's side of sending. */
import type { MessagingChannel } from "../domain/channels/Channel.ts"
import { messenger } from "./messenger/Send.ts"
import type { OutboundChannel } from "./OutboundChannel.ts"
import { whatsapp } from "./whatsapp/Send.ts"

export const outboundChannels = { whatsapp, messenger } satisfies Record<MessagingChannel, OutboundChannel>
