/** Channels provided by the host. */
import type {
  ChannelAccount,
  ChannelCall,
  ChannelDelivery,
  ChannelRefusal,
  ChannelSetting,
  HostAccount,
  HostChannel,
  Received,
  SentMessage
} from "../domain/channels/HostChannel.ts"
import { SpokeError } from "./Failure.ts"

type Settings = Readonly<Record<string, ChannelSetting>>
type Secrets = Readonly<Record<string, { readonly label: string }>>

/** The account that the functions of a channel receive. Settings that are `optional` may be missing. */
export type ChannelAccountOf<S extends Settings, K extends Secrets> = ChannelAccount<
  {
    readonly [N in keyof S]: S[N] extends { readonly optional: true } ? string | undefined : string
  },
  { readonly [N in keyof K]: string }
>

export interface ChannelOptions<S extends Settings, K extends Secrets> {
  /** The channel's name for people. */
  readonly title: string
  /** Label of the account's id, where a person enters it. Without it, `prove` returns the id. */
  readonly account?: string
  /** Settings of an account besides its access token, by name. */
  readonly settings?: S
  /** Further secrets. They are sealed, and never returned. */
  readonly secrets?: K
  /** Maximum text length of one message, in UTF-16 units; longer replies are split. Default: 4,000. */
  readonly maxTextLength?: number
  /** Whether the provider has sent it. A thrown error counts as false. */
  readonly verify: (delivery: ChannelDelivery, account: ChannelAccountOf<S, K>) => boolean
  /** Reads the JSON of a verified delivery. */
  readonly receive: (body: unknown, account: ChannelAccountOf<S, K>) => Received
  /**
   * Asks the provider for the token's account, before it becomes active. Returns its id: letters, digits, `_`, `.` and
   * `-`.
   */
  readonly prove: (
    account: ChannelAccountOf<S, K>,
    call: ChannelCall
  ) => Promise<{ readonly account: string } | ChannelRefusal>
  /**
   * Sends one message and returns the provider's id of it. Return `refused` if it was certainly not accepted. After a
   * thrown error the outcome is unknown: the message is sent once more and marked.
   */
  readonly send: (
    account: ChannelAccountOf<S, K>,
    message: SentMessage,
    call: ChannelCall
  ) => Promise<{ readonly id: string } | ChannelRefusal>
}

/** For `createSpoke({ channels })`; created by {@link channel}. */
export type Channel = HostChannel

const fieldName = /^[A-Za-z][A-Za-z0-9]{0,31}$/u
const maxFields = 8

const hasInvalidNames = (fields: Readonly<Record<string, unknown>>) =>
  Object.keys(fields).length > maxFields || Object.keys(fields).some((name) => !fieldName.test(name))

/** Creates a channel from functions of the host. An agent's channels name it. Throws a `SpokeError`. */
export const channel = <
  const S extends Settings = Readonly<Record<never, ChannelSetting>>,
  const K extends Secrets = Readonly<Record<never, { readonly label: string }>>
>(
  options: ChannelOptions<S, K>
): Channel => {
  const { prove, receive, secrets, send, settings, verify, ...rest } = options
  if (hasInvalidNames(settings ?? {}) || hasInvalidNames(secrets ?? {})) {
    throw new SpokeError({
      code: "INVALID_CONFIG",
      message:
        "A channel has at most 8 settings and 8 secrets, each named by a letter, then up to 31 letters or digits."
    })
  }
  // Stored accounts were validated against these.
  const isComplete = (account: HostAccount): account is ChannelAccountOf<S, K> & HostAccount =>
    Object.entries(settings ?? {}).every(
      ([name, { optional }]) => optional === true || account.settings[name] !== undefined
    ) && Object.keys(secrets ?? {}).every((name) => account.secrets[name] !== undefined)
  const invalidSettings = () =>
    new SpokeError({ code: "INVALID_CONFIG", message: "The settings do not fit." })
  return {
    ...rest,
    ...(settings === undefined ? {} : { settings }),
    ...(secrets === undefined ? {} : { secrets }),
    verify: (delivery, account) => isComplete(account) && verify(delivery, account),
    receive: (body, account) => (isComplete(account) ? receive(body, account) : {}),
    prove: (account, call) =>
      isComplete(account) ? prove(account, call) : Promise.reject(invalidSettings()),
    send: (account, message, call) =>
      isComplete(account) ? send(account, message, call) : Promise.reject(invalidSettings())
  }
}
