/**
 * The HTTP client for addresses that the operator configured: model and embedding providers. Addresses that a customer
 * chose go through OutboundHttp.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpTraceContext from "@effect/platform/HttpTraceContext"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Agent } from "undici"

/** Streams hold their connection while they last, so this is also how many run at a time against one provider. */
const connections = 512
const connectTimeout = Duration.seconds(10)
/** Shorter than what servers and balancers allow: a connection that both sides close at once fails the next request. */
const keepAlive = Duration.seconds(4)
const keepAliveAtMost = Duration.minutes(1)

const dispatcher = Effect.acquireRelease(
  Effect.sync(
    () =>
      new Agent({
        connections,
        pipelining: 1,
        connect: { timeout: Duration.toMillis(connectTimeout) },
        keepAliveTimeout: Duration.toMillis(keepAlive),
        keepAliveMaxTimeout: Duration.toMillis(keepAliveAtMost)
      })
  ),
  (agent) => Effect.promise(() => agent.destroy())
)

/** Pooled connections, closed with the layer. Our trace ids stay here: they are no business of whoever else is called. */
export const layer: Layer.Layer<HttpClient.HttpClient> = Layer.effect(
  HttpClient.HttpClient,
  Effect.map(HttpClient.HttpClient, HttpClient.withTracerPropagation(false))
).pipe(
  Layer.provide(NodeHttpClient.layerUndiciWithoutDispatcher),
  Layer.provide(Layer.scoped(NodeHttpClient.Dispatcher, dispatcher))
)

/** {@link layer} for the model provider: its calls carry `traceparent` where a request is traced, so that a gateway of the operator's can go on with the trace. */
export const layerTraced: Layer.Layer<HttpClient.HttpClient> = Layer.effect(
  HttpClient.HttpClient,
  Effect.map(
    HttpClient.HttpClient,
    HttpClient.mapRequestEffect((request) =>
      Effect.match(Effect.currentSpan, {
        onFailure: () => request,
        onSuccess: (span) =>
          span.sampled ? HttpClientRequest.setHeaders(request, HttpTraceContext.toHeaders(span)) : request
      })
    )
  )
).pipe(Layer.provide(layer))
