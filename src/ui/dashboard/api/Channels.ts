/** An agent's accounts at messaging providers. */
import type {
  ChannelConfiguration,
  CreateChannel,
  PatchChannel
} from "../../../domain/channels/ChannelConfiguration.ts"
import type { ChannelPage } from "../../../http/hosted/channels/ChannelsApi.ts"
import { call, pagesOf } from "./Client.ts"

export const providers = ["whatsapp", "messenger", "telegram", "slack", "email"] as const
export type Provider = (typeof providers)[number]
/** The service may have custom channels, which have only their own name. */
export const isProvider = (name: string): name is Provider => providers.some((one) => one === name)
/** True for providers whose account id the user enters. Other providers return it for the token. */
export const hasEnteredAccountId = (provider: Provider): provider is "whatsapp" | "messenger" =>
  provider === "whatsapp" || provider === "messenger"
/** Senders that an e-mail account answers. The first is the default. */
export const senderRules = ["plausible", "verified", "any"] as const
export type SenderRule = (typeof senderRules)[number]

export type Channel = typeof ChannelConfiguration.Encoded

export const channels = (agentId: string) =>
  pagesOf<typeof ChannelPage.Encoded>(["agents", agentId, "channels"], `/api/agents/${agentId}/channels`, {
    limit: 100
  })

export const createChannel = (agentId: string, body: typeof CreateChannel.Encoded) =>
  call<unknown, typeof CreateChannel.Encoded>("POST", `/api/agents/${agentId}/channels`, { body })

export const setChannelActive = ({ id, version }: Channel, active: boolean) =>
  call<unknown, typeof PatchChannel.Encoded>("PATCH", `/api/channels/${id}`, { body: { active }, version })

export const setReadableSources = (
  { id, version }: Channel,
  body: Pick<typeof PatchChannel.Encoded, "sourceScope">
) => call<unknown, typeof PatchChannel.Encoded>("PATCH", `/api/channels/${id}`, { body, version })

/** The service checks the new token at the provider before it stores it. */
export const replaceToken = ({ id, version }: Channel, accessToken: string) =>
  call<unknown, typeof PatchChannel.Encoded>("PATCH", `/api/channels/${id}`, {
    body: { accessToken },
    version
  })

export const deleteChannel = (id: string) => call("DELETE", `/api/channels/${id}`)
