/**
 * {@link StreamingPost} by undici's callbacks, on the connections of {@link NodeHttpClient.Dispatcher}. An answer of 50
 * pieces takes 0.7 ms of CPU, instead of 1.26 ms through `HttpClient`. Every turn reads two answers.
 */
import type { IncomingHttpHeaders } from "node:http"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberRef from "effect/FiberRef"
import * as Layer from "effect/Layer"
import * as Mailbox from "effect/Mailbox"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import type { Dispatcher } from "undici"
import { urlOf } from "../../domain/Address.ts"
import { currentOwner } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { type Answered, StreamingPost, StreamingPostError, type Posted } from "../StreamingPost.ts"
import { MiB } from "../../domain/Bytes.ts"

/** Maximum number of unread bytes, before backpressure is applied to the provider. */
const maxUnreadBytes = MiB
/** Maximum number of bytes of an answer's rest that are read and dropped, so that its connection can be reused. */
const maxDroppedBytes = 64 * 1024

/** The limit of the dispatcher. An owner may use half, and waits no longer than the time-out of an answer. */
const providerConnections = {
  permits: 2_048,
  maxPermitsPerOwner: 1_024,
  maxWaiting: 4_096,
  maxWait: "30 seconds"
} as const

const tooManyRequests = () => new StreamingPostError({ reason: "Late", code: "" })

const timeoutCodes = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"])
const nativeCode = /^[A-Z][A-Z_]{2,40}$/u

/** The code of an error or of its cause. */
const codeOf = (error: unknown, depth = 4): string => {
  if (typeof error !== "object" || error === null || depth === 0) return ""
  if ("code" in error && typeof error.code === "string" && nativeCode.test(error.code)) return error.code
  return "cause" in error ? codeOf(error.cause, depth - 1) : ""
}

const failureOf = (error: unknown) => {
  const code = codeOf(error)
  if (timeoutCodes.has(code)) return new StreamingPostError({ reason: "Late", code })
  return new StreamingPostError({ reason: code === "UND_ERR_INVALID_ARG" ? "Invalid" : "Broken", code })
}

const headersByName = (headers: IncomingHttpHeaders): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value])
  )

/** One request, with the callbacks that undici calls. */
class Call implements Dispatcher.DispatchHandler {
  readonly #dispatcher: Dispatcher
  readonly #posted: Posted
  readonly #traceHeaders: Readonly<Record<string, string>>
  #controller: Dispatcher.DispatchController | null = null
  readonly #unread: Mailbox.Mailbox<Uint8Array, StreamingPostError>
  #unreadBytes = 0
  #isPaused = false
  #hasEnded = false
  #isDiscarding = false
  #onAnswer: (answer: Effect.Effect<Answered, StreamingPostError>) => void = () => {}

  constructor(
    dispatcher: Dispatcher,
    posted: Posted,
    trace: Readonly<Record<string, string>>,
    unread: Mailbox.Mailbox<Uint8Array, StreamingPostError>
  ) {
    this.#dispatcher = dispatcher
    this.#posted = posted
    this.#traceHeaders = trace
    this.#unread = unread
  }

  /** Sends the request when run. */
  readonly answered: Effect.Effect<Answered, StreamingPostError> = Effect.async((resume) => {
    this.#onAnswer = resume
    const { body, first, headers, next, url } = this.#posted
    const address = urlOf(url)
    if (address === null) return resume(new StreamingPostError({ reason: "Invalid", code: "" }))
    const { origin, pathname, search } = address
    this.#dispatcher.dispatch(
      {
        origin,
        path: pathname + search,
        method: "POST",
        headers: { "content-type": "application/json", ...headers, ...this.#traceHeaders },
        body,
        headersTimeout: Duration.toMillis(first),
        bodyTimeout: Duration.toMillis(next)
      },
      this
    )
  })

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#isDiscarding) this.#abort(controller)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return
    this.#onAnswer(
      Effect.succeed({
        status,
        headers: headersByName(headers),
        read: this.#read,
        noTokensLeft: this.#noTokensLeft
      })
    )
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#unreadBytes += chunk.length
    if (this.#isDiscarding) {
      if (this.#unreadBytes > maxDroppedBytes) this.#abort(controller)
      return
    }
    this.#unread.unsafeOffer(chunk)
    if (this.#unreadBytes > maxUnreadBytes && !this.#isPaused) {
      this.#isPaused = true
      controller.pause()
    }
  }

  onResponseEnd(): void {
    this.#end(Exit.void)
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#end(Exit.fail(failureOf(error)))
  }

  #end(exit: Exit.Exit<void, StreamingPostError>): void {
    this.#hasEnded = true
    this.#unread.unsafeDone(exit)
    if (Exit.isFailure(exit)) this.#onAnswer(Effect.failCause(exit.cause))
  }

  /** All received bytes were read or dropped. */
  #resume(): void {
    this.#unreadBytes = 0
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#controller?.resume()
  }

  get #read(): Answered["read"] {
    return Effect.map(this.#unread.takeAll, ([chunks]) => {
      this.#resume()
      return Chunk.isEmpty(chunks) ? null : Chunk.toReadonlyArray(chunks)
    })
  }

  get #noTokensLeft(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.#isDiscarding = true
      this.#resume()
    })
  }

  #abort(controller: Dispatcher.DispatchController): void {
    controller.abort(new Error("The caller no longer waits for the answer."))
  }

  #abandon(): void {
    if (this.#hasEnded) return
    this.#isDiscarding = true
    if (this.#controller !== null) this.#abort(this.#controller)
  }

  /** Ends the request when the caller leaves, unless `noTokensLeft` lets it finish. */
  readonly release = Effect.sync(() => {
    if (!this.#isDiscarding) this.#abandon()
  })
}

/** Trace headers, for a gateway of the operator that continues the trace. */
const traceHeadersOf = (context: Context.Context<never>): Readonly<Record<string, string>> => {
  const span = Option.getOrUndefined(Context.getOption(context, Tracer.ParentSpan))
  return span?.sampled === true
    ? { traceparent: `00-${span.traceId}-${span.spanId}-01`, b3: `${span.traceId}-${span.spanId}-1` }
    : {}
}

export const layer: Layer.Layer<StreamingPost, never, NodeHttpClient.Dispatcher> = Layer.effect(
  StreamingPost,
  Effect.map(NodeHttpClient.Dispatcher, (dispatcher) => {
    const connections = new FairLimiter({ name: "provider-connections", ...providerConnections })
    return {
      post: (posted) =>
        Effect.withFiberRuntime((fiber) => {
          const trace = fiber.getFiberRef(FiberRef.currentTracerEnabled)
            ? traceHeadersOf(fiber.currentContext)
            : {}
          return Effect.mapError(connections.acquire(fiber.getFiberRef(currentOwner)), tooManyRequests).pipe(
            Effect.zipRight(Mailbox.make<Uint8Array, StreamingPostError>()),
            Effect.map((unread) => new Call(dispatcher, posted, trace, unread)),
            Effect.tap((call) => Effect.addFinalizer(() => call.release)),
            Effect.flatMap((call) => call.answered)
          )
        })
    }
  })
)
