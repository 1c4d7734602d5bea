/** A channel that the library's host provides and that runs in this process. */

/** A setting of an account, besides its access token. */
export interface ChannelSetting {
  readonly label: string
  readonly optional?: boolean
  /** Allowed values. Without it, any text is allowed. */
  readonly choices?: ReadonlyArray<string>
  /** Whether the access token is sent to this address. If it changes, the token must be given again. */
  readonly address?: boolean
}

/** A configured account of the channel. */
export interface ChannelAccount<Settings, Secrets> {
  /** The id as entered, or as returned by `prove`; empty before that. */
  readonly id: string
  readonly token: string
  readonly settings: Settings
  readonly secrets: Secrets
}

/** A delivery as received. */
export interface ChannelDelivery {
  /** Undefined for a missing header. */
  readonly header: (name: string) => string | undefined
  readonly body: Uint8Array
}

export interface ReceivedFile {
  /** Fetched under the rules for outbound addresses. */
  readonly url: string
  readonly name?: string
  readonly mimeType?: string
}

/** A message of a customer. */
export interface ReceivedMessage {
  /** Unique in the account. A message with a known id is a repeat. */
  readonly id: string
  /** The sender, up to 256 characters. Replies go there, and all messages of one sender form one conversation. */
  readonly from: string
  readonly name?: string
  /** May be empty if there are files. */
  readonly text: string
  readonly files?: ReadonlyArray<ReceivedFile>
  /** Milliseconds since 1970; default: now. A message older than 15 minutes is not answered. */
  readonly timestamp?: number
}

/** Delivery status of an outgoing message, by the id that `send` returned. */
export interface ReceivedStatus {
  readonly id: string
  readonly delivery: "sent" | "delivered" | "read" | "failed"
  readonly error?: string
}

export interface Received {
  readonly messages?: ReadonlyArray<ReceivedMessage>
  readonly statuses?: ReadonlyArray<ReceivedStatus>
}

export interface ChannelFetchRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Maximum size of the answer in bytes; default: 1 MiB. */
  readonly maxBytes?: number
}

export interface ChannelFetchResponse {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: () => string
}

export interface ChannelCall {
  /** Sends one request under the service's rules for addresses, time and size. It resolves for every HTTP status. */
  readonly fetch: (url: string, request?: ChannelFetchRequest) => Promise<ChannelFetchResponse>
  /** Aborted after 20 seconds. */
  readonly signal: AbortSignal
}

/** The provider has certainly not accepted the message. */
export interface ChannelRefusal {
  /** The reason, shown to the team. It must not contain secrets. */
  readonly refused: string
  /** Whether another attempt may succeed; default: false. */
  readonly retryable?: boolean
  /** Number of seconds that the provider asks to wait. */
  readonly retryAfter?: number
}

export interface SentMessage {
  /** `from` of the message that is answered. */
  readonly to: string
  /** Plain text, at most `maxTextLength` UTF-16 units. */
  readonly text: string
  /** Stays the same if the message is sent again because an answer was lost. */
  readonly id: string
  readonly author: "agent" | "human" | "system"
}

export interface HostChannel {
  readonly title: string
  /** Label of the account's id, where a person enters it. Without it, `prove` returns the id. */
  readonly account?: string
  readonly settings?: Readonly<Record<string, ChannelSetting>>
  readonly secrets?: Readonly<Record<string, { readonly label: string }>>
  /** Default: 4,000. */
  readonly maxTextLength?: number
  readonly verify: (delivery: ChannelDelivery, account: HostAccount) => boolean
  readonly receive: (body: unknown, account: HostAccount) => Received
  readonly prove: (
    account: HostAccount,
    call: ChannelCall
  ) => Promise<{ readonly account: string } | ChannelRefusal>
  readonly send: (
    account: HostAccount,
    message: SentMessage,
    call: ChannelCall
  ) => Promise<{ readonly id: string } | ChannelRefusal>
}

export type HostAccount = ChannelAccount<
  Readonly<Record<string, string | undefined>>,
  Readonly<Record<string, string>>
>
