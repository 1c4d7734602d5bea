/** An agent's account at a messaging provider, as the dashboard sets it up. The token never comes out. */
import * as Schema from "effect/Schema"
import { MessagingChannel } from "./Channel.ts"
import { AgentId, ChannelId } from "../Ids.ts"
import { Version } from "../Version.ts"

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })

/** A phone number id or a Page id: what the provider's paths are made of. */
const ExternalId = Schema.Trim.pipe(
  Schema.pattern(/^[A-Za-z0-9_.-]{1,128}$/, {
    message: () => "Expected the phone number id or the Page id: 1 to 128 letters, digits, _, - or ."
  }),
  Schema.filter((id) => !/^\.+$/.test(id) || "Expected the phone number id or the Page id")
)

/** Travels in a header: visible ASCII. */
const AccessToken = Schema.Redacted(
  Schema.Trim.pipe(
    Schema.maxLength(8_192),
    Schema.pattern(/^[\x21-\x7e]+$/, { message: () => "Expected the provider's access token" })
  )
)

/** What is shown of one. */
export const ChannelConfiguration = Schema.Struct({
  id: ChannelId,
  agentId: AgentId,
  channel: MessagingChannel,
  externalId: Schema.String,
  active: Schema.Boolean,
  version: Version,
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc
})
export type ChannelConfiguration = typeof ChannelConfiguration.Type

export const CreateChannel = Schema.Struct({
  channel: MessagingChannel,
  externalId: ExternalId,
  accessToken: AccessToken,
  active: Schema.optionalWith(Schema.Boolean, { exact: true, default: () => true })
})
export type CreateChannel = typeof CreateChannel.Type

/** What is left out stays. The provider is for good: conversations hang on it. */
export const PatchChannel = Schema.Struct({
  channel: optional(MessagingChannel),
  externalId: optional(ExternalId),
  accessToken: optional(AccessToken),
  active: optional(Schema.Boolean)
})
export type PatchChannel = typeof PatchChannel.Type
