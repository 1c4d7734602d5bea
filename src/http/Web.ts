/** The API as a web-standard handler, for hosts that listen themselves. */
import type * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpApp from "@effect/platform/HttpApp"
import type * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Boundary from "./Boundary.ts"
import * as Docs from "./Docs.ts"
import * as Metrics from "./system/Metrics.ts"

/** Where a request comes from, as the host knows it: failed sign-ins are counted by it. */
export class ClientAddress extends Context.Reference<ClientAddress>()("http/ClientAddress", {
  defaultValue: () => Option.none<string>()
}) {}

/** `context` adds to what the application has. The signal of the request ends it, as a client's leaving does. */
export type Handler = (request: Request, context?: Context.Context<never>) => Promise<Response>

class App extends Context.Tag("http/Web/App")<
  App,
  HttpApp.Default<never, HttpRouter.HttpRouter.DefaultServices>
>() {}

/** As the host says, where it says so. */
const addressed = <E, R>(app: HttpApp.Default<E, R>) =>
  Effect.flatMap(ClientAddress, (remoteAddress) =>
    Option.isNone(remoteAddress)
      ? app
      : Effect.updateService(app, HttpServerRequest.HttpServerRequest, (request) =>
          request.modify({ remoteAddress: remoteAddress.value })
        )
  )

/** Answers for `api`, which is `HttpApiBuilder.api(…)` with its handlers, until the scope closes. */
export const handler = <E, R>(api: Layer.Layer<HttpApi.Api, E, R>) =>
  Effect.gen(function* () {
    const built = yield* Layer.build(
      Layer.effect(App, HttpApiBuilder.httpApp).pipe(
        Layer.provide([Boundary.layer, Docs.layer, Metrics.layer]),
        Layer.provide(api),
        Layer.provide([HttpApiBuilder.Router.Live, HttpApiBuilder.Middleware.layer]),
        Layer.merge(NodeHttpServer.layerContext)
      )
    )
    const runtime = yield* Effect.provide(Effect.runtime<HttpRouter.HttpRouter.DefaultServices>(), built)
    const answer: Handler = HttpApp.toWebHandlerRuntime(runtime)(addressed(Context.get(built, App)))
    return answer
  })
