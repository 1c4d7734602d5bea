/**
 * Overload control between a server's socket and its routes. It bounds connections, waiting requests and bodies, each
 * fairly between clients, and answers 503 `SERVICE_UNAVAILABLE` with `retry-after` where a bound is reached or the
 * server is going down. Health checks and webhooks do not wait behind other requests: both have bounds of their own.
 */
import { IncomingMessage, type Server, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { performance } from "node:perf_hooks"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import { DurationHistogram } from "../../concurrency/DurationHistogram.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import * as AccessLog from "./AccessLog.ts"
import { errorResponseOf, pathOf } from "./Boundary.ts"
import { ownerOf, TrustedProxies } from "./ClientAddress.ts"
import * as Connections from "./Connections.ts"
import * as Headers from "./Headers.ts"
import { checkIntervalMillis, LoadShedder } from "./LoadShedder.ts"
import { type RawRequests, send } from "./RawRequests.ts"
import { closeAfter, RequestBodies, RequestBodyLimits } from "./RequestBody.ts"
import { RepeatedRefusals } from "./RepeatedRefusals.ts"
import * as RequestId from "./RequestId.ts"

/** A short query, run as a request would run it. Its duration is the database's lateness. Does nothing by default. */
export class DatabaseProbe extends Context.Reference<DatabaseProbe>()("http/Overload/DatabaseProbe", {
  defaultValue: (): Effect.Effect<unknown, unknown> => Effect.void
}) {}

/** Longest time a request may wait for admission. The default is that of `SPOKE_MAX_WAIT`. */
export class MaxWait extends Context.Reference<MaxWait>()("http/Overload/MaxWait", {
  defaultValue: (): Duration.Duration => Duration.seconds(30)
}) {}

/**
 * Completes when the process begins to drain. Connections are no longer kept alive from then on. Never completes by
 * default.
 */
export class DrainBegins extends Context.Reference<DrainBegins>()("http/Overload/DrainBegins", {
  defaultValue: (): Effect.Effect<void> => Effect.never
}) {}

/** Requests that may wait at the same time. Each holds its socket and its headers in memory. */
const maxWaitingRequests = 2_048
/** Interval and time-out of the database probe, which runs while requests wait. */
const probeTiming = { every: "100 millis", timeout: "10 seconds" } as const
/** Upper limit of `retry-after`. */
const maxRetryAfterSeconds = 30
/** Interval at which bodies and connections are checked while a request is open. */
const sweepInterval = Duration.seconds(1)

/** Routes whose requests skip the queue, by path prefix, each with a limit of unanswered requests. */
const makePriorityRoutes = () => [
  {
    prefixes: ["/healthz", "/readyz", "/metrics"],
    limiter: new FairLimiter({ name: "http-health-requests", permits: 64, maxPermitsPerOwner: 16 })
  },
  // A permit can be revoked while the request's body is incomplete. The owner with the most permits loses one first.
  {
    prefixes: ["/api/webhooks/"],
    limiter: new FairLimiter({ name: "http-webhook-requests", permits: 1_024 })
  }
]

const refusedRequests = Metric.counter("spoke_http_refused_total", {
  description: "Requests that were answered 503 because the process could not have begun them in time",
  incremental: true
})
const waitingRequests = Metric.gauge("spoke_http_waiting", { description: "Requests that wait to be begun" })
const waitDuration = new DurationHistogram<Readonly<Record<string, never>>>(
  "spoke_http_wait_seconds",
  "How long requests waited that could not be begun at once"
)

const overloaded = new ServiceUnavailable({ message: "The server has too much to do. Try again later." })
const notServing = new ServiceUnavailable({ message: "The server is starting or stopping. Try again." })

const isDone = (response: ServerResponse) => response.headersSent || response.destroyed

interface Settings {
  readonly overHttps: boolean
  /** Milliseconds. */
  readonly maxWait: number
  readonly bodies: RequestBodies
  readonly connections: Connections.Connections
  readonly rawRequests: RawRequests["Type"]
  readonly ownerOf: (request: IncomingMessage) => string
  /** True if each request is logged or traced. */
  readonly isLoggedOrTraced: boolean
}

/** Begins, queues or refuses each request of a server. */
class Admission {
  readonly shedder: LoadShedder
  /** Undefined if each request is logged or traced. */
  readonly #repeats: RepeatedRefusals | undefined
  readonly #server: Server
  readonly #emit: Server["emit"]
  readonly #clock: Clock.Clock
  readonly #settings: Settings
  readonly #priorityRoutes = makePriorityRoutes()
  /** Requests whose responses are not finished. */
  readonly open = new Map<ServerResponse, IncomingMessage>()
  #draining = false
  #closing = false

  constructor(server: Server, clock: Clock.Clock, settings: Settings) {
    this.#server = server
    this.#emit = server.emit
    this.#clock = clock
    this.#settings = settings
    this.#repeats = settings.isLoggedOrTraced ? undefined : new RepeatedRefusals(clock)
    const activeMillis = () => performance.eventLoopUtilization().active
    this.shedder = new LoadShedder(() => this.#now, activeMillis, {
      maxWait: settings.maxWait,
      maxWaiting: maxWaitingRequests
    })
  }

  get #now(): number {
    return Number(this.#clock.unsafeCurrentTimeNanos()) / 1e6
  }

  /** Passes an event to the listeners of the server. */
  emit(event: ReadonlyArray<unknown>): unknown {
    return Reflect.apply(this.#emit, this.#server, event)
  }

  /** Closes each connection after its pending response. */
  drain(): void {
    this.#draining = true
    for (const [response, request] of this.open) if (!response.headersSent) closeAfter(request, response)
  }

  /** Refuses every request from now on, including waiting ones. */
  close(): void {
    this.drain()
    this.#closing = true
    this.shedder.refuseAll()
  }

  /** True while {@link check} must be called every {@link checkIntervalMillis}. */
  get needsChecks(): boolean {
    return this.shedder.needsChecks || this.#repeats?.hasDelayed === true
  }

  check(): void {
    this.shedder.check()
    this.#repeats?.sendDue()
  }

  handleRequest(request: IncomingMessage, response: ServerResponse): void {
    const { bodies, connections } = this.#settings
    const owner = this.#settings.ownerOf(request)
    this.open.set(response, request)
    connections.beginRequest(request.socket)
    if (this.#draining) closeAfter(request, response)
    const refuse = (error: ServiceUnavailable, retryAfter: number) =>
      this.#refuse(request, response, error, retryAfter)
    const refuseOverloaded = (retryAfter: number) => {
      refusedRequests.unsafeUpdate(1, [])
      refuse(overloaded, retryAfter)
    }
    const priority = this.#priorityRoutes.find(({ prefixes }) =>
      prefixes.some((prefix) => request.url?.startsWith(prefix) === true)
    )
    const permit = priority?.limiter.request(owner, { onRevoked: () => bodies.revoke(request) })
    const startReading = bodies.register(request, response, owner, () => permit?.setInUse(true))
    const begin = () => {
      startReading()
      if (!this.#settings.rawRequests.handle(request, response)) this.emit(["request", request, response])
    }
    response.once("close", () => {
      this.open.delete(response)
      permit?.release()
      bodies.end(request)
      connections.endRequest(request.socket)
    })
    if (!this.#isServing) return refuse(notServing, 0)
    if (permit !== undefined) {
      return permit.state === "granted" ? begin() : refuseOverloaded(0)
    }
    const unanswered = () => (isDone(response) ? undefined : response)
    if (this.#repeats?.repeat(owner, request, unanswered) === true) return refusedRequests.unsafeUpdate(1, [])
    const arrivedAt = this.#now
    this.shedder.submit({
      owner,
      begin: () => {
        const millis = this.#now - arrivedAt
        if (millis >= 1) waitDuration.observe(millis, {})
        if (this.#isServing) begin()
        else refuse(notServing, 0)
      },
      refuse: (retryAfter) =>
        this.#isServing ? refuseOverloaded(retryAfter) : refuse(notServing, retryAfter),
      isDone: () => isDone(response)
    })
  }

  /** An upgrade to another protocol. It waits like other requests; then its handler owns the connection. */
  handleUpgrade(request: IncomingMessage, socket: Socket, event: ReadonlyArray<unknown>): void {
    this.#settings.connections.beginUpgrade(socket)
    const sentBefore = socket.bytesWritten
    // For an upgrade, Node removes its error listener and does not close the connection after the response.
    socket.on("error", () => {}).once("finish", () => socket.destroy())
    const isAnsweredOrClosed = () => socket.destroyed || socket.bytesWritten > sentBefore
    const openResponse = () => {
      refusedRequests.unsafeUpdate(1, [])
      const response = new ServerResponse(request)
      response.shouldKeepAlive = false
      response.assignSocket(socket)
      response.once("finish", () => socket.end())
      return response
    }
    const refuse = (error: ServiceUnavailable, retryAfter: number) =>
      this.#refuse(request, openResponse(), error, retryAfter)
    const owner = this.#settings.ownerOf(request)
    const unanswered = () => (isAnsweredOrClosed() ? undefined : openResponse())
    if (this.#repeats?.repeat(owner, request, unanswered) === true) return
    this.shedder.submit({
      owner,
      begin: () => (this.#isServing ? this.emit(event) : refuse(notServing, 0)),
      refuse: (retryAfter) => refuse(this.#isServing ? overloaded : notServing, retryAfter),
      isDone: isAnsweredOrClosed
    })
  }

  /** False before the first listener is added, after the last one is removed, and while the server closes. */
  get #isServing(): boolean {
    return !this.#closing && this.#server.listenerCount("request") > 0
  }

  /** Answers with `error`. The client may try again after `retryAfter` milliseconds. */
  #refuse(
    request: IncomingMessage,
    response: ServerResponse,
    error: ServiceUnavailable,
    retryAfter: number
  ): void {
    if (isDone(response)) return
    const now = this.#clock.unsafeCurrentTimeMillis()
    const requestId = RequestId.of(Headers.get(request.headers, RequestId.header), now)
    const seconds = Math.min(maxRetryAfterSeconds, Math.max(1, Math.ceil(retryAfter / 1_000)))
    const toResponse = errorResponseOf(pathOf(request))
    const rejection = toResponse(error, requestId, { "retry-after": String(seconds) })
    send(response, Headers.complete(rejection, requestId, this.#settings.overHttps))
  }

  /** `elapsed`: milliseconds since the last call. Returns true while another call is needed. */
  sweep(elapsed: number): boolean {
    const { bodies, connections } = this.#settings
    for (const [response, request] of this.open) if (response.headersSent) bodies.release(request)
    bodies.sweep(elapsed)
    connections.sweep(elapsed, this.open)
    return bodies.needsSweep || this.open.size > 0 || connections.hasUpgraded
  }
}

/** Reports to `shedder`, once per iteration of the event loop, whether connections still arrive. */
const watchConnections = (shedder: LoadShedder) => {
  let hasArrived = false
  let watching = false
  const watch = (): void => {
    if (hasArrived) setImmediate(watch)
    else shedder.connectionsPaused()
    watching = hasArrived
    hasArrived = false
  }
  return (): void => {
    hasArrived = true
    shedder.connectionArrived()
    if (watching) return
    watching = true
    setImmediate(watch)
  }
}

/** Runs the checks, the sweeps and the database probe, each only while it is needed. */
const watchOverload = (
  admission: Admission,
  checksLatch: Effect.Latch,
  sweepsLatch: Effect.Latch,
  probe: Effect.Effect<unknown, unknown>
) => {
  const { shedder } = admission
  const check = Effect.suspend(() => {
    admission.check()
    waitingRequests.unsafeUpdate(shedder.waiting, [])
    return admission.needsChecks ? Effect.void : checksLatch.close
  })
  const runProbe = Effect.suspend(() => {
    if (!shedder.needsProbe) return Effect.void
    shedder.probeStarted()
    return probe.pipe(
      Effect.timeout(probeTiming.timeout),
      // Requests that need the database report its errors.
      Effect.catchAllCause(() => Effect.void),
      Effect.zipRight(Effect.sync(() => shedder.probeEnded()))
    )
  })
  const sweep = Effect.suspend(() =>
    admission.sweep(Duration.toMillis(sweepInterval)) ? Effect.void : sweepsLatch.close
  )
  const every = (duration: Duration.DurationInput, latch: Effect.Latch, work: Effect.Effect<unknown>) =>
    Effect.forever(Effect.zipRight(latch.await, Effect.zipRight(Effect.sleep(duration), work)))
  return Effect.all(
    [
      every(checkIntervalMillis, checksLatch, check),
      every(probeTiming.every, checksLatch, runProbe),
      every(sweepInterval, sweepsLatch, sweep)
    ],
    { concurrency: 3, discard: true }
  )
}

export interface Guard {
  /** Refuses every request from now on. Completes when no new connection arrives, after ten seconds at the latest. */
  readonly close: Effect.Effect<void>
}

/** The listener is quiet after `checks` intervals without a connection or request; `maxWait` limits the wait. */
const quietPeriod = { interval: "25 millis", checks: 4, maxWait: "10 seconds" } as const

/** Intercepts all requests of `server`, before `rawRequests` and every listener, until the scope closes. */
export const guard = (
  server: Server,
  rawRequests: RawRequests["Type"]
): Effect.Effect<Guard, never, Scope.Scope> =>
  Effect.gen(function* () {
    const proxies = yield* TrustedProxies
    const checksLatch = yield* Effect.makeLatch(false)
    const sweepsLatch = yield* Effect.makeLatch(false)
    waitingRequests.unsafeUpdate(0, [])
    refusedRequests.unsafeUpdate(0, [])
    waitDuration.register({})
    const connections = new Connections.Connections(yield* Connections.ConnectionLimits, proxies)
    const admission = new Admission(server, yield* Effect.clock, {
      overHttps: yield* Headers.OverHttps,
      maxWait: Duration.toMillis(yield* MaxWait),
      bodies: new RequestBodies(yield* RequestBodyLimits),
      connections,
      rawRequests,
      ownerOf: (request) => ownerOf(proxies, request),
      isLoggedOrTraced: yield* AccessLog.isLoggedOrTraced
    })
    const onConnection = watchConnections(admission.shedder)
    let recentEvents = 0
    Object.defineProperty(server, "emit", {
      configurable: true,
      value: (...event: ReadonlyArray<unknown>): unknown => {
        const [name, first, second] = event
        if (name === "connection" && first instanceof Socket) {
          recentEvents++
          onConnection()
          return connections.accept(first) ? admission.emit(event) : true
        }
        if (name === "upgrade" && first instanceof IncomingMessage) {
          recentEvents++
          admission.handleUpgrade(first, first.socket, event)
          checksLatch.unsafeOpen()
          sweepsLatch.unsafeOpen()
          return true
        }
        if (name !== "request" || !(first instanceof IncomingMessage) || !(second instanceof ServerResponse))
          return admission.emit(event)
        recentEvents++
        admission.handleRequest(first, second)
        checksLatch.unsafeOpen()
        sweepsLatch.unsafeOpen()
        return true
      }
    })
    yield* Effect.forkScoped(watchOverload(admission, checksLatch, sweepsLatch, yield* DatabaseProbe))
    yield* Effect.forkScoped(
      Effect.zipRight(
        yield* DrainBegins,
        Effect.sync(() => admission.drain())
      )
    )
    const awaitQuiet = Effect.gen(function* () {
      for (let checks = 0; checks < quietPeriod.checks; checks++) {
        recentEvents = 0
        yield* Effect.sleep(quietPeriod.interval)
        if (recentEvents > 0) checks = -1
      }
    })
    return {
      close: Effect.zipRight(
        Effect.sync(() => admission.close()),
        // Finalizers are uninterruptible, but a time-out needs an interruptible effect.
        Effect.asVoid(Effect.timeoutOption(Effect.interruptible(awaitQuiet), quietPeriod.maxWait))
      )
    }
  })
