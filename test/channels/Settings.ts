/** Settings of channels for tests, of which each names what it needs. */
import type * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import { ChannelSettings } from "../../src/usecases/channels/ChannelSettings.ts"

export const channelSettings = (fields: Partial<Context.Tag.Service<ChannelSettings>> = {}) =>
  Layer.succeed(ChannelSettings, {
    verifyToken: null,
    appSecret: null,
    appId: null,
    graphUrl: "https://graph.invalid",
    telegramUrl: "https://telegram.invalid",
    slackUrl: "https://slack.invalid",
    appUrl: "https://spoke.example.com",
    ...fields
  })
