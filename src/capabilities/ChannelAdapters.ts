/**
 * The channels that customers write through. An adapter knows one provider: it verifies what the provider delivers, reads it
 * as our events, and sends. What holds for every channel (exactly one reply, order, receipts, who answers) is kept by the
 * use-cases: an adapter keeps no state.
 */
import * as Context from "effect/Context"
import type * as DateTime from "effect/DateTime"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { AttachmentType } from "../domain/channels/Attachment.ts"
import type { RateLimit } from "../domain/accounts/RateLimit.ts"
import type { Arrival, ContactAlias, DeliveryStatus, MessageContext } from "../domain/channels/Channel.ts"
import type { ChannelSetting } from "../domain/channels/HostChannel.ts"
import type { NotConfigured, Unauthorized, ValidationError } from "../domain/Errors.ts"
import type { OutboxId } from "../domain/Ids.ts"
import type { OutboundHttp } from "./OutboundHttp.ts"

/**
 * `Refused`: the provider has surely not taken it; `retryable` says whether it may by itself, at the earliest after
 * `retryAfter`. `Unknown`: the answer was lost, and it may have been taken. `message` names neither secret nor content.
 */
export class ChannelError extends Schema.TaggedError<ChannelError>()("ChannelError", {
  reason: Schema.Literal("Refused", "Unknown"),
  message: Schema.String,
  retryable: Schema.Boolean,
  retryAfter: Schema.optionalWith(Schema.DurationFromSelf, { exact: true })
}) {}

/** What is made of one delivery: events to be queued, statuses to be applied, and how many items were neither. */
export interface Normalized {
  readonly arrivals: ReadonlyArray<Arrival>
  readonly statuses: ReadonlyArray<DeliveryStatus>
  readonly ignored: number
}

/** An account at the provider, and what is needed to speak for it. */
export interface ChannelAccess {
  readonly externalId: string
  readonly accessToken: Redacted.Redacted
  /** Those that {@link ChannelForm.secrets} asks for, by name. */
  readonly secrets: Readonly<Record<string, Redacted.Redacted>>
  /** The settings of {@link ChannelForm.settings}, and the provider's data of the account, read at its activation. */
  readonly profile: Readonly<Record<string, string>>
}

/** What {@link ChannelAdapter.prove} has learnt of an account. */
export type ProvenAccount = Pick<ChannelAccess, "externalId" | "profile">

/** What a person is asked for to connect an account, besides its access token. */
export interface ChannelForm {
  /** The name of the account's id; null where the provider derives it from the token. */
  readonly account: string | null
  /** Further secrets: sealed, and never shown again. */
  readonly secrets: ReadonlyArray<{ readonly name: string; readonly label: string }>
  /** What is no secret: shown to whoever sees the channel. */
  readonly settings?: ReadonlyArray<ChannelSetting & { readonly name: string }>
}

/** A delivery as it came. */
export interface ChannelRequest {
  /** Undefined for a header that is missing. */
  readonly header: (name: string) => string | undefined
  readonly body: Uint8Array
  readonly now: DateTime.Utc
}

/** How the channel shows a type of file, and the most bytes that it takes of it. */
export interface CarriedFile {
  readonly as: "image" | "document"
  readonly maxBytes: number
}

export interface ChannelFile {
  readonly as: CarriedFile["as"]
  readonly name: string
  readonly mimeType: string
  readonly bytes: Uint8Array
  /** The result of {@link ChannelAdapter.upload}; null for an adapter without uploads. */
  readonly uploaded: string | null
}

export interface ChannelRecipient extends ChannelAccess {
  /** Of the contact, the newest of a kind first. */
  readonly aliases: ReadonlyArray<ContactAlias>
  /** What the adapter has said of the contact's last message; empty without any. */
  readonly context: MessageContext
}

export interface ChannelMessage {
  readonly body: string
  readonly author: "agent" | "human" | "system"
  /** Comes back in statuses and echoes, where the provider brings something back. */
  readonly outboxId: OutboxId
  readonly file: ChannelFile | null
}

/** Where a file that came with a message is read. */
export interface LocatedFile {
  readonly url: string
  readonly mime_type?: string | null | undefined
  /** Bytes. */
  readonly file_size?: number | null | undefined
}

export interface ChannelAdapter {
  /** Lower-case letters, digits and `-`: the channel's name in the interface and in addresses. */
  readonly name: string
  /** The channel's name for people. */
  readonly title: string
  readonly form: ChannelForm
  /**
   * `app`: one address for all accounts, `/api/webhooks/{name}`, and the events name theirs. `account`: each account has
   * an address of its own, `/api/webhooks/{name}/{externalId}`.
   */
  readonly webhook: "app" | "account"
  /** Time after the contact's last message in which the provider accepts replies; null without a limit. */
  readonly replyWindow: Duration.Duration | null

  /** Verifies that the provider sent it, before anything is decoded or parsed. `access` is null for `app`. */
  readonly verify: (
    request: ChannelRequest,
    access: ChannelAccess | null
  ) => Either.Either<void, NotConfigured | Unauthorized>
  /** Decodes a verified body in time linear in its length; without it the body is JSON. */
  readonly decode?: (request: ChannelRequest) => Effect.Effect<unknown, ValidationError>
  /** The answer to a verified body that only checks our address. */
  readonly challenge?: (body: unknown) => Option.Option<string>
  /** Reads a verified body of any form; never throws. `now` stands in for missing timestamps. */
  readonly normalize: (body: unknown, now: DateTime.Utc, access: ChannelAccess | null) => Normalized

  /** Asks the provider whether the token is the account's. An account that is not the token's is `Refused`. */
  readonly prove: (access: ChannelAccess) => Effect.Effect<ProvenAccount, ChannelError>
  /** Tells the provider where to deliver; absent where a person has to. */
  readonly connect?: (access: ChannelAccess, webhookUrl: string) => Effect.Effect<void, ChannelError>

  /** How many messages of one `sender` are answered; more are stored. No limit of its own without. */
  readonly senderLimit?: RateLimit

  /** Longest text of one message, in UTF-16 units. */
  readonly maxTextLength: number
  /** Longest text beside a file, in UTF-16 units; 0 where there is none. */
  readonly maxCaptionLength: number
  /** A model's Markdown as the channel shows it. */
  readonly shown: (text: string) => string
  /** Types that are missing are not taken by the provider. */
  readonly carries: Partial<Record<AttachmentType, CarriedFile>>
  /** Gives the provider a file that a message names afterwards; absent where the message brings it. */
  readonly upload?: (
    access: ChannelAccess,
    file: Omit<ChannelFile, "uploaded">
  ) => Effect.Effect<string, ChannelError>
  /** The provider's id of the message. */
  readonly send: (to: ChannelRecipient, message: ChannelMessage) => Effect.Effect<string, ChannelError>
  /** Marks the contact's last message as read, and shows that an answer is being written. */
  readonly seen: (to: ChannelRecipient, messageId: string) => Effect.Effect<void, ChannelError>

  readonly locate: (access: ChannelAccess, id: string) => Effect.Effect<LocatedFile, ChannelError>
  /** The bytes of a file that the provider itself keeps; none for one that is elsewhere. */
  readonly read: (
    access: ChannelAccess,
    url: string,
    maxBytes: number
  ) => Effect.Effect<Option.Option<Uint8Array>, ChannelError>
}

export class ChannelAdapters extends Context.Tag("capabilities/ChannelAdapters")<
  ChannelAdapters,
  {
    /** In the order of their registration. */
    readonly all: ReadonlyArray<ChannelAdapter>
    /** Null for a channel without a registered adapter. */
    readonly named: (name: string) => ChannelAdapter | null
  }
>() {}

/**
 * Channels that come beside ours; one of the same name takes the place of ours. Each is made when the service opens, and may
 * use the guarded client.
 */
export class OtherChannels extends Context.Reference<OtherChannels>()("capabilities/OtherChannels", {
  defaultValue: (): ReadonlyArray<Effect.Effect<ChannelAdapter, never, OutboundHttp>> => []
}) {}

const validName = /^[a-z][a-z0-9-]{0,31}$/
/** Names of conversations that come in otherwise. */
const reserved = new Set(["api", "widget", "test", "billing"])

export const isChannelName = (name: string): boolean => validName.test(name) && !reserved.has(name)

/** Of these registrations; a name that is invalid, reserved or taken is a defect. */
export const layerChannels = (all: ReadonlyArray<ChannelAdapter>): Layer.Layer<ChannelAdapters> =>
  Layer.effect(
    ChannelAdapters,
    Effect.gen(function* () {
      const byName = new Map<string, ChannelAdapter>()
      for (const adapter of all) {
        const { name } = adapter
        if (!isChannelName(name) || byName.has(name)) {
          return yield* Effect.dieMessage(`A channel cannot be called ${JSON.stringify(name)}.`)
        }
        byName.set(name, adapter)
      }
      return { all, named: (name: string) => byName.get(name) ?? null }
    })
  )
