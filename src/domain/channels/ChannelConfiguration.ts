/** An agent's account at a messaging provider, as the dashboard configures it. The token is never returned. */
import * as Schema from "effect/Schema"
import { optional } from "../Optional.ts"
import { MessagingChannel } from "./Channel.ts"
import { AgentId, ChannelId } from "../Ids.ts"
import { openScope, SourceScope } from "../knowledge/SourceScope.ts"
import { Version } from "../Version.ts"

/** The account's id at the provider, such as a phone number id or a Page id. The provider's paths contain it. */
export const ExternalId = Schema.Trim.pipe(
  Schema.pattern(/^[A-Za-z0-9_.-]{1,128}$/, {
    message: () => "Expected the account's id at the provider: 1 to 128 letters, digits, _, - or ."
  }),
  Schema.filter((id) => !/^\.+$/.test(id) || "Expected the account's id at the provider")
)

/** Visible ASCII, because it is sent in a header. */
const SecretText = Schema.Trim.pipe(
  Schema.maxLength(8_192),
  Schema.pattern(/^[\x21-\x7e]+$/, { message: () => "Expected the provider's secret" })
)
const AccessToken = Schema.Redacted(SecretText)

/** Maximum number of secrets of a channel, besides the access token. */
const maxSecrets = 8
/** Secrets by their names in the channel's form. */
const Secrets = Schema.Record({
  key: Schema.String.pipe(Schema.pattern(/^[A-Za-z][A-Za-z0-9]{0,31}$/)),
  value: AccessToken
}).pipe(
  Schema.filter(
    (secrets) => Object.keys(secrets).length <= maxSecrets || `Expected at most ${maxSecrets} secrets`
  )
)

/** Settings by their names in the channel's form. */
const Settings = Schema.Record({
  key: Schema.String.pipe(Schema.pattern(/^[A-Za-z][A-Za-z0-9]{0,31}$/)),
  value: Schema.Trim.pipe(Schema.maxLength(1_000), Schema.pattern(/^\P{Cc}*$/u))
}).pipe(Schema.filter((given) => Object.keys(given).length <= maxSecrets || `Expected at most ${maxSecrets}`))

/** Sources that answers on the channel may use; null for every source of the agent. */
const ReadableSources = Schema.NullOr(SourceScope)

/** A channel in answers. */
export const ChannelConfiguration = Schema.Struct({
  id: ChannelId,
  agentId: AgentId,
  channel: MessagingChannel,
  externalId: Schema.String,
  /** The address to which the provider has to deliver. */
  webhookUrl: Schema.String,
  /** The settings that the channel asks for, if any. */
  settings: Schema.Record({ key: Schema.String, value: Schema.String }),
  sourceScope: ReadableSources,
  active: Schema.Boolean,
  version: Version,
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc
})
export type ChannelConfiguration = typeof ChannelConfiguration.Type

export const CreateChannel = Schema.Struct({
  channel: MessagingChannel,
  /** Omitted where the provider returns the id for the token. */
  externalId: optional(ExternalId),
  accessToken: AccessToken,
  secrets: Schema.optionalWith(Secrets, { exact: true, default: () => ({}) }),
  settings: Schema.optionalWith(Settings, { exact: true, default: () => ({}) }),
  /** Anyone may write on a channel, so sources with labels are left out by default. */
  sourceScope: Schema.optionalWith(ReadableSources, { exact: true, default: () => openScope }),
  active: Schema.optionalWith(Schema.Boolean, { exact: true, default: () => true })
})
export type CreateChannel = typeof CreateChannel.Type

/**
 * The name of an account in a configuration file: `whatsapp:106540352242922`, the channel and the account's id there.
 * `telegram` alone is enough where the agent has one account of the channel and the provider returns its id.
 */
export const ChannelName = Schema.String.pipe(
  Schema.pattern(/^[a-z][a-z0-9-]{0,31}(?::[A-Za-z0-9_.-]{1,128})?$/)
)

/** The channel and the account that a `ChannelName` names. */
export const accountOfName = (name: string): { readonly channel: string; readonly externalId?: string } => {
  const [channel = "", externalId] = name.split(":", 2)
  return externalId === undefined ? { channel } : { channel, externalId }
}

/** A channel in a configuration file. Omitted secrets stay; a new account needs all that its channel asks for. */
export const ConfiguredChannel = Schema.Struct({
  accessToken: optional(AccessToken),
  secrets: optional(Secrets),
  /** All settings; omitted ones are removed. */
  settings: optional(Settings),
  /** Default: only sources without labels. */
  sourceScope: optional(ReadableSources),
  /** Default: true. */
  active: optional(Schema.Boolean)
})
export type ConfiguredChannel = typeof ConfiguredChannel.Type

/** Omitted fields stay. The provider cannot be changed, because conversations refer to it. */
export const PatchChannel = Schema.Struct({
  channel: optional(MessagingChannel),
  externalId: optional(ExternalId),
  accessToken: optional(AccessToken),
  /** Omitted ones stay. */
  secrets: optional(Secrets),
  /** Omitted ones stay; an empty one is removed. */
  settings: optional(Settings),
  sourceScope: optional(ReadableSources),
  active: optional(Schema.Boolean)
})
export type PatchChannel = typeof PatchChannel.Type
