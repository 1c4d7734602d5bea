/**
 * Endpoints that are asked all the time, in the lane beside the framework, whose work for a request is a good part of
 * theirs: the same declarations, keys, envelopes, headers and spans, with fewer steps between. What is unusual about a
 * request (a query, a body that is no JSON) leaves it to the framework.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http"
import * as PlatformHeaders from "@effect/platform/Headers"
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import type * as HttpApi from "@effect/platform/HttpApi"
import type * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import { clientAbortFiberId } from "@effect/platform/HttpServerError"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as Schema from "effect/Schema"
import { KeyStore } from "../capabilities/KeyStore.ts"
import type { AgentKey } from "../domain/Access.ts"
import { RateLimits } from "../usecases/RateLimits.ts"
import { networkOf } from "../domain/ClientNetwork.ts"
import { workFor } from "../domain/CurrentOwner.ts"
import * as Body from "./Body.ts"
import { addressOf, TrustedProxies } from "./ClientAddress.ts"
import * as Boundary from "./Boundary.ts"
import { jsonLimit } from "./Envelope.ts"
import * as Headers from "./Headers.ts"
import * as KeyAuth from "./KeyAuth.ts"
import { Lane, send } from "./Lane.ts"
import * as RequestBody from "./RequestBody.ts"
import * as RequestId from "./RequestId.ts"
import * as Routes from "./Routes.ts"
import * as Span from "./Span.ts"
import * as RequestMetrics from "./system/RequestMetrics.ts"

/** An answer whose head is all of it, or one whose body is written after its head. */
export interface Answer {
  readonly head: HttpServerResponse.HttpServerResponse
  readonly body?: (response: ServerResponse) => Effect.Effect<void>
}

export interface Route {
  readonly path: string
  /** Answers for a key that may; fails as a handler of the framework does. */
  readonly run: (key: AgentKey, body: unknown, headers: IncomingHttpHeaders) => Effect.Effect<Answer, unknown>
}

/** What is needed of an endpoint that is declared. */
interface Endpoint<Payload, Success> {
  readonly method: "POST"
  readonly path: string
  readonly payloadSchema: Option.Option<Schema.Schema<Payload, unknown>>
  readonly successSchema: Schema.Schema<Success, unknown>
}

/** A route for `endpoint`, which takes JSON. */
export const route = <Payload, Success>(
  { path, payloadSchema }: Endpoint<Payload, Success>,
  handle: (key: AgentKey, payload: Payload, headers: IncomingHttpHeaders) => Effect.Effect<Answer, unknown>
): Route => {
  const decode = Schema.decodeUnknown(Option.getOrThrow(payloadSchema))
  return {
    path,
    run: (key, body, headers) =>
      Effect.flatMap(Effect.catchAll(decode(body), HttpApiDecodeError.refailParseError), (payload) =>
        handle(key, payload, headers)
      )
  }
}

/** {@link route} for an endpoint that answers with what it declares. */
export const whole = <Payload, Success>(
  endpoint: Endpoint<Payload, Success>,
  handle: (key: AgentKey, payload: Payload) => Effect.Effect<Success, unknown>
): Route => {
  const encode = Schema.encode(endpoint.successSchema)
  const status = HttpApiSchema.getStatusSuccess(endpoint.successSchema)
  return route(endpoint, (key, payload) =>
    Effect.map(Effect.flatMap(handle(key, payload), encode), (body) => ({
      head: HttpServerResponse.unsafeJson(body, { status })
    }))
  )
}

const isJson = ({ headers }: IncomingMessage) =>
  headers["content-type"]?.toLowerCase().includes("application/json") ?? true

interface Taken extends Route {
  readonly demands: KeyAuth.Demands
  /** Bytes of a body. */
  readonly limit: number
}

/** By path, each with what its declaration says. Throws when there is none that demands a permission. */
const takenOf = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>,
  routes: ReadonlyArray<Route>
): ReadonlyMap<string, Taken> => {
  const declared = Routes.table(api)
  return new Map(
    routes.map((route) => {
      const { bodyLimit, permission } =
        declared.find(({ method, path }) => method === "POST" && path === route.path) ?? {}
      if (permission === undefined) throw new Error(`${route.path} does not declare its permission.`)
      const demands = { permission, publicApi: true }
      return [route.path, { ...route, demands, limit: bodyLimit ?? jsonLimit }] as const
    })
  )
}

const utf8 = new TextDecoder()

/** Opens the lane for `routes`, which `api` declares, until the scope closes. */
export const open = <Id extends string, Groups extends HttpApiGroup.HttpApiGroup.Any, E, R>(
  api: HttpApi.HttpApi<Id, Groups, E, R>,
  routes: ReadonlyArray<Route>
) =>
  Effect.gen(function* () {
    const taken = takenOf(api, routes)
    const lane = yield* Lane
    const keys = yield* KeyStore
    const limits = yield* RateLimits
    const overHttps = yield* Headers.OverHttps
    const proxies = yield* TrustedProxies
    const clock = yield* Effect.clock
    const runFork = Runtime.runFork(yield* Effect.runtime())

    const answered = (route: Taken, request: IncomingMessage) =>
      Effect.gen(function* () {
        const { headers } = request
        const client = addressOf(proxies, request)
        yield* workFor(networkOf(client))
        const visitor = { headers, remoteAddress: Option.fromNullable(client) }
        const key = yield* KeyAuth.authenticate(keys, limits, route.demands, visitor)
        const bytes = yield* RequestBody.whole(request, route.limit)
        return yield* route.run(key, yield* Body.parsed(utf8.decode(bytes)), headers)
      })

    const served = (route: Taken, request: IncomingMessage, response: ServerResponse, requestId: string) => {
      const begun = clock.unsafeCurrentTimeMillis()
      const recovered = Effect.catchAllCause(answered(route, request), (cause) =>
        Effect.map(Boundary.recovered(cause, requestId), (head): Answer => ({ head }))
      )
      return Effect.gen(function* () {
        yield* Boundary.annotateLogs(requestId, "POST", route.path)
        const { body, head } = yield* Span.around(
          { method: "POST", headers: () => PlatformHeaders.fromInput(request.headers) },
          requestId,
          Effect.succeed(route.path),
          ({ head: { status } }: Answer) => status
        )(recovered)
        const besides = yield* FiberRef.get(Headers.besides)
        const complete = Headers.complete(head, requestId, overHttps, besides)
        RequestMetrics.observe("POST", route.path, head.status, clock.unsafeCurrentTimeMillis() - begun)
        if (body === undefined) return void send(response, complete)
        response.writeHead(complete.status, complete.headers)
        yield* body(response)
        response.end()
      }).pipe(
        // Nothing is to be said any more, and nobody is to wait for it.
        Effect.onError(() => Effect.sync(() => void response.destroy())),
        // A copy of all that the process has would be made at every step.
        Effect.mapInputContext((_: Context.Context<never>) => Context.make(RequestId.RequestId, requestId))
      )
    }

    yield* lane.open((request, response) => {
      const route = request.method === "POST" ? taken.get(request.url ?? "") : undefined
      if (route === undefined || !isJson(request)) return false
      const given = Headers.line(request.headers, RequestId.header)
      const requestId = RequestId.of(given, clock.unsafeCurrentTimeMillis())
      const fiber = runFork(served(route, request, response, requestId))
      response.once("close", () => {
        if (!response.writableEnded) fiber.unsafeInterruptAsFork(clientAbortFiberId)
      })
      return true
    })
  })
