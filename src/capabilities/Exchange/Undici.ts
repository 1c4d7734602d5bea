/** {@link Exchange} by undici's own callbacks, on the connections of {@link NodeHttpClient.Dispatcher}. */
import type { IncomingHttpHeaders } from "node:http"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberRef from "effect/FiberRef"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import type { Dispatcher } from "undici"
import { urlOf } from "../../domain/Address.ts"
import { withSharedPermit } from "../../domain/CurrentOwner.ts"
import { FairLimiter } from "../../domain/FairLimiter.ts"
import { type Answered, Exchange, ExchangeError, type Posted } from "../Exchange.ts"

/** Bytes that may wait for a slow reader before the provider has to. */
const backlog = 1024 * 1024
/** Bytes of an answer of which enough was read that are still taken, so that its connection can be used again. */
const mostDropped = 64 * 1024

/** As many as the dispatcher opens; an owner may have half, and waits for them no longer than for an answer to begin. */
const providerConnections = {
  permits: 2_048,
  maxPermitsPerOwner: 1_024,
  maxWaiting: 4_096,
  maxWait: "30 seconds"
} as const

const tooMany = () => new ExchangeError({ reason: "Late", code: "" })

const late = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"])
const nativeCode = /^[A-Z][A-Z_]{2,40}$/u

/** The code of an error or of what caused it. */
const codeOf = (error: unknown, depth = 4): string => {
  if (typeof error !== "object" || error === null || depth === 0) return ""
  if ("code" in error && typeof error.code === "string" && nativeCode.test(error.code)) return error.code
  return "cause" in error ? codeOf(error.cause, depth - 1) : ""
}

const failureOf = (error: unknown) => {
  const code = codeOf(error)
  if (late.has(code)) return new ExchangeError({ reason: "Late", code })
  return new ExchangeError({ reason: code === "UND_ERR_INVALID_ARG" ? "Invalid" : "Broken", code })
}

const plain = (headers: IncomingHttpHeaders): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value])
  )

type Chunks = ReadonlyArray<Uint8Array>

/** A defect of `on` is its caller's, not undici's. */
const attempted = <A, E, R>(
  on: (chunks: Chunks | null) => Effect.Effect<A, E, R> | null,
  chunks: Chunks | null
): Effect.Effect<A, E, R> | null => {
  try {
    return on(chunks)
  } catch (defect) {
    return Effect.die(defect)
  }
}

/** One request, told by undici what becomes of it. */
class Call implements Dispatcher.DispatchHandler {
  readonly #dispatcher: Dispatcher
  readonly #posted: Posted
  readonly #trace: Readonly<Record<string, string>>
  #controller: Dispatcher.DispatchController | null = null
  #waiting: Array<Uint8Array> = []
  #size = 0
  #paused = false
  #over: Exit.Exit<null, ExchangeError> | null = null
  #left = false
  #onAnswer: (answer: Effect.Effect<Answered, ExchangeError>) => void = () => {}
  #onChunks: ((come: Exit.Exit<Chunks | null, ExchangeError>) => void) | null = null

  constructor(dispatcher: Dispatcher, posted: Posted, trace: Readonly<Record<string, string>>) {
    this.#dispatcher = dispatcher
    this.#posted = posted
    this.#trace = trace
  }

  /** Sends the request; nothing is sent before. */
  readonly answered: Effect.Effect<Answered, ExchangeError> = Effect.async((resume) => {
    this.#onAnswer = resume
    const { body, first, headers, next, url } = this.#posted
    const address = urlOf(url)
    if (address === null) return resume(new ExchangeError({ reason: "Invalid", code: "" }))
    const { origin, pathname, search } = address
    this.#dispatcher.dispatch(
      {
        origin,
        path: pathname + search,
        method: "POST",
        headers: { "content-type": "application/json", ...headers, ...this.#trace },
        body,
        headersTimeout: Duration.toMillis(first),
        bodyTimeout: Duration.toMillis(next)
      },
      this
    )
  })

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#left) this.#abort(controller)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return
    this.#onAnswer(
      Effect.succeed({
        status,
        headers: plain(headers),
        read: this.#read,
        each: this.#each,
        enough: this.#enough
      })
    )
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#size += chunk.length
    if (this.#left) {
      if (this.#size > mostDropped) this.#abort(controller)
      return
    }
    this.#waiting.push(chunk)
    if (this.#onChunks !== null) this.#deliver(this.#onChunks)
    else if (this.#size > backlog && !this.#paused) {
      this.#paused = true
      controller.pause()
    }
  }

  onResponseEnd(): void {
    this.#end(Exit.succeed(null))
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#end(Exit.fail(failureOf(error)))
  }

  #end(exit: Exit.Exit<null, ExchangeError>): void {
    this.#over = exit
    if (Exit.isFailure(exit)) this.#onAnswer(Effect.failCause(exit.cause))
    if (this.#onChunks !== null) this.#deliver(this.#onChunks)
  }

  /** What waits, else how it ended. */
  #deliver(to: (come: Exit.Exit<Chunks | null, ExchangeError>) => void): void {
    if (this.#waiting.length === 0 && this.#over !== null) return to(this.#over)
    const chunks = this.#waiting
    this.#waiting = []
    this.#size = 0
    if (this.#paused) {
      this.#paused = false
      this.#controller?.resume()
    }
    to(Exit.succeed(chunks))
  }

  readonly #each: Answered["each"] = <A, E, R>(
    on: (chunks: Chunks | null) => Effect.Effect<A, E, R> | null
  ) =>
    Effect.async<A, E | ExchangeError, R>((resume) => {
      const told = (come: Exit.Exit<Chunks | null, ExchangeError>) => {
        const then = Exit.isFailure(come) ? Effect.failCause(come.cause) : attempted(on, come.value)
        if (then === null && Exit.isSuccess(come) && come.value !== null) return
        this.#onChunks = null
        resume(then ?? Effect.dieMessage("Nothing is said to the end of an answer."))
      }
      this.#onChunks = told
      while (this.#onChunks === told && (this.#waiting.length > 0 || this.#over !== null)) this.#deliver(told)
      return Effect.sync(() => {
        if (this.#onChunks === told) this.#onChunks = null
      })
    })

  readonly #read: Effect.Effect<Chunks | null, ExchangeError> = this.#each(Effect.succeed)

  readonly #enough: Effect.Effect<void> = Effect.sync(() => {
    this.#left = true
    this.#waiting = []
    this.#size = 0
    if (this.#paused) this.#controller?.resume()
  })

  #abort(controller: Dispatcher.DispatchController): void {
    controller.abort(new Error("Nobody waits for the answer any more."))
  }

  #leave(): void {
    if (this.#over !== null) return
    this.#left = true
    if (this.#controller !== null) this.#abort(this.#controller)
  }

  /** For whoever goes: ends what is not over, unless {@link enough} leaves it its time. */
  readonly release = Effect.sync(() => {
    if (!this.#left) this.#leave()
  })
}

/** Our trace ids, for a gateway of the operator's that goes on with the trace. */
const traceOf = (context: Context.Context<never>): Readonly<Record<string, string>> => {
  const span = Option.getOrUndefined(Context.getOption(context, Tracer.ParentSpan))
  return span?.sampled === true
    ? { traceparent: `00-${span.traceId}-${span.spanId}-01`, b3: `${span.traceId}-${span.spanId}-1` }
    : {}
}

export const layer: Layer.Layer<Exchange, never, NodeHttpClient.Dispatcher> = Layer.effect(
  Exchange,
  Effect.map(NodeHttpClient.Dispatcher, (dispatcher) => {
    const connections = new FairLimiter({ name: "provider-connections", ...providerConnections })
    return {
      post: <A, E, R>(posted: Posted, use: (answer: Answered) => Effect.Effect<A, E, R>) =>
        Effect.withFiberRuntime<A, E | ExchangeError, R>((fiber) => {
          const traced = fiber.getFiberRef(FiberRef.currentTracerEnabled)
          const call = new Call(dispatcher, posted, traced ? traceOf(fiber.currentContext) : {})
          const exchange = Effect.ensuring(Effect.flatMap(call.answered, use), call.release)
          return withSharedPermit(connections, tooMany)(exchange)
        })
    }
  })
)
