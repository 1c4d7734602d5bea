/** Serves the API: the boundary around all groups, and a listener that can be closed. */
import { createServer, type Server } from "node:http"
import type { Socket } from "node:net"
import { performance } from "node:perf_hooks"
import type * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServer from "@effect/platform/HttpServer"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { Api } from "../Api.ts"
import { IncomingRequest } from "./IncomingRequest.ts"
import * as Overload from "./Overload.ts"
import * as RawRequests from "./RawRequests.ts"
import * as RequestContext from "./RequestContext.ts"
import * as DescriptionRoutes from "../DescriptionRoutes.ts"
import * as Boundary from "./Boundary.ts"
import * as KeyAuth from "../KeyAuth.ts"
import * as AgentRunsHandlers from "../public/chat/AgentRunsHandlers.ts"
import * as ChatHandlers from "../public/chat/ChatHandlers.ts"
import * as CompletionsHandlers from "../public/chat/CompletionsHandlers.ts"
import * as ConversationsHandlers from "../public/conversations/ConversationsHandlers.ts"
import * as CrawlHandlers from "../public/knowledge/CrawlHandlers.ts"
import * as IngestionJobsHandlers from "../public/knowledge/IngestionJobsHandlers.ts"
import * as RetrieveHandlers from "../public/knowledge/RetrieveHandlers.ts"
import * as SourcesHandlers from "../public/knowledge/SourcesHandlers.ts"
import * as UsageHandlers from "../public/billing/UsageHandlers.ts"
import * as VisitorTokensHandlers from "../public/chat/VisitorTokensHandlers.ts"
import * as Metrics from "../system/Metrics.ts"
import * as SystemHandlers from "../system/SystemHandlers.ts"

/** The groups of `/v1` and the system routes. The other surfaces are added separately. */
export const publicGroups = Layer.mergeAll(
  AgentRunsHandlers.layer,
  ChatHandlers.layer,
  CompletionsHandlers.layer,
  ConversationsHandlers.layer,
  RetrieveHandlers.layer,
  CrawlHandlers.layer,
  SourcesHandlers.layer,
  IngestionJobsHandlers.layer,
  UsageHandlers.layer,
  VisitorTokensHandlers.layer,
  SystemHandlers.layer
)

/** {@link publicGroups} with key authentication. */
export const publicHandlers = publicGroups.pipe(Layer.provide(KeyAuth.layer(Api)))

/**
 * Serves `api`, an `HttpApiBuilder.api(…)` with its handlers, on the server of the context. Fails to start when an
 * endpoint has no access rule.
 */
export const serve = <E, R>(api: Layer.Layer<HttpApi.Api, E, R>) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const app = yield* HttpApiBuilder.httpApp
      const server = yield* HttpServer.HttpServer
      yield* RequestContext.narrow(server.serve(app))
    })
  ).pipe(
    Layer.provide([Boundary.layer, DescriptionRoutes.layer, Metrics.layer]),
    Layer.provide(api),
    Layer.provide([HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer]),
    Layer.provide(Boundary.routerConfig)
  )

export interface ListenOptions {
  readonly host: string
  /** 0 selects a free port; `HttpServer.address` has it. */
  readonly port: number
  /** Time for open requests after the listener closes. Then their connections are closed. */
  readonly grace: Duration.DurationInput
}

/** Time for a new connection to send its first request when the server closes. */
const unusedConnectionMillis = 500

/**
 * Closes connections when the server closes: an idle one at once, a busy one after its response, and the rest after
 * `grace`. Returns the effect that starts this.
 */
const makeCloser = (server: Server, grace: Duration.DurationInput) =>
  Effect.gen(function* () {
    const closing = yield* Effect.makeLatch(false)
    const connections = new Map<Socket, number>()
    server.on("connection", (socket) => {
      connections.set(socket, performance.now())
      socket.once("close", () => connections.delete(socket))
    })
    const closeIdle = Effect.sync(() => {
      server.closeIdleConnections()
      // Browsers open connections in advance, and Node does not count a connection without a request as idle. The
      // request of a new connection may not have been read yet.
      const now = performance.now()
      for (const [socket, since] of connections)
        if (socket.bytesRead === 0 && now - since > unusedConnectionMillis) socket.destroy()
    })
    const close = Effect.repeat(closeIdle, Schedule.spaced("50 millis")).pipe(
      Effect.timeoutOption(grace),
      Effect.zipRight(
        Effect.sync(() => {
          server.closeAllConnections()
          // Node does not count connections whose requests asked for an upgrade.
          for (const socket of connections.keys()) socket.destroy()
        })
      )
    )
    yield* Effect.acquireRelease(
      Effect.forkDaemon(Effect.interruptible(Effect.zipRight(closing.await, close))),
      Fiber.interrupt
    )
    return closing.open
  })

/** Maximum connections that wait to be accepted; the system's own limit may be lower. */
const maxPendingConnections = 4_096

/** A Node server with its time-outs, and the platform services for serving. */
export const listen = ({ host, port, grace }: ListenOptions) =>
  Layer.scopedContext(
    Effect.gen(function* () {
      const server = createServer({
        IncomingMessage: IncomingRequest,
        headersTimeout: Duration.toMillis("10 seconds"),
        requestTimeout: Duration.toMillis("5 minutes"),
        connectionsCheckingInterval: Duration.toMillis("2 seconds"),
        // Longer than that of usual load balancers, so that this side does not close a connection in use.
        keepAliveTimeout: Duration.toMillis("75 seconds")
      })
      const startClosing = yield* makeCloser(server, grace)
      const rawRequests = RawRequests.make()
      const { close } = yield* Overload.guard(server, rawRequests)
      const http = yield* NodeHttpServer.make(() => server, { host, port, backlog: maxPendingConnections })
      yield* Effect.addFinalizer(() => Effect.zipRight(close, startClosing))
      return Context.make(HttpServer.HttpServer, http).pipe(Context.add(RawRequests.RawRequests, rawRequests))
    })
  ).pipe(Layer.merge(NodeHttpServer.layerContext))
