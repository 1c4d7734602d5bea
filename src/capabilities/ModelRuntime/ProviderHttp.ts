/**
 * The HTTP client for addresses configured by the operator: model and embedding providers. Addresses chosen by
 * customers go through OutboundHttp.
 */
import * as HttpClient from "@effect/platform/HttpClient"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Agent } from "undici"

/** A stream occupies its connection, so this also limits concurrent streams per provider. */
const maxConnections = 2_048
const connectTimeout = Duration.seconds(10)
/**
 * Shorter than the keep-alive of servers and load balancers: if both sides close a connection at the same time, the
 * next request on it fails.
 */
const idleConnectionTimeout = Duration.seconds(4)
const maxKeepAlive = Duration.minutes(1)

const agent = Effect.acquireRelease(
  Effect.sync(
    () =>
      new Agent({
        connections: maxConnections,
        pipelining: 1,
        connect: { timeout: Duration.toMillis(connectTimeout) },
        keepAliveTimeout: Duration.toMillis(idleConnectionTimeout),
        keepAliveMaxTimeout: Duration.toMillis(maxKeepAlive)
      })
  ),
  (open) => Effect.promise(() => open.destroy())
)

/** Pooled connections, closed with the layer. */
export const layerDispatcher: Layer.Layer<NodeHttpClient.Dispatcher> = Layer.scoped(
  NodeHttpClient.Dispatcher,
  agent
)

/** Pooled connections, closed with the layer. Trace ids are not sent, because providers do not use them. */
export const layer: Layer.Layer<HttpClient.HttpClient> = Layer.effect(
  HttpClient.HttpClient,
  Effect.map(HttpClient.HttpClient, HttpClient.withTracerPropagation(false))
).pipe(Layer.provide(NodeHttpClient.layerUndiciWithoutDispatcher), Layer.provide(layerDispatcher))
