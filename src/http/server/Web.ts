/** The API as a web-standard handler, for hosts with their own listener. */
import type { BlockList } from "node:net"
import type * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpApp from "@effect/platform/HttpApp"
import type * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import type * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Boundary from "./Boundary.ts"
import { clientAddressOf, forwardedHeader, TrustedProxies } from "./ClientAddress.ts"
import * as DescriptionRoutes from "../DescriptionRoutes.ts"
import * as Metrics from "../system/Metrics.ts"
import * as RequestContext from "./RequestContext.ts"
import { clientClosedRequestStatus, type WebBodies } from "./WebBodies.ts"

/** The address of the connection as the host knows it: the client's, or a proxy's. */
export class ClientAddress extends Context.Reference<ClientAddress>()("http/server/ClientAddress", {
  defaultValue: () => Option.none<string>()
}) {}

/**
 * `context` is added to the application's. Aborting the request's signal is like a disconnected client: before the
 * response it ends with status 499, afterwards the body fails with the signal's reason.
 */
type Handler = (request: Request, context?: Context.Context<never>) => Promise<Response>

class App extends Context.Tag("http/Web/App")<
  App,
  HttpApp.Default<never, HttpRouter.HttpRouter.DefaultServices>
>() {}

/** Sets the client's address: the connection's, or the one that trusted proxies forward. */
const withClientAddress = <E, R>(app: HttpApp.Default<E, R>, proxies: BlockList) =>
  Effect.flatMap(ClientAddress, (hostAddress) =>
    Effect.updateService(app, HttpServerRequest.HttpServerRequest, (request) => {
      const address = clientAddressOf(
        proxies,
        Option.getOrUndefined(hostAddress),
        request.headers[forwardedHeader]
      )
      return address === undefined ? request : request.modify({ remoteAddress: address })
    })
  )

/** Runs `app` on fibers that are interrupted when the scope closes. */
const onScopedFibers = <E, R>(app: HttpApp.Default<E, R>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Set<Fiber.RuntimeFiber<unknown, unknown>>()),
      Fiber.interruptAll
    ),
    (open) =>
      Effect.withFiberRuntime<
        HttpServerResponse.HttpServerResponse,
        E,
        R | HttpServerRequest.HttpServerRequest
      >((fiber) => {
        open.add(fiber)
        fiber.addObserver(() => open.delete(fiber))
        return app
      })
  )

const clientClosedResponse = () => new Response(null, { status: clientClosedRequestStatus })

/** `handler`, but a request is answered as soon as its signal is aborted. */
const endOnAbort =
  (handler: Handler, bodies: WebBodies): Handler =>
  (request, context) =>
    new Promise((resolve, reject) => {
      const { signal } = request
      if (signal.aborted) return resolve(clientClosedResponse())
      const onAbort = () => resolve(clientClosedResponse())
      signal.addEventListener("abort", onAbort, { once: true })
      handler(request, context)
        .then((response) => bodies.of(request, response))
        .then(resolve, reject)
        .finally(() => signal.removeEventListener("abort", onAbort))
    })

/** Answers requests for `api`, an `HttpApiBuilder.api(…)` with its handlers, until the scope closes. */
export const handler = <E, R>(api: Layer.Layer<HttpApi.Api, E, R>, bodies: WebBodies) =>
  Effect.gen(function* () {
    const built = yield* Layer.build(
      Layer.effect(App, HttpApiBuilder.httpApp).pipe(
        Layer.provide([Boundary.layer, DescriptionRoutes.layer, Metrics.layer]),
        Layer.provide(api),
        Layer.provide([HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer]),
        Layer.provide(Boundary.routerConfig),
        Layer.merge(NodeHttpServer.layerContext)
      )
    )
    const runtime = yield* Effect.runtime<HttpRouter.HttpRouter.DefaultServices>().pipe(
      RequestContext.narrow,
      Effect.provide(built)
    )
    const app = yield* onScopedFibers(withClientAddress(Context.get(built, App), yield* TrustedProxies))
    return endOnAbort(HttpApp.toWebHandlerRuntime(runtime)(app), bodies)
  })
