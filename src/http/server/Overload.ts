/**
 * Overload control between a server's socket and its routes. It bounds connections, waiting requests and bodies, all of
 * them fairly between clients, and answers 503 `SERVICE_UNAVAILABLE` with `retry-after` where a bound is reached or the
 * server is going down. Health checks and webhooks do not wait behind other requests: each kind has a bound of its own.
 */
import { IncomingMessage, type Server, ServerResponse } from "node:http"
import { Socket } from "node:net"
import { performance } from "node:perf_hooks"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as Metric from "effect/Metric"
import type * as Scope from "effect/Scope"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import { DurationHistogram } from "../../concurrency/DurationHistogram.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import * as AccessLog from "./AccessLog.ts"
import { answer } from "./Boundary.ts"
import { ownerOf, TrustedProxies } from "./ClientAddress.ts"
import * as Connections from "./Connections.ts"
import * as Headers from "./Headers.ts"
import { LoadShedder, lookInterval } from "./LoadShedder.ts"
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
const probe = { every: "100 millis", timeout: "10 seconds" } as const
/** Upper limit of `retry-after`, in seconds. */
const maxRetryAfter = 30
/** Interval at which bodies and connections are checked while a request is open. */
const sweepInterval = Duration.seconds(1)

/** Requests that skip the queue, by path prefix, and the maximum number that may be unanswered. */
const makeKinds = () => [
  {
    prefixes: ["/healthz", "/readyz", "/metrics"],
    unanswered: new FairLimiter({ name: "http-health-requests", permits: 64, maxPermitsPerOwner: 16 })
  },
  // A permit can be revoked while its body is incomplete; the owner with the most permits loses one first.
  {
    prefixes: ["/api/webhooks/"],
    unanswered: new FairLimiter({ name: "http-webhook-requests", permits: 1_024 })
  }
]

const refused = Metric.counter("spoke_http_refused_total", {
  description: "Requests that were answered 503 because the process could not have begun them in time",
  incremental: true
})
const waiting = Metric.gauge("spoke_http_waiting", { description: "Requests that wait to be begun" })
const waited = new DurationHistogram<Readonly<Record<string, never>>>(
  "spoke_http_wait_seconds",
  "How long requests waited that could not be begun at once"
)

const overloaded = new ServiceUnavailable({ message: "The server has too much to do. Try again later." })
const away = new ServiceUnavailable({ message: "The server is starting or stopping. Try again." })

const isOver = (response: ServerResponse) => response.headersSent || response.destroyed

/** The response with `error` for a client that may try again after `retryAfter` milliseconds. */
const refusal = (request: IncomingMessage, now: number, error: ServiceUnavailable, retryAfter: number) => {
  const given = request.headers[RequestId.header]
  const requestId = RequestId.of(typeof given === "string" ? given : undefined, now)
  const seconds = Math.min(maxRetryAfter, Math.max(1, Math.ceil(retryAfter / 1_000)))
  return { requestId, response: answer(error, requestId, { "retry-after": String(seconds) }) }
}

interface Settings {
  readonly overHttps: boolean
  /** Milliseconds. */
  readonly maxWait: number
  readonly bodies: RequestBodies
  readonly connections: Connections.Connections
  readonly rawRequests: RawRequests["Type"]
  readonly ownerOf: (request: IncomingMessage) => string
  /** True if each request is logged or traced. */
  readonly isTold: boolean
}

/** Begins, queues or refuses each request. */
class Reception {
  readonly shedder: LoadShedder
  /** None where each request is logged or traced. */
  readonly #repeated: RepeatedRefusals | undefined
  readonly #server: Server
  readonly #emit: Server["emit"]
  readonly #clock: Clock.Clock
  readonly #settings: Settings
  readonly #kinds = makeKinds()
  /** Requests whose responses are not finished. */
  readonly open = new Map<ServerResponse, IncomingMessage>()
  #draining = false
  #closing = false

  constructor(server: Server, clock: Clock.Clock, settings: Settings) {
    this.#server = server
    this.#emit = server.emit
    this.#clock = clock
    this.#settings = settings
    this.#repeated = settings.isTold ? undefined : new RepeatedRefusals(clock)
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
  pass(event: ReadonlyArray<unknown>): unknown {
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

  /** True while {@link look} is needed. */
  get isBusy(): boolean {
    return this.shedder.isBusy || this.#repeated?.isBusy === true
  }

  look(): void {
    this.shedder.look()
    this.#repeated?.sendDue()
  }

  arrive(request: IncomingMessage, response: ServerResponse): void {
    const { bodies, connections } = this.#settings
    const owner = this.#settings.ownerOf(request)
    this.open.set(response, request)
    connections.begin(request.socket)
    if (this.#draining) closeAfter(request, response)
    const refuse = (error: ServiceUnavailable, retryAfter: number) =>
      this.#refuse(request, response, error, retryAfter)
    const turnAway = (retryAfter: number) => {
      refused.unsafeUpdate(1, [])
      refuse(overloaded, retryAfter)
    }
    const kind = this.#kinds.find(({ prefixes }) =>
      prefixes.some((prefix) => request.url?.startsWith(prefix) === true)
    )
    const permit = kind?.unanswered.request(owner, { onRevoked: () => bodies.revoke(request) })
    const readable = bodies.take(request, response, owner, () => permit?.setInUse(true))
    const begin = () => {
      readable()
      if (!this.#settings.rawRequests.handle(request, response)) this.pass(["request", request, response])
    }
    response.once("close", () => {
      this.open.delete(response)
      permit?.release()
      bodies.end(request)
      connections.end(request.socket)
    })
    if (this.#isAway) return refuse(away, 0)
    if (permit !== undefined) {
      return permit.state === "granted" ? begin() : turnAway(0)
    }
    const unanswered = () => (isOver(response) ? undefined : response)
    if (this.#repeated?.repeat(owner, request, unanswered) === true) return refused.unsafeUpdate(1, [])
    const came = this.#now
    this.shedder.arrive({
      owner,
      begin: () => {
        const millis = this.#now - came
        if (millis >= 1) waited.observe(millis, {})
        if (this.#isAway) refuse(away, 0)
        else begin()
      },
      refuse: (retryAfter) => (this.#isAway ? refuse(away, retryAfter) : turnAway(retryAfter)),
      isOver: () => isOver(response)
    })
  }

  /** An upgrade to another protocol. It waits like other requests; then its handler owns the connection. */
  arriveUpgrade(request: IncomingMessage, socket: Socket, event: ReadonlyArray<unknown>): void {
    this.#settings.connections.beginUpgrade(socket)
    const sentBefore = socket.bytesWritten
    // Node has removed its error listener, and closes the connection after an answer no more.
    socket.on("error", () => {}).once("finish", () => socket.destroy())
    const isGone = () => socket.destroyed || socket.bytesWritten > sentBefore
    const open = () => {
      refused.unsafeUpdate(1, [])
      const response = new ServerResponse(request)
      response.shouldKeepAlive = false
      response.assignSocket(socket)
      response.once("finish", () => socket.end())
      return response
    }
    const refuse = (error: ServiceUnavailable, retryAfter: number) =>
      this.#refuse(request, open(), error, retryAfter)
    const owner = this.#settings.ownerOf(request)
    if (this.#repeated?.repeat(owner, request, () => (isGone() ? undefined : open())) === true) return
    this.shedder.arrive({
      owner,
      begin: () => (this.#isAway ? refuse(away, 0) : this.pass(event)),
      refuse: (retryAfter) => refuse(this.#isAway ? away : overloaded, retryAfter),
      isOver: isGone
    })
  }

  /** True before the first listener is added and after the last one is removed. */
  get #isAway(): boolean {
    return this.#closing || this.#server.listenerCount("request") === 0
  }

  #refuse(
    request: IncomingMessage,
    response: ServerResponse,
    error: ServiceUnavailable,
    retryAfter: number
  ): void {
    if (isOver(response)) return
    const rejection = refusal(request, this.#clock.unsafeCurrentTimeMillis(), error, retryAfter)
    send(response, Headers.complete(rejection.response, rejection.requestId, this.#settings.overHttps))
  }

  /** `elapsed`: milliseconds since the last call. Returns true while another call is needed. */
  sweep(elapsed: number): boolean {
    const { bodies, connections } = this.#settings
    for (const [response, request] of this.open) if (response.headersSent) bodies.release(request)
    bodies.sweep(elapsed)
    connections.sweep(elapsed, this.open)
    return bodies.isBusy || this.open.size > 0 || connections.isUpgraded
  }
}

/** Reports to `shedder`, once per iteration of the event loop, whether new connections arrive. */
const watchConnections = (shedder: LoadShedder) => {
  let fresh = false
  let watching = false
  const watch = (): void => {
    if (fresh) setImmediate(watch)
    else shedder.connectionsPause()
    watching = fresh
    fresh = false
  }
  return (): void => {
    fresh = true
    shedder.connectionsCome()
    if (watching) return
    watching = true
    setImmediate(watch)
  }
}

/** Runs the checks and the probe while a request is unanswered. Idle otherwise. */
const watchOverload = (
  reception: Reception,
  awake: Effect.Latch,
  sweeping: Effect.Latch,
  ask: Effect.Effect<unknown, unknown>
) => {
  const { shedder } = reception
  const look = Effect.suspend(() => {
    reception.look()
    waiting.unsafeUpdate(shedder.waiting, [])
    return reception.isBusy ? Effect.void : awake.close
  })
  const asking = Effect.suspend(() => {
    if (!shedder.isCrowded) return Effect.void
    shedder.databaseAsked()
    return ask.pipe(
      Effect.timeout(probe.timeout),
      // Requests that need the database report its errors.
      Effect.catchAllCause(() => Effect.void),
      Effect.zipRight(Effect.sync(() => shedder.databaseAnswered()))
    )
  })
  const sweep = Effect.suspend(() =>
    reception.sweep(Duration.toMillis(sweepInterval)) ? Effect.void : sweeping.close
  )
  const every = (duration: Duration.DurationInput, latch: Effect.Latch, work: Effect.Effect<unknown>) =>
    Effect.forever(Effect.zipRight(latch.await, Effect.zipRight(Effect.sleep(duration), work)))
  return Effect.all(
    [
      every(lookInterval, awake, look),
      every(probe.every, awake, asking),
      every(sweepInterval, sweeping, sweep)
    ],
    { concurrency: 3, discard: true }
  )
}

export interface Guard {
  /** Refuses every request from now on. Completes when no new connection arrives, after ten seconds at the latest. */
  readonly close: Effect.Effect<void>
}

/** The listener has no more connections after `checks` intervals without one; `maxWait` limits the wait. */
const noConnections = { interval: "25 millis", checks: 4, maxWait: "10 seconds" } as const

/** Intercepts all requests of `server`, before `rawRequests` and every listener, until the scope closes. */
export const guard = (
  server: Server,
  rawRequests: RawRequests["Type"]
): Effect.Effect<Guard, never, Scope.Scope> =>
  Effect.gen(function* () {
    const proxies = yield* TrustedProxies
    const awake = yield* Effect.makeLatch(false)
    const sweeping = yield* Effect.makeLatch(false)
    waiting.unsafeUpdate(0, [])
    refused.unsafeUpdate(0, [])
    waited.register({})
    const connections = new Connections.Connections(yield* Connections.ConnectionLimits, proxies)
    const reception = new Reception(server, yield* Effect.clock, {
      overHttps: yield* Headers.OverHttps,
      maxWait: Duration.toMillis(yield* MaxWait),
      bodies: new RequestBodies(yield* RequestBodyLimits),
      connections,
      rawRequests,
      ownerOf: (request) => ownerOf(proxies, request),
      isTold: (yield* FiberRef.get(FiberRef.currentTracerEnabled)) || (yield* FiberRef.get(AccessLog.enabled))
    })
    const connected = watchConnections(reception.shedder)
    let lately = 0
    Object.defineProperty(server, "emit", {
      configurable: true,
      value: (...event: ReadonlyArray<unknown>): unknown => {
        const [name, first, second] = event
        if (name === "connection" && first instanceof Socket) {
          lately++
          connected()
          return connections.accept(first) ? reception.pass(event) : true
        }
        if (name === "upgrade" && first instanceof IncomingMessage) {
          lately++
          reception.arriveUpgrade(first, first.socket, event)
          awake.unsafeOpen()
          sweeping.unsafeOpen()
          return true
        }
        if (name !== "request" || !(first instanceof IncomingMessage) || !(second instanceof ServerResponse))
          return reception.pass(event)
        lately++
        reception.arrive(first, second)
        awake.unsafeOpen()
        sweeping.unsafeOpen()
        return true
      }
    })
    yield* Effect.forkScoped(watchOverload(reception, awake, sweeping, yield* DatabaseProbe))
    yield* Effect.forkScoped(
      Effect.zipRight(
        yield* DrainBegins,
        Effect.sync(() => reception.drain())
      )
    )
    const noMoreConnections = Effect.gen(function* () {
      for (let checks = 0; checks < noConnections.checks; checks++) {
        lately = 0
        yield* Effect.sleep(noConnections.interval)
        if (lately > 0) checks = -1
      }
    })
    return {
      close: Effect.zipRight(
        Effect.sync(() => reception.close()),
        // Finalizers are uninterruptible, but a time-out needs an interruptible effect.
        Effect.asVoid(Effect.timeoutOption(Effect.interruptible(noMoreConnections), noConnections.maxWait))
      )
    }
  })
