/** Channels of messaging providers: settings, deliveries in and messages out. */
import * as Layer from "effect/Layer"
import { ChannelConversationStore } from "../../store/channels/ChannelConversations.ts"
import { ChannelStore } from "../../store/channels/Channels.ts"
import { ContactStore } from "../../store/channels/Contacts.ts"
import { OutboxStore } from "../../store/channels/Outbox.ts"
import { UnansweredStore } from "../../store/channels/Unanswered.ts"
import { ChannelProof } from "../../usecases/channels/ChannelProof.ts"
import { Channels } from "../../usecases/channels/Channels.ts"
import { WebhookIngress } from "../../usecases/channels/WebhookIngress.ts"
import { RealtimeFeed } from "../../usecases/conversations/RealtimeFeed.ts"
import * as Outbound from "../../usecases/channels/Outbound.ts"

export const stores = Layer.mergeAll(
  ChannelConversationStore.Default,
  ChannelStore.Default,
  ContactStore.Default,
  OutboxStore.Default,
  UnansweredStore.Default
)

/** Also used by configurations of agents. */
export const channels = Channels.Default.pipe(Layer.provide(ChannelProof.Default))

/** Outgoing channel messages. */
export const outbound = Outbound.layerPorts.pipe(
  Layer.provideMerge(Outbound.Outbound.Default),
  Layer.provide(RealtimeFeed.Default)
)

export const layer = Layer.merge(channels, WebhookIngress.Default.pipe(Layer.provide(outbound)))
