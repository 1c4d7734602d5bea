/** An agent's accounts at messaging providers. */
import { queryOptions } from "@tanstack/react-query"
import { call } from "./Client.ts"

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

export const channels = (agentId: string) =>
  queryOptions({
    queryKey: ["agents", agentId, "channels"],
    queryFn: ({ signal }) =>
      call<{ readonly channels: ReadonlyArray<Channel> }>("GET", `/api/agents/${agentId}/channels`, {
        signal
      }).then((data) => data.channels)
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
