/** The channels that this service comes with. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { type ChannelAdapter, type ChannelAdapters, layerChannels } from "../capabilities/ChannelAdapters.ts"
import * as Graph from "./Graph.ts"
import * as GraphFiles from "./GraphFiles.ts"
import { metaAdapters } from "./MetaAdapter.ts"
import { slackAdapter } from "./slack/Adapter.ts"
import { telegramAdapter } from "./telegram/Adapter.ts"

interface Options {
  /** What WhatsApp and Messenger sign deliveries with. */
  readonly appSecret: Redacted.Redacted | null
  /** Registered after ours. */
  readonly others?: ReadonlyArray<ChannelAdapter>
}

/** Over the providers' clients of the context. */
export const layerOver = ({ appSecret, others = [] }: Options) =>
  Layer.unwrapEffect(
    Effect.gen(function* () {
      return layerChannels([...(yield* metaAdapters(appSecret)), ...others])
    })
  )

/** Over HTTP, at the configured addresses. */
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
}): Layer.Layer<ChannelAdapters, never, HttpClient.HttpClient> =>
  Layer.unwrapEffect(
    Effect.map(HttpClient.HttpClient, (http) =>
      layerOver({
        ...options,
        others: [telegramAdapter(http, telegramUrl), slackAdapter(http, slackUrl), ...others]
      })
    )
  ).pipe(Layer.provide([Graph.layerHttp(graphUrl), GraphFiles.layerHttp(graphUrl)]))
