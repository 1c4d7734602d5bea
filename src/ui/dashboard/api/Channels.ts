/** An agent's accounts at messaging providers. */
import { infiniteQueryOptions } from "@tanstack/react-query"
import { call, firstPage } from "./Client.ts"

export const providers = ["whatsapp", "messenger"] as const
export type Provider = (typeof providers)[number]

export interface Channel {
  readonly id: string
  readonly channel: Provider
  readonly externalId: string
  readonly active: boolean
  readonly version: number
  readonly createdAt: string
}

interface ChannelPage {
  readonly channels: ReadonlyArray<Channel>
  readonly nextCursor: string | null
}

export const channels = (agentId: string) =>
  infiniteQueryOptions({
    queryKey: ["agents", agentId, "channels"],
    queryFn: ({ pageParam, signal }) =>
      call<ChannelPage>("GET", `/api/agents/${agentId}/channels`, {
        query: { limit: 100, cursor: pageParam },
        signal
      }),
    initialPageParam: firstPage(),
    getNextPageParam: ({ nextCursor }) => nextCursor
  })

interface NewChannel {
  readonly channel: Provider
  readonly externalId: string
  readonly accessToken: string
}

export const createChannel = (agentId: string, body: NewChannel) =>
  call("POST", `/api/agents/${agentId}/channels`, { body })

export const setChannelActive = ({ id, version }: Channel, active: boolean) =>
  call("PATCH", `/api/channels/${id}`, { body: { active }, version })

export const deleteChannel = (id: string) => call("DELETE", `/api/channels/${id}`)
