/** An agent's account at a messaging provider, as the dashboard sets it up. The token never comes out. */
import * as Schema from "effect/Schema"
import { MessagingChannel } from "./Channel.ts"
import { AgentId, ChannelId } from "../Ids.ts"
import { Version } from "../Version.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** The account's id at the provider, such as a phone number id or a Page id: what the provider's paths are made of. */
export const ExternalId = Schema.Trim.pipe(
  Schema.pattern(/^[A-Za-z0-9_.-]{1,128}$/, {
    message: () => "Expected the account's id at the provider: 1 to 128 letters, digits, _, - or ."
  }),
  Schema.filter((id) => !/^\.+$/.test(id) || "Expected the account's id at the provider")
)

/** Travels in a header: visible ASCII. */
const SecretText = Schema.Trim.pipe(
  Schema.maxLength(8_192),
  Schema.pattern(/^[\x21-\x7e]+$/, { message: () => "Expected the provider's secret" })
)
const AccessToken = Schema.Redacted(SecretText)

/** Most secrets that a channel asks for, besides the access token. */
const maxSecrets = 8
/** By the names that the channel's form gives them. */
const Secrets = Schema.Record({
  key: Schema.String.pipe(Schema.pattern(/^[A-Za-z][A-Za-z0-9]{0,31}$/)),
  value: AccessToken
}).pipe(
  Schema.filter(
    (secrets) => Object.keys(secrets).length <= maxSecrets || `Expected at most ${maxSecrets} secrets`
  )
)

/** By the names that the channel's form gives them. */
const Settings = Schema.Record({
  key: Schema.String.pipe(Schema.pattern(/^[A-Za-z][A-Za-z0-9]{0,31}$/)),
  value: Schema.Trim.pipe(Schema.maxLength(1_000), Schema.pattern(/^\P{Cc}*$/u))
}).pipe(Schema.filter((given) => Object.keys(given).length <= maxSecrets || `Expected at most ${maxSecrets}`))

/** What is shown of one. */
export const ChannelConfiguration = Schema.Struct({
  id: ChannelId,
  agentId: AgentId,
  channel: MessagingChannel,
  externalId: Schema.String,
  /** The address to which the provider has to deliver. */
  webhookUrl: Schema.String,
  /** Those that the channel asks for; empty where it asks for none. */
  settings: Schema.Record({ key: Schema.String, value: Schema.String }),
  active: Schema.Boolean,
  version: Version,
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc
})
export type ChannelConfiguration = typeof ChannelConfiguration.Type

export const CreateChannel = Schema.Struct({
  channel: MessagingChannel,
  /** Left out where the provider tells it of the token. */
  externalId: optional(ExternalId),
  accessToken: AccessToken,
  secrets: Schema.optionalWith(Secrets, { exact: true, default: () => ({}) }),
  settings: Schema.optionalWith(Settings, { exact: true, default: () => ({}) }),
  active: Schema.optionalWith(Schema.Boolean, { exact: true, default: () => true })
})
export type CreateChannel = typeof CreateChannel.Type

/**
 * How a file names an account: `whatsapp:106540352242922`, the channel and the account's id there; `telegram` where the agent has
 * one account of the channel, and the provider tells its id.
 */
export const ChannelName = Schema.String.pipe(
  Schema.pattern(/^[a-z][a-z0-9-]{0,31}(?::[A-Za-z0-9_.-]{1,128})?$/)
)

/** What a `ChannelName` names. */
export const accountOfName = (name: string): { readonly channel: string; readonly externalId?: string } => {
  const place = name.indexOf(":")
  return place < 0 ? { channel: name } : { channel: name.slice(0, place), externalId: name.slice(place + 1) }
}

/** As a file of agents says it. Secrets that are left out stay; a new account needs those that its channel asks for. */
export const ConfiguredChannel = Schema.Struct({
  accessToken: optional(AccessToken),
  secrets: optional(Secrets),
  /** All of them: one that is left out is taken away. */
  settings: optional(Settings),
  /** True where it is left out. */
  active: optional(Schema.Boolean)
})
export type ConfiguredChannel = typeof ConfiguredChannel.Type

/** What is left out stays. The provider is for good: conversations hang on it. */
export const PatchChannel = Schema.Struct({
  channel: optional(MessagingChannel),
  externalId: optional(ExternalId),
  accessToken: optional(AccessToken),
  /** Those that are left out stay. */
  secrets: optional(Secrets),
  /** Those that are left out stay; an empty one is taken away. */
  settings: optional(Settings),
  active: optional(Schema.Boolean)
})
export type PatchChannel = typeof PatchChannel.Type
