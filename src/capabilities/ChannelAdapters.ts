/**
 * Messaging channels. An adapter knows one provider: it verifies the provider's deliveries, converts them to our
 * events, and sends messages. The use-cases implement what holds for every channel (exactly one reply, order, receipts,
 * who answers). An adapter keeps no state.
 */
import * as Context from "effect/Context"
import type * as DateTime from "effect/DateTime"
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
 * `Refused`: the provider has certainly not accepted it; `retryable` says whether a retry may succeed, at the earliest
 * after `retryAfter`. `Unknown`: the answer was lost, and it may have been accepted. `message` contains neither secrets
 * nor content.
 */
export class ChannelError extends Schema.TaggedError<ChannelError>()("ChannelError", {
  reason: Schema.Literal("Refused", "Unknown"),
  message: Schema.String,
  retryable: Schema.Boolean,
  retryAfter: Schema.optionalWith(Schema.DurationFromSelf, { exact: true })
}) {}

/** The error of a call that the provider did not carry out. */
export const channelRefusal = (message: string, retryable = false) =>
  new ChannelError({ reason: "Refused", message, retryable })

/** The content of one delivery: events to queue, statuses to apply, and the number of ignored items. */
export interface Normalized {
  readonly arrivals: ReadonlyArray<Arrival>
  readonly statuses: ReadonlyArray<DeliveryStatus>
  readonly ignored: number
}

/** An account at the provider, with its credentials. */
export interface ChannelAccess {
  readonly externalId: string
  readonly accessToken: Redacted.Redacted
  /** The secrets of {@link ChannelForm.secrets}, by name. */
  readonly secrets: Readonly<Record<string, Redacted.Redacted>>
  /** The settings of {@link ChannelForm.settings}, and the provider's data of the account, read at activation. */
  readonly profile: Readonly<Record<string, string>>
}

/** The account data that {@link ChannelAdapter.prove} returns. */
export type ProvenAccount = Pick<ChannelAccess, "externalId" | "profile">

/** Inputs for connecting an account, besides its access token. */
export interface ChannelForm {
  /** The label of the account's id; null if the provider derives it from the token. */
  readonly account: string | null
  /** Further secrets. They are sealed, and never returned. */
  readonly secrets: ReadonlyArray<{ readonly name: string; readonly label: string }>
  /** Settings that are not secret. They are visible with the channel. */
  readonly settings?: ReadonlyArray<ChannelSetting & { readonly name: string }>
}

/** A delivery as received. */
export interface ChannelRequest {
  /** Undefined for a missing header. */
  readonly header: (name: string) => string | undefined
  readonly body: Uint8Array
  readonly now: DateTime.Utc
}

/** How the channel sends a type of file, and its maximum size in bytes. */
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
  /** Aliases of the contact, the newest of each kind first. */
  readonly aliases: ReadonlyArray<ContactAlias>
  /** The adapter's context of the contact's last message; empty if there is none. */
  readonly context: MessageContext
}

export interface ChannelMessage {
  readonly body: string
  readonly author: "agent" | "human" | "system"
  /** Returned in statuses and echoes, if the provider supports it. */
  readonly outboxId: OutboxId
  readonly file: ChannelFile | null
}

/** Where a file of a message can be fetched. */
export interface LocatedFile {
  readonly url: string
  readonly mime_type?: string | null | undefined
  /** Bytes. */
  readonly file_size?: number | null | undefined
}

export interface ChannelAdapter {
  /** Lower-case letters, digits and `-`: the channel's name in the API and in addresses. */
  readonly name: string
  /** The channel's name for people. */
  readonly title: string
  readonly form: ChannelForm
  /**
   * `app`: one address for all accounts, `/api/webhooks/{name}`; events name their account. `account`: each account has
   * its own address, `/api/webhooks/{name}/{externalId}`.
   */
  readonly webhook: "app" | "account"

  /** Verifies that the provider sent it. Called before anything is decoded or parsed. `access` is null for `app`. */
  readonly verify: (
    request: ChannelRequest,
    access: ChannelAccess | null
  ) => Either.Either<void, NotConfigured | Unauthorized>
  /** Decodes a verified body in time linear in its length. Default: JSON. */
  readonly decode?: (request: ChannelRequest) => Effect.Effect<unknown, ValidationError>
  /** The answer to a verified body that only checks our address. */
  readonly challenge?: (body: unknown) => Option.Option<string>
  /** Converts a verified body of any form; never throws. `now` replaces missing timestamps. */
  readonly normalize: (body: unknown, now: DateTime.Utc, access: ChannelAccess | null) => Normalized

  /** Checks with the provider that the token belongs to the account. Otherwise it fails with `Refused`. */
  readonly prove: (access: ChannelAccess) => Effect.Effect<ProvenAccount, ChannelError>
  /** Registers our address at the provider. Absent if a person has to do it. */
  readonly connect?: (access: ChannelAccess, webhookUrl: string) => Effect.Effect<void, ChannelError>

  /** Rate limit for answers to one `sender`; further messages are only stored. Default: no limit. */
  readonly senderLimit?: RateLimit

  /** Maximum text length of one message, in UTF-16 units. */
  readonly maxTextLength: number
  /** Maximum caption length of a file, in UTF-16 units; 0 if captions are not supported. */
  readonly maxCaptionLength: number
  /** Converts a model's Markdown to the channel's format. */
  readonly formatText: (text: string) => string
  /** File types that the provider accepts. */
  readonly fileTypes: Partial<Record<AttachmentType, CarriedFile>>
  /** Uploads a file to the provider, for use in a message. Absent if the message itself contains the file. */
  readonly upload?: (
    access: ChannelAccess,
    file: Omit<ChannelFile, "uploaded">
  ) => Effect.Effect<string, ChannelError>
  /** Sends a message and returns the provider's id of it. */
  readonly send: (to: ChannelRecipient, message: ChannelMessage) => Effect.Effect<string, ChannelError>
  /** Marks the contact's last message as read, and shows a typing indicator. */
  readonly markSeen: (to: ChannelRecipient, messageId: string) => Effect.Effect<void, ChannelError>

  readonly locate: (access: ChannelAccess, id: string) => Effect.Effect<LocatedFile, ChannelError>
  /** The bytes of a file at the provider; none for a file elsewhere. */
  readonly read: (
    access: ChannelAccess,
    url: string,
    maxBytes: number
  ) => Effect.Effect<Option.Option<Uint8Array>, ChannelError>
}

export class ChannelAdapters extends Context.Tag("capabilities/ChannelAdapters")<
  ChannelAdapters,
  {
    /** In the order of registration. */
    readonly all: ReadonlyArray<ChannelAdapter>
    /** Null for a channel without a registered adapter. */
    readonly named: (name: string) => ChannelAdapter | null
  }
>() {}

/**
 * Additional channels. One with the name of a built-in channel replaces it. Each is created when the service opens, and
 * may use the guarded HTTP client.
 */
export class OtherChannels extends Context.Reference<OtherChannels>()("capabilities/OtherChannels", {
  defaultValue: (): ReadonlyArray<Effect.Effect<ChannelAdapter, never, OutboundHttp>> => []
}) {}

const validName = /^[a-z][a-z0-9-]{0,31}$/
/** Names that other origins of conversations use. */
const reserved = new Set(["api", "widget", "test", "billing"])

export const isChannelName = (name: string): boolean => validName.test(name) && !reserved.has(name)

/** The adapters of these registrations. An invalid, reserved or duplicate name is a defect. */
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
