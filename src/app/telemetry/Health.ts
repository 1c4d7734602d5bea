/** Health and metrics on a port of their own, for processes that answer no requests, and for those who keep them private. */
import { createServer } from "node:http"
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpMiddleware from "@effect/platform/HttpMiddleware"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Boundary from "../../http/server/Boundary.ts"
import * as Metrics from "../../http/system/Metrics.ts"
import { SystemApi } from "../../http/system/SystemApi.ts"
import * as SystemHandlers from "../../http/system/SystemHandlers.ts"
import type { Settings } from "../config/Config.ts"
import { reachable } from "../config/ConfigValues.ts"
import * as Lifecycle from "../Lifecycle.ts"
import * as Port from "../Port.ts"

/** Of the same name as the whole interface, whose handlers it shares. */
const HealthApi = HttpApi.make("spoke").add(SystemApi)

/** Connections at the same time: a scraper and a balancer need two. */
const maxConnections = 64
const requestTimeoutMillis = 10_000

const makeServer = () => {
  const server = createServer({ requestTimeout: requestTimeoutMillis, headersTimeout: requestTimeoutMillis })
  server.maxConnections = maxConnections
  return server
}

/** Where health and metrics are, beside the port for requests; null where they are nowhere else. */
export class HealthAddress extends Context.Tag("app/HealthAddress")<HealthAddress, string | null>() {}

/** Serves `/healthz`, `/readyz` and `/metrics`, and nothing else, at `healthPort` where there is one. */
export const layer = ({ healthPort, host }: Settings) =>
  healthPort === null
    ? Layer.succeed(HealthAddress, null)
    : Layer.unwrapEffect(
        Effect.map(Port.attempt({ host, port: healthPort, variable: "SPOKE_HEALTH_PORT" }), (port) =>
          HttpApiBuilder.serve().pipe(
            Layer.provide([Boundary.layer, Metrics.layer]),
            Layer.provide(HttpApiBuilder.api(HealthApi).pipe(Layer.provide(SystemHandlers.layer))),
            Layer.provide(Lifecycle.readiness),
            Layer.provide(NodeHttpServer.layer(makeServer, { host, port })),
            HttpMiddleware.withTracerDisabledWhen(() => true),
            Layer.merge(Layer.succeed(HealthAddress, `http://${reachable(host)}:${port}`))
          )
        )
      )
