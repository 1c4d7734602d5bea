/** Configuration of messaging channels. */
import * as Context from "effect/Context"
import type * as Redacted from "effect/Redacted"

export class ChannelSettings extends Context.Tag("usecases/channels/ChannelSettings")<
  ChannelSettings,
  {
    /** `CHANNEL_VERIFY_TOKEN`: the token that a provider sends when it subscribes. Null: subscriptions are refused. */
    readonly verifyToken: Redacted.Redacted | null
    /**
     * `CHANNEL_APP_SECRET`: the secret of WhatsApp's and Messenger's signatures. Null: all their deliveries are
     * refused.
     */
    readonly appSecret: Redacted.Redacted | null
    /** `CHANNEL_APP_ID`: our app at the provider. An echo with this id is a message of ours. Null: unknown. */
    readonly appId: string | null
    /** `GRAPH_API_URL`: address for replies on WhatsApp and Messenger. */
    readonly graphUrl: string
    /** `TELEGRAM_API_URL`: address of the Telegram Bot API. */
    readonly telegramUrl: string
    /** `SLACK_API_URL`: address of the Slack Web API. */
    readonly slackUrl: string
    /** `APP_URL`: address to which providers send deliveries. */
    readonly appUrl: string
  }
>() {}
