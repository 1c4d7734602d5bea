/**
 * Deliveries of messaging providers in the lane beside the framework: the same use-case, envelope and headers as
 * `MessagingHandlers`, which answer wherever there is no lane.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Runtime from "effect/Runtime"
import * as Response from "@effect/platform/HttpServerResponse"
import type { Delivered, MessagingChannel } from "../../domain/Channel.ts"
import { type CodedError, InternalError } from "../../domain/Errors.ts"
import { Intake } from "../../usecases/channels/Intake.ts"
import { answer } from "../Boundary.ts"
import { webhookLimit } from "../Envelope.ts"
import * as Headers from "../Headers.ts"
import { Lane, send } from "../Lane.ts"
import { collect } from "../RequestBody.ts"
import * as RequestId from "../RequestId.ts"
import * as RequestMetrics from "../system/RequestMetrics.ts"

interface Route {
  readonly pattern: string
  readonly channel: MessagingChannel
}

const routes: ReadonlyMap<string, Route> = new Map(
  (["whatsapp", "messenger"] as const).map((channel) => {
    const pattern = `/api/webhooks/${channel}`
    return [pattern, { pattern, channel }]
  })
)

const internal = new InternalError({ message: "Something went wrong on our side." })

/** Opens the lane for both providers. */
export const layer: Layer.Layer<never, never, Lane | Intake> = Layer.scopedDiscard(
  Effect.gen(function* () {
    const intake = yield* Intake
    const lane = yield* Lane
    const overHttps = yield* Headers.OverHttps
    const clock = yield* Effect.clock
    const run = Runtime.runFork(yield* Effect.runtime())

    const { headers } = Headers.complete(Response.unsafeJson(null), "", overHttps)
    /** Its text is ASCII: counters, and an id of letters and digits. */
    const accept = (response: ServerResponse, data: Delivered, requestId: string) => {
      const text = JSON.stringify({ data, meta: { requestId } })
      response.writeHead(200, {
        ...headers,
        "content-length": String(text.length),
        [RequestId.header]: requestId
      })
      response.end(text)
    }
    const refuse = (response: ServerResponse, cause: Cause.Cause<CodedError>, requestId: string) => {
      const error = Option.getOrElse(Cause.failureOption(cause), () => internal)
      const refusal = answer(error, requestId)
      send(response, Headers.complete(refusal, requestId, overHttps))
      return refusal.status
    }

    const receive = (
      { channel, pattern }: Route,
      begun: number,
      request: IncomingMessage,
      response: ServerResponse,
      read: Either.Either<Uint8Array, CodedError>
    ) => {
      const now = clock.unsafeCurrentTimeMillis()
      const requestId = RequestId.of(Headers.line(request.headers, RequestId.header), now)
      const done = (outcome: Exit.Exit<Delivered, CodedError>) => {
        let status = 200
        if (Exit.isSuccess(outcome)) accept(response, outcome.value, requestId)
        else status = refuse(response, outcome.cause, requestId)
        RequestMetrics.observe("POST", pattern, status, performance.now() - begun)
      }
      if (Either.isLeft(read)) return done(Exit.fail(read.left))
      const { right: body } = read
      const signature = Headers.line(request.headers, "x-hub-signature-256")
      if (intake.take(channel, signature, body, DateTime.unsafeMake(now), done)) return
      run(
        intake.deliver(channel, signature, body).pipe(
          Effect.tapErrorCause((cause) =>
            Cause.isFailure(cause) ? Effect.void : Effect.logError("A request failed unexpectedly", cause)
          ),
          Effect.annotateLogs({ requestId, method: "POST", path: request.url }),
          Effect.exit,
          Effect.map(done)
        )
      )
    }

    yield* lane.open((request, response) => {
      const route =
        request.method === "POST" ? routes.get(request.url?.split("?", 1).join("") ?? "") : undefined
      if (route === undefined) return false
      const begun = performance.now()
      collect(request, webhookLimit, (read) => receive(route, begun, request, response, read))
      return true
    })
  })
)
