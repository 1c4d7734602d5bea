/** Health and metrics on a separate port, for processes without an HTTP listener, and to keep them private. */
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
import { callableHost } from "../config/ConfigValues.ts"
import * as Lifecycle from "../Lifecycle.ts"
import * as Port from "../Port.ts"

/** Has the same name as the whole API, because it shares its handlers. */
const HealthApi = HttpApi.make("spoke").add(SystemApi)

/** Maximum connections: a metrics scraper and a load balancer need two. */
const maxConnections = 64
const requestTimeoutMillis = 10_000

const makeServer = () => {
  const server = createServer({ requestTimeout: requestTimeoutMillis, headersTimeout: requestTimeoutMillis })
  server.maxConnections = maxConnections
  return server
}

/** The separate address of health and metrics; null when there is none. */
export class HealthAddress extends Context.Tag("app/HealthAddress")<HealthAddress, string | null>() {}

/** Serves only `/healthz`, `/readyz` and `/metrics`, at `healthPort` if it is set. */
export const layer = ({ healthPort, host }: Settings) =>
  healthPort === null
    ? Layer.succeed(HealthAddress, null)
    : Layer.unwrapEffect(
        Effect.map(Port.findPort({ host, port: healthPort, variable: "SPOKE_HEALTH_PORT" }), (port) =>
          HttpApiBuilder.serve().pipe(
            Layer.provide([Boundary.layer, Metrics.layer]),
            Layer.provide(HttpApiBuilder.api(HealthApi).pipe(Layer.provide(SystemHandlers.layer))),
            Layer.provide(Lifecycle.readiness),
            Layer.provide(NodeHttpServer.layer(makeServer, { host, port })),
            HttpMiddleware.withTracerDisabledWhen(() => true),
            Layer.merge(Layer.succeed(HealthAddress, `http://${callableHost(host)}:${port}`))
          )
        )
      )
