/** The readers of each channel's deliveries, for the accounts that the recorded payloads are of. */
import type * as DateTime from "effect/DateTime"
import * as Redacted from "effect/Redacted"
import type { ChannelAccess } from "../../src/capabilities/ChannelAdapters.ts"
import * as Messenger from "../../src/channels/messenger/Inbound.ts"
import * as Slack from "../../src/channels/slack/Inbound.ts"
import * as Telegram from "../../src/channels/telegram/Inbound.ts"
import * as Whatsapp from "../../src/channels/whatsapp/Inbound.ts"

const accountOf = (externalId: string, profile: ChannelAccess["profile"]): ChannelAccess => ({
  externalId,
  profile,
  accessToken: Redacted.make("token"),
  secrets: {}
})

const app = accountOf("T061EG9R6.U0LAN0Z89", { teamId: "T061EG9R6", botUserId: "U0LAN0Z89" })
const bot = accountOf("4711", { username: "Helper_Bot" })

export const normalizers = {
  whatsapp: Whatsapp.normalize,
  messenger: Messenger.normalize,
  slack: (body: unknown, now: DateTime.Utc) => Slack.normalize(body, now, app),
  telegram: (body: unknown, now: DateTime.Utc) => Telegram.normalize(body, now, bot)
} as const

export type Recorded = keyof typeof normalizers
export const isRecorded = (name: string): name is Recorded => name in normalizers
