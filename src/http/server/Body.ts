/**
 * Bounded request bodies. The framework's own limit destroys the socket before a response can be sent, and without it
 * there is no limit. Here a body over the limit of its route is refused while the rest is drained, so that the client
 * can read the 413.
 */
import { IncomingMessage } from "node:http"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerError from "@effect/platform/HttpServerError"
import type * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as Multipart from "@effect/platform/Multipart"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { type CodedError, ValidationError } from "../../domain/Errors.ts"
import * as Json from "../../domain/Json.ts"
import * as RequestBody from "./RequestBody.ts"

type Request = HttpServerRequest.HttpServerRequest

/** Maximum nesting of a body. A body nests its fields, which may have the maximum depth themselves. */
const maxDepth = 2 * Json.maxJsonDepth

/** A body that cannot be read. The boundary answers with `cause` when it is one of the documented errors. */
const unreadable = (request: Request, cause: CodedError) =>
  new HttpServerError.RequestError({ request, reason: "Decode", cause })

/** For servers other than Node's: the platform's stream of the body. */
const fromStream = (request: Request, maxBytes: number) => {
  if (request.source instanceof globalThis.Request && request.source.body === null) {
    return Effect.succeed(new Uint8Array())
  }
  const tooLarge = () => unreadable(request, RequestBody.tooLarge(maxBytes))
  return RequestBody.limitBytes(request.stream, maxBytes, tooLarge).pipe(
    Stream.runCollect,
    Effect.map((chunks): Uint8Array => Buffer.concat(Chunk.toReadonlyArray(chunks)))
  )
}

const read = (
  request: Request,
  maxBytes: number
): Effect.Effect<Uint8Array, HttpServerError.RequestError> => {
  if (request.source instanceof IncomingMessage) {
    return Effect.mapError(RequestBody.readAll(request.source, maxBytes), (cause) =>
      unreadable(request, cause)
    )
  }
  if (Number(request.headers["content-length"]) > maxBytes) {
    return Effect.fail(unreadable(request, RequestBody.tooLarge(maxBytes)))
  }
  return fromStream(request, maxBytes)
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

const textOf = (body: Uint8Array): Effect.Effect<string, ValidationError> =>
  Effect.try({
    try: () => utf8.decode(body),
    catch: () => new ValidationError({ message: "The body is not valid UTF-8." })
  })

/** The value of a JSON body, in a form that can be stored. */
const parseJson = (text: string): Effect.Effect<unknown, ValidationError> => {
  // An empty body has no fields.
  if (text.trim() === "") return Effect.succeed({})
  return Effect.mapError(
    Json.parse(text, maxDepth),
    ({ reason }) =>
      new ValidationError({
        message: reason === "malformed" ? "The body is not valid JSON." : "The body is nested too deeply."
      })
  )
}

const notJson = new ValidationError({ message: "Send a JSON body with content-type application/json." })

type Route = HttpRouter.Route<unknown, unknown>

/** Rules for the bodies of routes. */
export interface RouteBodyRules {
  /** Maximum bytes. */
  readonly maxBytesOf: (route: Route) => number
  /** True if the body is declared as JSON. */
  readonly hasJsonBody: (route: Route) => boolean
  /** Receives the value of a JSON body. */
  readonly onParsed: (route: Route, value: unknown) => Effect.Effect<void>
}

/**
 * `request` with the client's address, and with its body limited by its route. The body is read once and cached. Forms
 * are read by `http/server/Upload` from the original request.
 */
export const withBodyLimit = (
  request: Request,
  clientAddress: string | undefined,
  { hasJsonBody, maxBytesOf, onParsed }: RouteBodyRules
) => {
  let outcome: Exit.Exit<Uint8Array, HttpServerError.RequestError> | undefined
  const readBody = Effect.flatMap(Effect.serviceOption(HttpRouter.RouteContext), (context) =>
    read(request, Option.match(context, { onNone: () => 0, onSome: ({ route }) => maxBytesOf(route) }))
  )
  const bytes = Effect.suspend(
    () =>
      outcome ??
      Effect.flatMap(Effect.exit(readBody), (exit) => {
        outcome = exit
        return exit
      })
  )
  const text = Effect.flatMap(bytes, (body) =>
    Effect.mapError(textOf(body), (cause) => unreadable(request, cause))
  )
  const parsing = Effect.flatMap(text, (body) =>
    Effect.mapError(parseJson(body), (cause) => unreadable(request, cause))
  ).pipe(
    Effect.tap((value) =>
      Effect.flatMap(
        Effect.serviceOption(HttpRouter.RouteContext),
        Option.match({ onNone: () => Effect.void, onSome: ({ route }) => onParsed(route, value) })
      )
    )
  )
  // The framework reads a body of an unknown type as bytes, which would count as an object without fields.
  const buffer = Effect.flatMap(
    Effect.zip(bytes, Effect.serviceOption(HttpRouter.RouteContext)),
    ([body, context]) =>
      body.length > 0 && Option.exists(context, ({ route }) => hasJsonBody(route))
        ? Effect.fail(unreadable(request, notJson))
        : Effect.succeed(body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength))
  )
  const noForm = Effect.failSync(() => new Multipart.MultipartError({ reason: "Parse", cause: notJson }))
  const wrapped: Request = Object.create(request, {
    remoteAddress: { value: Option.fromNullable(clientAddress) },
    arrayBuffer: { get: () => buffer },
    text: { get: () => text },
    json: { get: () => parsing },
    stream: { get: () => Stream.fromEffect(bytes) },
    urlParamsBody: { get: () => Effect.fail(unreadable(request, notJson)) },
    multipart: { get: () => noForm },
    multipartStream: { get: () => Stream.fromEffect(noForm) }
  })
  return wrapped
}
