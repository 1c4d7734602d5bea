/**
 * The one place where a request gets its id and a failure becomes a response. It is the outermost middleware, so it
 * sees failures before the framework converts them.
 */
import { IncomingMessage } from "node:http"
import type * as PlatformHeaders from "@effect/platform/Headers"
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { HttpApiDecodeError } from "@effect/platform/HttpApiError"
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerError from "@effect/platform/HttpServerError"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Multipart from "@effect/platform/Multipart"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import { flow } from "effect/Function"
import * as HashMap from "effect/HashMap"
import * as HashSet from "effect/HashSet"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { currentTrace } from "../../concurrency/DurationHistogram.ts"
import { monotonicMillis } from "../../domain/Elapsed.ts"
import {
  type CodedError,
  MethodNotAllowed,
  NotFound,
  ServiceUnavailable,
  ValidationError,
  internalError
} from "../../domain/Errors.ts"
import { networkOf } from "../../domain/ClientNetwork.ts"
import { workFor } from "../../concurrency/CurrentOwner.ts"
import * as AccessLog from "./AccessLog.ts"
import * as Body from "./Body.ts"
import { addressOf, TrustedProxies } from "./ClientAddress.ts"
import { failureBody, isCoded, jsonLimit, statusOf, webhookLimit } from "../Envelope.ts"
import * as FieldHints from "../FieldHints.ts"
import * as Headers from "./Headers.ts"
import * as OpenAiError from "../OpenAiError.ts"
import * as ScimProblem from "../scim/Problem.ts"
import * as Issues from "./Issues.ts"
import { isMoving, isOutage } from "./Outage.ts"
import * as RepeatedRefusals from "./RepeatedRefusals.ts"
import * as RequestId from "./RequestId.ts"
import * as Routes from "../Routes.ts"
import * as Span from "./Span.ts"
import * as RequestMetrics from "../system/RequestMetrics.ts"
import { tenantPaused } from "../../usecases/operations/moves/TenantGate.ts"

type Methods = ReadonlyArray<string>

const pathOf = (request: HttpServerRequest.HttpServerRequest) => request.url.split("?", 1).join("")

/** The `retry-after` header of `RATE_LIMITED`, in seconds, when the error has one. */
const retryAfter = ({ details }: CodedError): Readonly<Record<string, string>> => {
  const seconds = details?.["retryAfterSeconds"]
  return typeof seconds === "number" ? { "retry-after": String(Math.max(1, Math.ceil(seconds))) } : {}
}

/** The response for `error`, in the envelope and with its status. */
export const answer = (
  error: CodedError,
  requestId: string,
  headers: Readonly<Record<string, string>> = {}
) =>
  HttpServerResponse.unsafeJson(failureBody(error, requestId), {
    status: statusOf(error._tag),
    headers: { ...retryAfter(error), ...headers }
  })

const answerOpenAi: typeof answer = (error, requestId, headers = {}) =>
  OpenAiError.answer(error, requestId, { ...retryAfter(error), ...headers })

const answerScim: typeof answer = (error, requestId, headers = {}) =>
  ScimProblem.answer(error, requestId, { ...retryAfter(error), ...headers })

const unrouted = (method: string, methods: Methods, requestId: string, tell = answer) =>
  methods.length === 0 || methods.includes(method)
    ? tell(new NotFound({ message: "There is nothing at this address." }), requestId)
    : tell(
        new MethodNotAllowed({
          message: "This address does not have this method.",
          details: { allow: methods }
        }),
        requestId,
        { allow: methods.join(", ") }
      )

/** The error for a request that could not be read. */
const unreadableRequest = (cause: unknown): CodedError =>
  isCoded(cause) ? cause : new ValidationError({ message: "The request could not be read." })

/** The documented error of a failure or defect; none for an internal error. */
const documented = (cause: Cause.Cause<unknown>): Option.Option<CodedError> => {
  const failed = Cause.failureOption(cause)
  if (Option.isSome(failed) && isCoded(failed.value)) return Option.some(failed.value)
  const thrown = Option.getOrUndefined(Option.orElse(failed, () => Cause.dieOption(cause)))
  if (thrown instanceof HttpApiDecodeError) return Option.some(Issues.toError(thrown))
  // The framework raises a defect for a body that it cannot read.
  if (thrown instanceof HttpServerError.RequestError || thrown instanceof Multipart.MultipartError) {
    return Option.some(unreadableRequest(thrown.cause))
  }
  return Option.none()
}

const isRouteNotFound = (cause: Cause.Cause<unknown>) =>
  Option.exists(Cause.failureOption(cause), (failed) => failed instanceof HttpServerError.RouteNotFound)

const stopping = new ServiceUnavailable({ message: "The server is stopping. Try again." })
const outage = new ServiceUnavailable({ message: "The database cannot be reached. Try again." })

const recover = (
  cause: Cause.Cause<unknown>,
  request: HttpServerRequest.HttpServerRequest,
  methods: Effect.Effect<Methods>,
  requestId: string
) => {
  const path = pathOf(request)
  const tell = ScimProblem.isShapeOf(path) ? answerScim : answer
  return isRouteNotFound(cause)
    ? Effect.map(methods, (known) => unrouted(request.method, known, requestId, tell))
    : responseOfFailure(cause, requestId, OpenAiError.isShapeOf(path) ? answerOpenAi : tell)
}

/** The response to a request whose route failed or that could not be read. */
export const responseOfFailure = (
  cause: Cause.Cause<unknown>,
  requestId: string,
  tell = answer
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const error = documented(cause)
  if (Option.isSome(error)) return Effect.succeed(tell(error.value, requestId))
  if (Cause.isInterruptedOnly(cause)) return Effect.succeed(tell(stopping, requestId))
  if (Option.exists(Cause.dieOption(cause), isMoving)) return Effect.succeed(tell(tenantPaused, requestId))
  if (Option.exists(Cause.dieOption(cause), isOutage)) {
    const response = tell(outage, requestId, { "retry-after": "1" })
    return Effect.as(Effect.logWarning("The database cannot be reached", cause), response)
  }
  return Effect.as(Effect.logError("A request failed unexpectedly", cause), tell(internalError(), requestId))
}

const clientLeft = (cause: Cause.Cause<unknown>) =>
  HashSet.has(Cause.interruptors(cause), HttpServerError.clientAbortFiberId)

export interface Around {
  readonly method: string
  readonly path: string
  readonly headers: () => PlatformHeaders.Headers
  /** The client's address; undefined when unknown. */
  readonly client: string | undefined
  readonly requestId: string
  /** Arrival time of the request, in {@link monotonicMillis}. */
  readonly began: number
  /** The pattern of the route; null when none matches. */
  readonly pattern: Effect.Effect<string | null>
  /** The response for a failure of `app`. */
  readonly recover: (cause: Cause.Cause<unknown>) => Effect.Effect<HttpServerResponse.HttpServerResponse>
  readonly overHttps: boolean
}

/** Gives every request an id in each log line, a span, a metric, a response in every case, and headers. */
export const withRequestContext =
  ({ began, client, headers, method, overHttps, path, pattern, recover, requestId }: Around) =>
  <E, R>(app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.gen(function* () {
      // The fiber belongs to the request, so nothing has to be restored.
      yield* FiberRef.update(
        FiberRef.currentLogAnnotations,
        flow(
          HashMap.set<string, unknown>("requestId", requestId),
          HashMap.set<string, unknown>("method", method),
          HashMap.set<string, unknown>("path", path)
        )
      )
      yield* workFor(networkOf(client))
      const tell = ({ status }: HttpServerResponse.HttpServerResponse) =>
        Effect.gen(function* () {
          const route = yield* pattern
          const millis = (yield* monotonicMillis) - began
          RequestMetrics.observe(method, route, status, millis, yield* currentTrace)
          yield* AccessLog.write(route, status, millis)
        })
      const response = yield* app.pipe(
        Effect.catchAllCause((cause) => (clientLeft(cause) ? Effect.failCause(cause) : recover(cause))),
        Effect.tap(tell),
        Span.around(
          { method, headers },
          requestId,
          pattern,
          ({ status }: HttpServerResponse.HttpServerResponse) => status
        )
      )
      return Headers.complete(response, requestId, overHttps, yield* FiberRef.get(Headers.extra))
    })

/** The server may repeat the answer. */
const withRepeatedAnswer = (
  source: IncomingMessage,
  response: HttpServerResponse.HttpServerResponse,
  requestId: string,
  pattern: Effect.Effect<string | null>
) => Effect.map(pattern, (route) => RepeatedRefusals.answered(source, response, requestId, route))

/** The router joins repeated slashes, in the query too, where they belong to a value: there they are encoded. */
const withWholeQuery = (request: HttpServerRequest.HttpServerRequest) => {
  const place = request.url.indexOf("?")
  return place !== -1 && request.url.includes("//", place)
    ? request.modify({ url: request.url.slice(0, place) + request.url.slice(place).replaceAll("/", "%2F") })
    : request
}

/** The pattern of the route that matches a request; null when none does. */
const patternAt = (
  routes: ReadonlyArray<{ readonly method: string; readonly path: string }>,
  request: HttpServerRequest.HttpServerRequest
): string | null => {
  const pathname = pathOf(request)
  const asked = request.method === "HEAD" ? "GET" : request.method
  const route = routes.find(
    ({ method, path }) =>
      (method === asked || method === "*") && path !== "*" && path !== "/*" && Routes.matches(path, pathname)
  )
  return route?.path ?? null
}

/** The methods of an address; empty when it has none. */
const methodsAt = (
  routes: ReadonlyArray<{ readonly method: string; readonly path: string }>,
  request: HttpServerRequest.HttpServerRequest
): Methods => {
  const pathname = pathOf(request)
  const declared = routes
    .filter(({ path }) => path !== "*" && path !== "/*" && Routes.matches(path, pathname))
    .map(({ method }) => method)
  if (declared.length === 0) return []
  const implied = declared.includes("GET") ? ["HEAD", "OPTIONS"] : ["OPTIONS"]
  return [...new Set([...declared, ...implied])].sort()
}

const options = (request: HttpServerRequest.HttpServerRequest, methods: Methods, requestId: string) => {
  if (Headers.isPreflight(request)) return Headers.preflight(request)
  return methods.length === 0
    ? unrouted(request.method, methods, requestId)
    : HttpServerResponse.empty({ status: 204, headers: { allow: methods.join(", ") } })
}

/**
 * The router's default limit is 100 characters per parameter. A chat's id has up to 200 characters, each up to nine
 * when encoded. By default the router also ignores case, which `Routes.matches` does not, and matches lower-case paths
 * of another length when a parameter has letters such as `İ`.
 */
export const routerConfig = HttpRouter.setRouterConfig({ maxParamLength: 1_800, caseSensitive: true })

/** Routes without parameters, by method and path. */
const plainOf = (routes: ReadonlyArray<{ readonly method: string; readonly path: string }>) =>
  new Set(routes.filter(({ path }) => !/[:*]/u.test(path)).map(Routes.keyOf))

/** Wraps the whole application. */
export const layer: Layer.Layer<never, never, HttpApi.Api> = HttpApiBuilder.middleware(
  Effect.gen(function* () {
    const { api } = yield* HttpApi.Api
    const overHttps = yield* Headers.OverHttps
    const proxies = yield* TrustedProxies
    /** The client's address behind trusted proxies. A host that passes requests on gives the address itself. */
    const clientOf = ({ remoteAddress, source }: HttpServerRequest.HttpServerRequest) =>
      source instanceof IncomingMessage ? addressOf(proxies, source) : Option.getOrUndefined(remoteAddress)
    const { router } = yield* HttpApiBuilder.Router
    const declared = new Map(Routes.table(api).map((route) => [Routes.keyOf(route), route] as const))
    const hints = FieldHints.make(api)
    const bodies: Body.RouteBodies = {
      // Undeclared routes are those of MCP, SCIM and webhooks.
      limitOf: (route) =>
        declared.get(Routes.keyOf(route))?.bodyLimit ??
        (route.path.startsWith("/api/webhooks/") ? webhookLimit : jsonLimit),
      takesJson: (route) => declared.get(Routes.keyOf(route))?.takesJson === true,
      onParsed: (route, value) => hints.body(Routes.keyOf(route), value)
    }
    // Evaluated at the first request, when all routes are registered.
    const routes = yield* Effect.cached(Effect.map(router, (all) => Chunk.toReadonlyArray(all.routes)))
    // Routes without parameters, the most frequent ones, are found by one lookup.
    const plain = yield* Effect.cached(Effect.map(routes, plainOf))
    const patternOf = (request: HttpServerRequest.HttpServerRequest) =>
      Effect.flatMap(plain, (known) =>
        known.has(`${request.method} ${pathOf(request)}`)
          ? Effect.succeed(pathOf(request))
          : Effect.map(routes, (all) => patternAt(all, request))
      )
    return (app: HttpApp.Default) =>
      Effect.gen(function* () {
        const request = withWholeQuery(yield* HttpServerRequest.HttpServerRequest)
        const requestId = yield* RequestId.resolve(request.headers[RequestId.header])
        const methods = Effect.map(routes, (all) => methodsAt(all, request))
        if (request.method === "OPTIONS") {
          return Headers.complete(options(request, yield* methods, requestId), requestId, overHttps)
        }
        const client = clientOf(request)
        const hintQuery = request.url.includes("?")
          ? Effect.flatMap(patternOf(request), (path) =>
              path === null
                ? Effect.void
                : hints.query(Routes.keyOf({ method: request.method, path }), request.url)
            )
          : Effect.void
        return yield* Effect.zipRight(hintQuery, app).pipe(
          Effect.mapInputContext((context: Context.Context<HttpServerRequest.HttpServerRequest>) =>
            context.pipe(
              Context.add(HttpServerRequest.HttpServerRequest, Body.bounded(request, client, bodies)),
              Context.add(RequestId.RequestId, requestId)
            )
          ),
          withRequestContext({
            method: request.method,
            path: pathOf(request),
            headers: () => request.headers,
            client,
            requestId,
            began: yield* monotonicMillis,
            pattern: patternOf(request),
            recover: (cause) => recover(cause, request, methods, requestId),
            overHttps
          }),
          Effect.tap((response) =>
            response.status === 503 && request.source instanceof IncomingMessage
              ? withRepeatedAnswer(request.source, response, requestId, patternOf(request))
              : Effect.void
          )
        )
      })
  })
).pipe(Layer.provide(HttpApiBuilder.Router.Live))
