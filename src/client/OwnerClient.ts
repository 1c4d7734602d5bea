/** Operations of the tenant's owner: manage agents, their keys and channels. */
import type { Agent, CreateAgent, PatchAgent } from "../domain/agents/Agent.ts"
import type { ApiKey, CreateAgentKey, PatchKey } from "../domain/accounts/ApiKey.ts"
import type {
  ChannelConfiguration,
  CreateChannel,
  PatchChannel
} from "../domain/channels/ChannelConfiguration.ts"
import type { ChannelPage } from "../http/hosted/channels/ChannelsApi.ts"
import type { AgentPage, OneAgent } from "../http/hosted/agents/AgentsApi.ts"
import type { KeyPage, MadeKey } from "../http/hosted/accounts/KeysApi.ts"
import type { PageOptions } from "./AgentClient.ts"
import type { Route } from "./Routes.ts"
import type { CallOptions, Transport } from "./Transport.ts"

export type AgentInput = typeof CreateAgent.Encoded
export type AgentView = typeof Agent.Encoded
export type KeyInput = typeof CreateAgentKey.Encoded
export type KeyView = typeof ApiKey.Encoded
export type ChannelInput = typeof CreateChannel.Encoded
export type ChannelView = typeof ChannelConfiguration.Encoded

const route = (method: string, path: string): Route => ({ method, path })

const agents = {
  list: route("GET", "/api/agents"),
  create: route("POST", "/api/agents"),
  get: route("GET", "/api/agents/:id"),
  patch: route("PATCH", "/api/agents/:id"),
  remove: route("DELETE", "/api/agents/:id")
}

const keys = {
  list: route("GET", "/api/agents/:id/keys"),
  create: route("POST", "/api/agents/:id/keys"),
  patch: route("PATCH", "/api/keys/:id"),
  remove: route("DELETE", "/api/keys/:id")
}

const channels = {
  list: route("GET", "/api/agents/:id/channels"),
  create: route("POST", "/api/agents/:id/channels"),
  patch: route("PATCH", "/api/channels/:id"),
  remove: route("DELETE", "/api/channels/:id")
}

const agentOf = async (answer: Promise<typeof OneAgent.Encoded>) => (await answer).agent

const agentsOf = ({ call }: Transport) => ({
  create: (agent: AgentInput, options?: CallOptions) =>
    agentOf(call(agents.create, { json: agent }, options)),
  /** Newest first. */
  list: (query: PageOptions = {}, options?: CallOptions) =>
    call<typeof AgentPage.Encoded>(agents.list, { query: { ...query } }, options),
  get: (id: string, options?: CallOptions) => agentOf(call(agents.get, { path: { id } }, options)),
  /** Omitted fields stay; `null` clears a field. */
  update: (id: string, changes: typeof PatchAgent.Encoded, options?: CallOptions) =>
    agentOf(call(agents.patch, { path: { id }, json: changes }, options)),
  /** Deletes the agent with everything that belongs to it. */
  delete: (id: string, options?: CallOptions) =>
    call<{ readonly id: string; readonly deleted: true }>(agents.remove, { path: { id } }, options)
})

const keysOf =
  ({ call }: Transport) =>
  (agentId: string) => ({
    /** The secret is returned only here. */
    create: (key: KeyInput, options?: CallOptions) =>
      call<typeof MadeKey.Encoded>(keys.create, { path: { id: agentId }, json: key }, options),
    list: (query: PageOptions = {}, options?: CallOptions) =>
      call<typeof KeyPage.Encoded>(keys.list, { path: { id: agentId }, query: { ...query } }, options),
    /** `active: false` disables the key until it is `true` again. */
    update: async (id: string, changes: typeof PatchKey.Encoded, options?: CallOptions): Promise<KeyView> => {
      const { key } = await call<{ readonly key: KeyView }>(
        keys.patch,
        { path: { id }, json: changes },
        options
      )
      return key
    },
    /** Permanent. It takes effect in every process within a second. */
    revoke: (id: string, options?: CallOptions) =>
      call<{ readonly id: string; readonly deleted: true }>(keys.remove, { path: { id } }, options)
  })

interface OneChannel {
  readonly channel: ChannelView
}

const channelsOf =
  ({ call }: Transport) =>
  (agentId: string) => ({
    /** Checks with the provider that the token belongs to the account. */
    create: async (channel: ChannelInput, options?: CallOptions): Promise<ChannelView> => {
      const path = { id: agentId }
      return (await call<OneChannel>(channels.create, { path, json: channel }, options)).channel
    },
    /** Oldest first. */
    list: (query: PageOptions = {}, options?: CallOptions) =>
      call<typeof ChannelPage.Encoded>(
        channels.list,
        { path: { id: agentId }, query: { ...query } },
        options
      ),
    /** Omitted fields stay. */
    update: async (
      id: string,
      changes: typeof PatchChannel.Encoded,
      options?: CallOptions
    ): Promise<ChannelView> =>
      (await call<OneChannel>(channels.patch, { path: { id }, json: changes }, options)).channel,
    /** Its conversations are kept. */
    delete: (id: string, options?: CallOptions) =>
      call<{ readonly id: string; readonly deleted: true }>(channels.remove, { path: { id } }, options)
  })

export const make = (transport: Transport) => ({
  agents: agentsOf(transport),
  keysOf: keysOf(transport),
  channelsOf: channelsOf(transport)
})

export type AgentsClient = ReturnType<typeof agentsOf>
export type KeysClient = ReturnType<ReturnType<typeof keysOf>>
export type ChannelsClient = ReturnType<ReturnType<typeof channelsOf>>
