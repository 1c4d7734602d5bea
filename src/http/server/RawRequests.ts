/**
 * Routes that a Node server answers without the framework, for webhooks. These arrive in bursts, and the framework's
 * request, router and codecs took a third of their CPU time (0.33 of 0.86 ms). Without a Node server, or if an address
 * is written unusually, the router handles the same route. Id, log, span, metric, headers and envelope are those of
 * every other request.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as PlatformHeaders from "@effect/platform/Headers"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import type { PathInput } from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Runtime from "effect/Runtime"
import type * as Scope from "effect/Scope"
import type { CodedError } from "../../domain/Errors.ts"
import * as AccessLog from "./AccessLog.ts"
import * as Boundary from "./Boundary.ts"
import { addressOf, TrustedProxies } from "./ClientAddress.ts"
import * as Headers from "./Headers.ts"
import { collect } from "./RequestBody.ts"
import * as RequestId from "./RequestId.ts"
import * as RequestMetrics from "../system/RequestMetrics.ts"

export interface RawRequest {
  readonly headers: Headers.HeaderValues
  readonly body: Uint8Array
}

/** A POST route. */
export interface RawRoute {
  readonly path: PathInput
  readonly maxBodyBytes: number
  /** The data of the response. */
  readonly handle: (request: RawRequest) => Effect.Effect<object, CodedError>
  /**
   * Like `handle`, without a fiber: calls `done` once and returns true. Returns false, without any effect, when that is
   * not possible. `now` is in milliseconds since 1970.
   */
  readonly handleSync: (
    request: RawRequest,
    now: number,
    done: (data: Exit.Exit<object, CodedError>) => void
  ) => boolean
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void

export class RawRequests extends Context.Tag("http/server/RawRequests")<
  RawRequests,
  {
    /** Answers POST requests to `path`, until the scope closes. */
    readonly add: (path: string, handler: Handler) => Effect.Effect<void, never, Scope.Scope>
    /** Answers the request and returns true, or returns false without any effect if no route matches. */
    readonly handle: (request: IncomingMessage, response: ServerResponse) => boolean
  }
>() {}

/** The routes of one server, empty at first. */
export const make = (): RawRequests["Type"] => {
  const handlers = new Map<string, Handler>()
  return {
    add: (path, handler) =>
      Effect.acquireRelease(
        Effect.sync(() => handlers.set(path, handler)),
        () => Effect.sync(() => handlers.delete(path))
      ),
    handle: (request, response) => {
      const handler =
        request.method === "POST" ? handlers.get(request.url?.split("?", 1).join("") ?? "") : undefined
      handler?.(request, response)
      return handler !== undefined
    }
  }
}

/** Sends a response whose body is complete. */
export const send = (
  response: ServerResponse,
  { body, headers, status }: HttpServerResponse.HttpServerResponse
) => {
  response.writeHead(status, headers)
  response.end(body._tag === "Uint8Array" ? body.body : undefined)
}

const success = (data: object, requestId: string) =>
  HttpServerResponse.unsafeJson({ data, meta: { requestId } })

/** Adds `routes` to the Node server of the context. */
export const layer = <R>(routes: Effect.Effect<ReadonlyArray<RawRoute>, never, R>) =>
  Layer.scopedDiscard(
    Effect.gen(function* () {
      const { add } = yield* RawRequests
      const overHttps = yield* Headers.OverHttps
      const proxies = yield* TrustedProxies
      const clock = yield* Effect.clock
      const isLoggedOrTraced = yield* AccessLog.isLoggedOrTraced
      const runFork = Runtime.runFork(yield* Effect.runtime())
      const monotonicMillis = () => Number(clock.unsafeCurrentTimeNanos()) / 1e6

      const handler =
        (route: RawRoute): Handler =>
        (request, response) => {
          const now = clock.unsafeCurrentTimeMillis()
          const startedAtMillis = monotonicMillis()
          const requestId = RequestId.of(Headers.get(request.headers, RequestId.header), now)

          const succeed = (data: object) => {
            RequestMetrics.observe("POST", route.path, 200, monotonicMillis() - startedAtMillis)
            send(response, Headers.complete(success(data, requestId), requestId, overHttps))
          }
          const fork = (handled: Effect.Effect<object, CodedError>) =>
            handled.pipe(
              Effect.map((data) => success(data, requestId)),
              Effect.provideService(RequestId.RequestId, requestId),
              Boundary.withRequestContext({
                method: "POST",
                path: route.path,
                headers: () => PlatformHeaders.fromInput(request.headers),
                clientAddress: addressOf(proxies, request),
                requestId,
                startedAtMillis,
                pattern: Effect.succeed(route.path),
                recover: (cause) => Boundary.responseOfFailure(cause, requestId),
                overHttps
              }),
              Effect.map((complete) => send(response, complete)),
              // No response can be sent: the socket is closed, so that the client does not wait for one.
              Effect.onError(() => Effect.sync(() => void response.destroy())),
              runFork
            )

          /** Without a fiber: a sweep may refuse a thousand bodies at once. */
          const refuse = (error: CodedError) => {
            const rejection = Boundary.errorResponse(error, requestId)
            RequestMetrics.observe("POST", route.path, rejection.status, monotonicMillis() - startedAtMillis)
            send(response, Headers.complete(rejection, requestId, overHttps))
          }

          collect(request, route.maxBodyBytes, (read) => {
            if (Either.isLeft(read))
              return isLoggedOrTraced ? fork(Effect.fail(read.left)) : refuse(read.left)
            const raw = { headers: request.headers, body: read.right }
            const isAnswered =
              !isLoggedOrTraced &&
              route.handleSync(raw, now, (data) => (Exit.isSuccess(data) ? succeed(data.value) : fork(data)))
            if (!isAnswered) fork(route.handle(raw))
          })
        }
      for (const route of yield* routes) yield* add(route.path, handler(route))
    })
  )

/** Adds `routes` to the router, for other servers. */
export const layerRouter = <R>(routes: Effect.Effect<ReadonlyArray<RawRoute>, never, R>) =>
  HttpApiBuilder.Router.use((router) =>
    Effect.flatMap(routes, (all) =>
      Effect.forEach(
        all,
        ({ handle, path }) =>
          router.post(
            path,
            Effect.gen(function* () {
              const request = yield* HttpServerRequest.HttpServerRequest
              // The boundary answers for a body that cannot be read.
              const body = yield* Effect.orDie(request.arrayBuffer)
              const data = yield* handle({ headers: request.headers, body: new Uint8Array(body) })
              return success(data, yield* RequestId.RequestId)
            })
          ),
        { discard: true }
      )
    )
  )
