/** A channel that the host of the library brings along and that runs in this process. */

/** One value that an account is asked for, besides its access token. */
export interface ChannelSetting {
  readonly label: string
  readonly optional?: boolean
  /** The values that it may have; any text without. */
  readonly choices?: ReadonlyArray<string>
}

/** An account of the channel, as it was set up. */
export interface ChannelAccount<Settings, Secrets> {
  /** The id that it was given, or that `prove` has told; empty before that. */
  readonly id: string
  readonly token: string
  readonly settings: Settings
  readonly secrets: Secrets
}

/** A delivery as it came. */
export interface ChannelDelivery {
  /** Undefined for a header that is missing. */
  readonly header: (name: string) => string | undefined
  readonly body: Uint8Array
}

export interface ReceivedFile {
  /** Fetched by the rules for outbound addresses. */
  readonly url: string
  readonly name?: string
  readonly mimeType?: string
}

/** What a customer wrote. */
export interface ReceivedMessage {
  /** Unique in the account: a message of the same id is a repeat. */
  readonly id: string
  /** Who wrote, up to 256 characters: replies go there, and all that they write is one conversation. */
  readonly from: string
  readonly name?: string
  /** May be empty where there are files. */
  readonly text: string
  readonly files?: ReadonlyArray<ReceivedFile>
  /** Milliseconds since 1970; now by default. One of more than 15 minutes ago is not answered. */
  readonly timestamp?: number
}

/** How far a message of ours has come, by the id that `send` answered. */
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
  /** Largest answer in bytes; 1 MiB by default. */
  readonly maxBytes?: number
}

export interface ChannelFetchResponse {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: () => string
}

export interface ChannelCall {
  /** Asks once, within the service's rules for addresses, time and size; every status is an answer. */
  readonly fetch: (url: string, request?: ChannelFetchRequest) => Promise<ChannelFetchResponse>
  /** Aborted when the call has taken 20 seconds. */
  readonly signal: AbortSignal
}

/** The provider has surely not taken it. */
export interface ChannelRefusal {
  /** Why, for the team; name no secret. */
  readonly refused: string
  /** True where another attempt may succeed; false by default. */
  readonly retryable?: boolean
  /** Seconds that the provider asks to wait. */
  readonly retryAfter?: number
}

export interface SentMessage {
  /** `from` of what is answered. */
  readonly to: string
  /** Plain text, at most `maxTextLength` UTF-16 units. */
  readonly text: string
  /** The same for the same message if it is sent once more, because an answer was lost. */
  readonly id: string
  readonly author: "agent" | "human" | "system"
}

export interface HostChannel {
  readonly title: string
  /** What an account's id is called, where a person gives it; without, `prove` tells it. */
  readonly account?: string
  readonly settings?: Readonly<Record<string, ChannelSetting>>
  readonly secrets?: Readonly<Record<string, { readonly label: string }>>
  /** 4,000 by default. */
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
