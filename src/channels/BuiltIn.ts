/** The built-in channels. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import {
  type ChannelAdapter,
  type ChannelAdapters,
  layerChannels,
  OtherChannels
} from "../capabilities/ChannelAdapters.ts"
import type { OutboundHttp } from "../capabilities/OutboundHttp.ts"
import { MailSubmission } from "../capabilities/Mailer.ts"
import { emailAdapter } from "./email/Adapter.ts"
import * as Graph from "./Graph.ts"
import * as GraphFiles from "./GraphFiles.ts"
import { metaAdapters } from "./MetaAdapter.ts"
import { slackAdapter } from "./slack/Adapter.ts"
import { telegramAdapter } from "./telegram/Adapter.ts"

interface Options {
  /** The secret with which WhatsApp and Messenger sign deliveries. */
  readonly appSecret: Redacted.Redacted | null
  /** Registered after the built-in ones; one with the same name replaces the built-in one. */
  readonly others?: ReadonlyArray<ChannelAdapter>
}

/** `others` after those of `builtIn` that they do not replace by name. */
const withReplacements = (
  builtIn: ReadonlyArray<ChannelAdapter>,
  others: ReadonlyArray<ChannelAdapter>
): ReadonlyArray<ChannelAdapter> => {
  const names = new Set(others.map(({ name }) => name))
  return [...builtIn.filter(({ name }) => !names.has(name)), ...others]
}

/** WhatsApp and Messenger through the {@link Graph.Graph} of the context, and the given channels. */
export const layerWithGraph = ({ appSecret, others = [] }: Options) =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      return layerChannels(withReplacements(yield* metaAdapters(appSecret), others))
    })
  )

/** All built-in channels: through HTTP at the configured addresses, and SMTP. */
export const layerHttp = ({
  graphUrl,
  others = [],
  slackUrl,
  telegramUrl,
  ...options
}: Options & {
  readonly graphUrl: string
  readonly telegramUrl: string
  readonly slackUrl: string
}): Layer.Layer<ChannelAdapters, never, HttpClient.HttpClient | MailSubmission | OutboundHttp> =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      const http = yield* HttpClient.HttpClient
      const builtIn = [
        telegramAdapter(http, telegramUrl),
        slackAdapter(http, slackUrl),
        emailAdapter(yield* MailSubmission)
      ]
      const registered = [...others, ...(yield* Effect.all(yield* OtherChannels))]
      return layerWithGraph({ ...options, others: withReplacements(builtIn, registered) })
    })
  ).pipe(Layer.provide([Graph.layerHttp(graphUrl), GraphFiles.layerHttp(graphUrl)]))
