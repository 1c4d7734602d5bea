/** An agent's accounts at messaging providers. */
import { infiniteQueryOptions } from "@tanstack/react-query"
import type { MessagingChannel } from "../../../domain/channels/Channel.ts"
import type {
  ChannelConfiguration,
  CreateChannel,
  PatchChannel
} from "../../../domain/channels/ChannelConfiguration.ts"
import type { ChannelPage } from "../../../http/hosted/channels/ChannelsApi.ts"
import { call, firstPage } from "./Client.ts"
import { membersOf } from "./membersOf.ts"

export type Provider = typeof MessagingChannel.Encoded
export const providers = membersOf<Provider>({ whatsapp: true, messenger: true })
export type Channel = typeof ChannelConfiguration.Encoded

export const channels = (agentId: string) =>
  infiniteQueryOptions({
    queryKey: ["agents", agentId, "channels"],
    queryFn: ({ pageParam, signal }) =>
      call<typeof ChannelPage.Encoded>("GET", `/api/agents/${agentId}/channels`, {
        query: { limit: 100, cursor: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor
  })

export const createChannel = (agentId: string, body: typeof CreateChannel.Encoded) =>
  call<unknown, typeof CreateChannel.Encoded>("POST", `/api/agents/${agentId}/channels`, { body })

export const setChannelActive = ({ id, version }: Channel, active: boolean) =>
  call<unknown, typeof PatchChannel.Encoded>("PATCH", `/api/channels/${id}`, { body: { active }, version })

export const deleteChannel = (id: string) => call("DELETE", `/api/channels/${id}`)
