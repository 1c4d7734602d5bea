/**
 * `GET /api/realtime`: the WebSocket of one conversation. It is not part of the declared API, because it does not
 * answer in HTTP. A request that is not an upgrade gets an error in the envelope.
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpMiddleware from "@effect/platform/HttpMiddleware"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { CloseEvent } from "@effect/platform/Socket"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { networkOf } from "../../domain/ClientNetwork.ts"
import { ValidationError } from "../../domain/Errors.ts"
import { MessageId } from "../../domain/Ids.ts"
import { type Grant, RealtimeAccess } from "../../usecases/chat/RealtimeAccess.ts"
import { TenantGate } from "../../usecases/operations/moves/TenantGate.ts"
import { Frame } from "../../domain/conversations/RealtimeFrame.ts"
import { RealtimeFeed } from "../../usecases/conversations/RealtimeFeed.ts"
import * as Connection from "./Connection.ts"
import { realtimePath } from "./RealtimePath.ts"
import { makeSocketLimits } from "./SocketLimits.ts"

export interface Limits {
  /** Maximum sockets of this process. */
  readonly sockets: number
  /** Maximum sockets of one conversation: those of a visitor's pages and of team members. */
  readonly socketsPerConversation: number
  readonly pingEvery: Duration.DurationInput
}

const defaults: Limits = { sockets: 1_000, socketsPerConversation: 32, pingEvery: "30 seconds" }

const subprotocol = "spoke."

const encode = Schema.encode(Schema.parseJson(Frame))

const slotRevoked = new CloseEvent(Connection.codes.tryAgainLater, "Others need the place. Connect again.")
const tenantMoved = new CloseEvent(Connection.codes.tryAgainLater, "The account was moved. Connect again.")
const unauthorized = new CloseEvent(Connection.codes.unauthorized, "The token is invalid or expired.")

const parametersOf = (request: HttpServerRequest.HttpServerRequest) =>
  new URLSearchParams(request.url.split("?").slice(1).join("?"))

/** The token from the query, or from the offered subprotocols. */
const tokenOf = (request: HttpServerRequest.HttpServerRequest, parameters: URLSearchParams): string =>
  parameters.get("token") ??
  (request.headers["sec-websocket-protocol"] ?? "")
    .split(",")
    .map((name) => name.trim())
    .find((name) => name.startsWith(subprotocol))
    ?.slice(subprotocol.length) ??
  ""

const MessageReference = Schema.NullOr(MessageId)

/** The frames for the socket of `grant`. */
const framesOf = (feed: RealtimeFeed, grant: Grant, lastMessageId: MessageId | null) =>
  feed.follow(grant, lastMessageId).pipe(
    Stream.mapEffect((frame) => Effect.orDie(encode(frame))),
    // A token is invalid once its conversation, key or session is gone.
    Stream.mapError(() => unauthorized)
  )

const expiry = (grant: Grant) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.delay(Effect.succeed(unauthorized), Math.max(0, grant.expires - now))
  )

/** Adds the route. */
export const layer = (limits: Partial<Limits> = {}) =>
  HttpApiBuilder.Router.use((router) =>
    Effect.gen(function* () {
      const access = yield* RealtimeAccess
      const feed = yield* RealtimeFeed
      const gate = yield* TenantGate
      const { pingEvery, sockets, socketsPerConversation } = { ...defaults, ...limits }
      const acquireSlot = makeSocketLimits(sockets, socketsPerConversation)

      const connect = Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        if (request.headers["upgrade"]?.toLowerCase() !== "websocket") {
          return yield* new ValidationError({ message: "Connect to this address with a WebSocket." })
        }
        const parameters = parametersOf(request)
        const lastMessageId = yield* Schema.decodeUnknown(MessageReference)(
          parameters.get("lastMessageId")
        ).pipe(
          Effect.mapError(() => new ValidationError({ message: "lastMessageId is not the id of a message." }))
        )
        const granted = yield* access.verify(tokenOf(request, parameters))
        const grant = Option.getOrNull(granted)
        const whenRevoked = yield* acquireSlot({
          conversationId: grant?.conversationId ?? null,
          tenantId: grant?.tenantId ?? "unknown",
          network: networkOf(Option.getOrUndefined(request.remoteAddress))
        })
        if (grant !== null) yield* gate.enter(grant.tenantId)
        yield* grant === null
          ? Connection.serve(request, Stream.fail(unauthorized), { pingEvery, until: Effect.never })
          : Connection.serve(request, framesOf(feed, grant, lastMessageId), {
              pingEvery,
              until: Effect.raceAll([
                expiry(grant),
                Effect.as(whenRevoked, slotRevoked),
                Effect.as(gate.whenAway(grant.tenantId), tenantMoved)
              ])
            })
        return HttpServerResponse.empty()
      }).pipe(Effect.scoped)
      yield* router.get(realtimePath, connect)
    })
  )

/** Excludes socket addresses, which contain tokens, from the spans of the server `layer`. */
export const untraced = HttpMiddleware.withTracerDisabledWhen(
  ({ url }) => url === realtimePath || url.startsWith(`${realtimePath}?`)
)
