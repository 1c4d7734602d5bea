/** Configuration of messaging channels. */
import * as Context from "effect/Context"
import type * as Redacted from "effect/Redacted"

export class ChannelSettings extends Context.Tag("usecases/channels/ChannelSettings")<
  ChannelSettings,
  {
    /** `CHANNEL_VERIFY_TOKEN`: what a provider repeats when it subscribes. Null: no provider can subscribe. */
    readonly verifyToken: Redacted.Redacted | null
    /** `CHANNEL_APP_SECRET`: what WhatsApp and Messenger sign deliveries with. Null: none is accepted. */
    readonly appSecret: Redacted.Redacted | null
    /** `CHANNEL_APP_ID`: our app at the provider; an echo that names it repeats a message of ours. Null: unknown. */
    readonly appId: string | null
    /** `GRAPH_API_URL`: where replies of WhatsApp and Messenger go. */
    readonly graphUrl: string
    /** `TELEGRAM_API_URL`: where bots speak to Telegram. */
    readonly telegramUrl: string
    /** `SLACK_API_URL`: where apps speak to Slack. */
    readonly slackUrl: string
    /** `APP_URL`: where providers deliver to. */
    readonly appUrl: string
  }
>() {}
