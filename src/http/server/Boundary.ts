/**
 * Gives each request its id and converts every failure to a response. It is the outermost middleware, so it handles
 * failures before the framework does.
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
import { inOwnFiber } from "../../concurrency/InOwnFiber.ts"
import { monotonicMillis } from "../../domain/MonotonicClock.ts"
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
import { failureBody, isCoded, maxJsonBytes, statusOf, maxWebhookBytes } from "../Envelope.ts"
import * as FieldHints from "../FieldHints.ts"
import * as Headers from "./Headers.ts"
import { isExecutedOnce } from "../manage/IdempotentRequests.ts"
import * as OpenAiError from "../OpenAiError.ts"
import * as ScimProblem from "../scim/Problem.ts"
import * as Issues from "./Issues.ts"
import { missingReference } from "./MissingReference.ts"
import { isOutage, isTenantMoving } from "../../concurrency/DatabaseOutage.ts"
import * as RepeatedRefusals from "./RepeatedRefusals.ts"
import * as RequestId from "./RequestId.ts"
import * as Routes from "../Routes.ts"
import * as Span from "./Span.ts"
import * as RequestMetrics from "../system/RequestMetrics.ts"
import { tenantPaused } from "../../usecases/operations/moves/TenantGate.ts"

type Methods = ReadonlyArray<string>

/** The path of a request, with escapes of letters, digits, `-`, `.`, `_` and `~` decoded, as the router decodes them. */
export const pathOf = ({ url = "" }: { readonly url?: string | undefined }) =>
  url
    .split("?", 1)
    .join("")
    .replace(/%(?:2[DE]|3\d|4[1-9A-F]|5[\dAF]|6[1-9A-F]|7[\dAE])/giu, decodeURIComponent)

/** The `retry-after` header of `RATE_LIMITED`, in seconds, when the error has one. */
const retryAfter = ({ details }: CodedError): Readonly<Record<string, string>> => {
  const seconds = details?.["retryAfterSeconds"]
  return typeof seconds === "number" ? { "retry-after": String(Math.max(1, Math.ceil(seconds))) } : {}
}

/** The response for `error`, in the envelope and with its status. */
export const errorResponse = (
  error: CodedError,
  requestId: string,
  headers: Readonly<Record<string, string>> = {}
) =>
  HttpServerResponse.unsafeJson(failureBody(error, requestId), {
    status: statusOf(error._tag),
    headers: { ...retryAfter(error), ...headers }
  })

const openAiErrorResponse: typeof errorResponse = (error, requestId, headers = {}) =>
  OpenAiError.errorResponse(error, requestId, { ...retryAfter(error), ...headers })

const scimErrorResponse: typeof errorResponse = (error, requestId, headers = {}) =>
  ScimProblem.errorResponse(error, requestId, { ...retryAfter(error), ...headers })

/** {@link errorResponse} in the format of the clients of `path`. */
export const errorResponseOf = (path: string): typeof errorResponse => {
  if (ScimProblem.isScimPath(path)) return scimErrorResponse
  return OpenAiError.isOpenAiPath(path) ? openAiErrorResponse : errorResponse
}

/** 404, or 405 when the address has other methods. */
const unmatchedResponse = (
  method: string,
  methods: Methods,
  requestId: string,
  toResponse: typeof errorResponse
) =>
  methods.length === 0 || methods.includes(method)
    ? toResponse(new NotFound({ message: "There is nothing at this address." }), requestId)
    : toResponse(
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

/** The documented error of a failure or defect; none for an unexpected one. */
const codedErrorOf = (cause: Cause.Cause<unknown>): Option.Option<CodedError> => {
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
  const toResponse = errorResponseOf(pathOf(request))
  return isRouteNotFound(cause)
    ? Effect.map(methods, (allowed) => unmatchedResponse(request.method, allowed, requestId, toResponse))
    : responseOfFailure(cause, requestId, toResponse)
}

/** The response to a request that could not be read or whose route failed. */
export const responseOfFailure = (
  cause: Cause.Cause<unknown>,
  requestId: string,
  toResponse = errorResponse
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const error = codedErrorOf(cause)
  if (Option.isSome(error)) return Effect.succeed(toResponse(error.value, requestId))
  if (Cause.isInterruptedOnly(cause)) return Effect.succeed(toResponse(stopping, requestId))
  if (Option.exists(Cause.dieOption(cause), isTenantMoving))
    return Effect.succeed(toResponse(tenantPaused, requestId))
  if (Option.exists(Cause.dieOption(cause), isOutage)) {
    const response = toResponse(outage, requestId, { "retry-after": "1" })
    return Effect.as(Effect.logWarning("The database cannot be reached", cause), response)
  }
  const missing = missingReference(Cause.squash(cause))
  if (missing !== undefined) {
    const response = toResponse(missing, requestId)
    return Effect.as(Effect.logWarning("What a change refers to does not exist", cause), response)
  }
  return Effect.as(
    Effect.logError("A request failed unexpectedly", cause),
    toResponse(internalError(), requestId)
  )
}

const isClientDisconnect = (cause: Cause.Cause<unknown>) =>
  HashSet.has(Cause.interruptors(cause), HttpServerError.clientAbortFiberId)

export interface RequestInfo {
  readonly method: string
  readonly path: string
  readonly headers: () => PlatformHeaders.Headers
  /** Undefined when unknown. */
  readonly clientAddress: string | undefined
  readonly requestId: string
  /** By {@link monotonicMillis}. */
  readonly startedAtMillis: number
  /** The pattern of the route; null when none matches. */
  readonly pattern: Effect.Effect<string | null>
  /** The response for a failure of `app`. */
  readonly recover: (cause: Cause.Cause<unknown>) => Effect.Effect<HttpServerResponse.HttpServerResponse>
  readonly overHttps: boolean
}

/** Adds log annotations, span, metric, access log line and headers to a request. Failures become responses. */
export const withRequestContext =
  ({
    clientAddress,
    headers,
    method,
    overHttps,
    path,
    pattern,
    recover,
    requestId,
    startedAtMillis
  }: RequestInfo) =>
  <E, R>(app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.gen(function* () {
      // The fiber ends with the request, so the annotations need not be removed.
      yield* FiberRef.update(
        FiberRef.currentLogAnnotations,
        flow(
          HashMap.set<string, unknown>("requestId", requestId),
          HashMap.set<string, unknown>("method", method),
          HashMap.set<string, unknown>("path", path)
        )
      )
      yield* workFor(networkOf(clientAddress))
      const record = ({ status }: HttpServerResponse.HttpServerResponse) =>
        Effect.gen(function* () {
          const route = yield* pattern
          const millis = (yield* monotonicMillis) - startedAtMillis
          RequestMetrics.observe(method, route, status, millis, yield* currentTrace)
          yield* AccessLog.write(route, status, millis)
        })
      const response = yield* app.pipe(
        Effect.catchAllCause((cause) =>
          isClientDisconnect(cause) ? Effect.failCause(cause) : recover(cause)
        ),
        Effect.tap(record),
        Span.withRequestSpan(
          { method, headers },
          requestId,
          pattern,
          ({ status }: HttpServerResponse.HttpServerResponse) => status
        )
      )
      return Headers.complete(response, requestId, overHttps, yield* FiberRef.get(Headers.extra))
    })

/** Lets the server repeat a refusal without handling the request again. */
const rememberRefusal = (
  source: IncomingMessage,
  response: HttpServerResponse.HttpServerResponse,
  requestId: string,
  pattern: Effect.Effect<string | null>
) => Effect.map(pattern, (route) => RepeatedRefusals.remember(source, response, requestId, route))

/**
 * Encodes what the router would change: a `;` or `#` in the path, where the query would begin, and the slashes of a query
 * with `//`, which it would join, though they belong to a value.
 */
const withEncodedUrl = (request: HttpServerRequest.HttpServerRequest) => {
  const { url } = request
  const queryStart = url.indexOf("?")
  const pathEnd = queryStart === -1 ? url.length : queryStart
  const path = url.slice(0, pathEnd).replaceAll(";", "%3B").replaceAll("#", "%23")
  const query = url.includes("//", pathEnd) ? url.slice(pathEnd).replaceAll("/", "%2F") : url.slice(pathEnd)
  return path + query === url ? request : request.modify({ url: path + query })
}

/** The pattern of the route that matches a request; null when none does. */
const patternAt = (
  routes: ReadonlyArray<{ readonly method: string; readonly path: string }>,
  request: HttpServerRequest.HttpServerRequest
): string | null => {
  const pathname = pathOf(request)
  const requestedMethod = request.method === "HEAD" ? "GET" : request.method
  const route = routes.find(
    ({ method, path }) =>
      (method === requestedMethod || method === "*") &&
      path !== "*" &&
      path !== "/*" &&
      Routes.matches(path, pathname)
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

const optionsResponse = (
  request: HttpServerRequest.HttpServerRequest,
  methods: Methods,
  requestId: string
) => {
  if (Headers.isPreflight(request)) return Headers.preflight(request)
  return methods.length === 0
    ? unmatchedResponse(request.method, methods, requestId, errorResponseOf(pathOf(request)))
    : HttpServerResponse.empty({ status: 204, headers: { allow: methods.join(", ") } })
}

/**
 * The router's default limit is 100 characters per parameter. A chat's id has up to 200 characters, each up to
 * twelve when encoded. By default the router also ignores case, which `Routes.matches` does not, and matches lower-case
 * paths of another length when a parameter has letters such as `İ`.
 */
export const routerConfig = HttpRouter.setRouterConfig({ maxParamLength: 2_400, caseSensitive: true })

/** Routes without parameters, by method and path. */
const staticRoutes = (routes: ReadonlyArray<{ readonly method: string; readonly path: string }>) =>
  new Set(routes.filter(({ path }) => !/[:*]/u.test(path)).map(Routes.keyOf))

/** Wraps the whole application. */
export const layer: Layer.Layer<never, never, HttpApi.Api> = HttpApiBuilder.middleware(
  Effect.gen(function* () {
    const { api } = yield* HttpApi.Api
    const overHttps = yield* Headers.OverHttps
    const proxies = yield* TrustedProxies
    /** The client's address behind trusted proxies. A host that passes requests on gives the address itself. */
    const clientAddressOf = ({ remoteAddress, source }: HttpServerRequest.HttpServerRequest) =>
      source instanceof IncomingMessage ? addressOf(proxies, source) : Option.getOrUndefined(remoteAddress)
    const { router } = yield* HttpApiBuilder.Router
    const declared = new Map(Routes.table(api).map((route) => [Routes.keyOf(route), route] as const))
    const hints = FieldHints.make(api)
    const bodies: Body.RouteBodyRules = {
      // Undeclared routes are those of MCP, SCIM and webhooks.
      maxBytesOf: (route) =>
        declared.get(Routes.keyOf(route))?.maxBodyBytes ??
        (route.path.startsWith("/api/webhooks/") ? maxWebhookBytes : maxJsonBytes),
      hasJsonBody: (route) => declared.get(Routes.keyOf(route))?.hasJsonBody === true,
      onParsed: (route, value) => hints.body(Routes.keyOf(route), value)
    }
    // Evaluated at the first request, when all routes are registered.
    const routes = yield* Effect.cached(Effect.map(router, (all) => Chunk.toReadonlyArray(all.routes)))
    // The most frequent routes have no parameters. They are found by one lookup.
    const staticKeys = yield* Effect.cached(Effect.map(routes, staticRoutes))
    const patternOf = (request: HttpServerRequest.HttpServerRequest) =>
      Effect.flatMap(staticKeys, (keys) =>
        keys.has(`${request.method} ${pathOf(request)}`)
          ? Effect.succeed(pathOf(request))
          : Effect.map(routes, (all) => patternAt(all, request))
      )
    return (app: HttpApp.Default) =>
      Effect.gen(function* () {
        const request = withEncodedUrl(yield* HttpServerRequest.HttpServerRequest)
        const requestId = yield* RequestId.resolve(request.headers[RequestId.header])
        const methods = Effect.map(routes, (all) => methodsAt(all, request))
        if (request.method === "OPTIONS") {
          return Headers.complete(optionsResponse(request, yield* methods, requestId), requestId, overHttps)
        }
        const clientAddress = clientAddressOf(request)
        const hintQuery = request.url.includes("?")
          ? Effect.flatMap(patternOf(request), (path) =>
              path === null
                ? Effect.void
                : hints.query(Routes.keyOf({ method: request.method, path }), request.url)
            )
          : Effect.void
        const handled = Effect.zipRight(hintQuery, app).pipe(
          Effect.mapInputContext((context: Context.Context<HttpServerRequest.HttpServerRequest>) =>
            context.pipe(
              Context.add(
                HttpServerRequest.HttpServerRequest,
                Body.withBodyLimit(request, clientAddress, bodies)
              ),
              Context.add(RequestId.RequestId, requestId)
            )
          ),
          withRequestContext({
            method: request.method,
            path: pathOf(request),
            headers: () => request.headers,
            clientAddress,
            requestId,
            startedAtMillis: yield* monotonicMillis,
            pattern: patternOf(request),
            recover: (cause) => recover(cause, request, methods, requestId),
            overHttps
          }),
          Effect.tap((response) =>
            response.status === 503 && request.source instanceof IncomingMessage
              ? rememberRefusal(request.source, response, requestId, patternOf(request))
              : Effect.void
          )
        )
        return yield* isExecutedOnce(request) ? inOwnFiber(handled) : handled
      })
  })
).pipe(Layer.provide(HttpApiBuilder.Router.Live))
