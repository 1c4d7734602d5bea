/**
 * Bounded admission: before a body is read or the database asked, a request that the process cannot answer in
 * reasonable time gets 503 `SERVICE_UNAVAILABLE` with `retry-after`. What tells how the process is, and deliveries, stand
 * in no line: each kind has a bound of its own.
 */
import { IncomingMessage, type Server, ServerResponse } from "node:http"
import { performance } from "node:perf_hooks"
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as MetricBoundaries from "effect/MetricBoundaries"
import type * as Scope from "effect/Scope"
import { ServiceUnavailable } from "../domain/Errors.ts"
import { answer } from "./Boundary.ts"
import { Door, interval } from "./Door.ts"
import * as Headers from "./Headers.ts"
import * as Lane from "./Lane.ts"
import * as RequestId from "./RequestId.ts"

/** Asks the database something small, as a request would; how long that takes is how late it is. By default nothing is asked. */
export class Pulse extends Context.Reference<Pulse>()("http/Admission/Pulse", {
  defaultValue: (): Effect.Effect<unknown, unknown> => Effect.void
}) {}

/** How long a request may wait before it is begun; the default is `SPOKE_MAX_WAIT`'s. */
export class MaxWait extends Context.Reference<MaxWait>()("http/Admission/MaxWait", {
  defaultValue: (): Duration.Duration => Duration.seconds(30)
}) {}

/** Most requests that wait: each holds its socket and its headers. */
const room = 2_048
/** How often the database is asked while many wait for answers, and how long for. */
const pulse = { every: "100 millis", patience: "10 seconds" } as const
/** Seconds; nobody is told to stay away longer. */
const longest = 30

/** Requests that wait in no line, by what their paths begin with, and how many of each kind may be unanswered. */
const apart: ReadonlyArray<readonly [prefixes: ReadonlyArray<string>, most: number]> = [
  [["/healthz", "/readyz", "/metrics"], 64],
  [["/api/webhooks/"], 1_024]
]

const refused = Metric.counter("spoke_http_refused_total", {
  description: "Requests that were answered 503 because the process could not have begun them in time",
  incremental: true
})
const waiting = Metric.gauge("spoke_http_waiting", { description: "Requests that wait to be begun" })
const waited = Metric.histogram(
  "spoke_http_wait_seconds",
  MetricBoundaries.fromIterable([0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]),
  "How long requests waited that could not be begun at once"
)

const busy = new ServiceUnavailable({ message: "The server has too much to do. Try again later." })
const away = new ServiceUnavailable({ message: "The server is starting or stopping. Try again." })

interface Settings {
  readonly overHttps: boolean
  /** Milliseconds. */
  readonly wait: number
}

const isOver = (response: ServerResponse) => response.headersSent || response.destroyed

/** `error` for whoever may come `again` after so many milliseconds. */
const refusal = (request: IncomingMessage, now: number, error: ServiceUnavailable, again: number) => {
  const given = request.headers[RequestId.header]
  const requestId = RequestId.of(typeof given === "string" ? given : undefined, now)
  const seconds = Math.min(longest, Math.max(1, Math.ceil(again / 1_000)))
  return { requestId, response: answer(error, requestId, { "retry-after": String(seconds) }) }
}

/** Counts what is unanswered of the kinds that wait in no line. */
const makeApart = () => {
  const kinds = apart.map(([prefixes, most]) => ({ prefixes, most, open: new Set<ServerResponse>() }))
  /** True when there is a place, null when the request is of no such kind. */
  return (path: string, response: ServerResponse): boolean | null => {
    const kind = kinds.find(({ prefixes }) => prefixes.some((prefix) => path.startsWith(prefix)))
    if (kind === undefined) return null
    if (kind.open.size >= kind.most) for (const each of kind.open) if (isOver(each)) kind.open.delete(each)
    if (kind.open.size >= kind.most) return false
    kind.open.add(response)
    return true
  }
}

/** The whole of a request and what becomes of it: let in, made to wait, or sent away. */
const makeReception = (server: Server, clock: Clock.Clock, { overHttps, wait }: Settings) => {
  const { emit } = server
  const now = () => Number(clock.unsafeCurrentTimeNanos()) / 1e6
  const door = new Door(now, () => performance.eventLoopUtilization().active, { wait, room })
  const place = makeApart()
  const pass = (...event: ReadonlyArray<unknown>): unknown => Reflect.apply(emit, server, event)

  const arrive = (request: IncomingMessage, response: ServerResponse): void => {
    const came = now()
    const enter = () => void pass("request", request, response)
    const refuse = (error: ServiceUnavailable, again: number) => {
      const told = refusal(request, clock.unsafeCurrentTimeMillis(), error, again)
      Lane.send(response, Headers.complete(told.response, told.requestId, overHttps))
    }
    const turnedAway = (again: number) => {
      refused.unsafeUpdate(1, [])
      refuse(busy, again)
    }
    // Before the first listener and after the last one nobody would answer.
    if (server.listenerCount("request") === 0) return refuse(away, 0)
    const found = place(request.url ?? "", response)
    if (found !== null) return found ? enter() : turnedAway(0)
    door.arrive({
      enter: () => {
        const millis = now() - came
        if (millis >= 1) waited.unsafeUpdate(millis / 1_000, [])
        if (server.listenerCount("request") === 0) refuse(away, 0)
        else enter()
      },
      refuse: turnedAway,
      over: () => isOver(response)
    })
  }

  return { arrive, door, pass }
}

/** Tells the door of connections that come, turn of the thread by turn, while there are any. */
const makePorch = (door: Door) => {
  let fresh = false
  let watching = false
  const watch = (): void => {
    if (fresh) setImmediate(watch)
    else door.gathered()
    watching = fresh
    fresh = false
  }
  return (): void => {
    fresh = true
    door.gather()
    if (watching) return
    watching = true
    setImmediate(watch)
  }
}

/** Looks and asks for as long as anybody is unanswered; costs nothing while nobody is. */
const attend = (door: Door, awake: Effect.Latch, ask: Effect.Effect<unknown, unknown>) => {
  const look = Effect.suspend(() => {
    door.look()
    waiting.unsafeUpdate(door.waiting, [])
    return door.busy ? Effect.void : awake.close
  })
  const asking = Effect.suspend(() => {
    if (!door.crowded) return Effect.void
    door.asked()
    return ask.pipe(
      Effect.timeout(pulse.patience),
      // Whoever needs the database says so better.
      Effect.catchAllCause(() => Effect.void),
      Effect.zipRight(Effect.sync(() => door.answered()))
    )
  })
  const every = (duration: Duration.DurationInput, work: Effect.Effect<unknown>) =>
    Effect.forever(Effect.zipRight(awake.await, Effect.zipRight(Effect.sleep(duration), work)))
  return Effect.all([every(interval, look), every(pulse.every, asking)], { concurrency: 2, discard: true })
}

/** Stands before every listener of `server` that there is by now or will be, until the scope closes. */
export const guard = (server: Server): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const overHttps = yield* Headers.OverHttps
    const wait = Duration.toMillis(yield* MaxWait)
    const awake = yield* Effect.makeLatch(false)
    waiting.unsafeUpdate(0, [])
    refused.unsafeUpdate(0, [])
    const { arrive, door, pass } = makeReception(server, yield* Effect.clock, { overHttps, wait })
    const connected = makePorch(door)
    Object.defineProperty(server, "emit", {
      configurable: true,
      value: (event: unknown, ...given: ReadonlyArray<unknown>): unknown => {
        if (event === "connection") connected()
        const [request, response] = given
        const ours = event === "request" && request instanceof IncomingMessage
        if (!ours || !(response instanceof ServerResponse)) return pass(event, ...given)
        arrive(request, response)
        awake.unsafeOpen()
        return true
      }
    })
    yield* Effect.forkScoped(attend(door, awake, yield* Pulse))
  })
