/** The service without a listener: the same use-cases and routes, called in the process. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { AgentId } from "../../domain/Ids.ts"
import { noSuch } from "../../domain/Errors.ts"
import { SpokeError } from "../../client/Failure.ts"
import { listen } from "../../http/server/Server.ts"
import * as Web from "../../http/server/Web.ts"
import * as WebBodies from "../../http/server/WebBodies.ts"
import { Agents } from "../../usecases/agents/Agents.ts"
import type { Settings } from "../config/Config.ts"
import * as EventLoop from "../telemetry/EventLoop.ts"
import * as Http from "../Http.ts"
import { Draining } from "../Lifecycle.ts"
import * as Live from "../Live.ts"
import * as Owner from "./Owner.ts"
import { checked, type Replaceable } from "./Replaceable.ts"
import * as Workers from "../Workers.ts"

export interface Options {
  /** The tenant whose owner the host is; by default the only one. */
  readonly tenant?: string | undefined
  /** False when another process does the background work. */
  readonly workers?: boolean | undefined
}

export interface Replacement<A extends Replaceable, E, R> {
  /** Capabilities of the host, which replace the defaults. They may use the database and the stores. */
  readonly replace?: Layer.Layer<A, E, R> | undefined
}

/** Stores, capabilities and use-cases: the service without listener and workers. */
export const layer = <A extends Replaceable = never, E = never, R = never>(
  settings: Settings,
  { replace }: Replacement<A, E, R> = {}
) =>
  Live.layer(settings, replace === undefined ? Layer.empty : checked(replace)).pipe(
    Layer.provideMerge(Draining.Default)
  )

/** Background work over {@link layer}: ingestion, channels, sweeps. Its scope waits for running jobs. */
export const workers = Workers.layer

/** Serves every HTTP surface over {@link layer} at the host and port of `settings`. */
export const server = (settings: Settings) =>
  Http.layer(settings).pipe(
    Layer.provide(listen({ host: settings.host, port: settings.port, grace: Live.drainTimeouts.requests })),
    Layer.provide(Http.overload(settings))
  )

/** The error of requests after the close, and of response bodies that are still open then. */
export const closed = () => new SpokeError({ code: "CLOSED", message: "This Spoke has been closed." })

/** The open response bodies. They end when the scope closes. */
const openBodies = Effect.acquireRelease(Effect.sync(WebBodies.make), (bodies) => bodies.end(closed()))

/** Answers web-standard requests over {@link layer}, as {@link server} does, until the scope closes. */
export const webHandler = (settings: Settings) =>
  Effect.flatMap(openBodies, (bodies) =>
    Effect.provide(Web.handler(Http.guarded(settings), bodies), Http.publicAccess(settings))
  )

const decodeAgentId = Schema.decodeUnknownOption(AgentId)

/**
 * Opens the service over {@link layer}. Closing the scope ends it without losing work: workers take no more jobs, then
 * running turns settle.
 */
export const open = Effect.fn("Embedded.open")(function* <E, R>(
  settings: Settings,
  { tenant, workers: working = true }: Options,
  live: Layer.Layer<Layer.Layer.Success<ReturnType<typeof layer>>, E, R>
) {
  const scope = yield* Effect.scope
  // Acquired first, so that it ends last: settling turns still write to the bodies.
  const bodies = yield* openBodies
  yield* EventLoop.watch
  const context = yield* Layer.buildWithScope(live, scope)
  const owner = yield* Effect.provide(Owner.find(settings, tenant), context)
  const work = yield* Scope.make()
  // Closing a scope a second time returns at once. Because of the cache every caller waits for the first close.
  const stopWork = yield* Effect.cached(Scope.close(work, Exit.void))
  yield* Effect.addFinalizer(() => stopWork)
  if (working) yield* Layer.buildWithScope(Layer.provide(Workers.layer, Layer.succeedContext(context)), work)

  const network = yield* Web.handler(Http.guarded(settings), bodies).pipe(
    Effect.provide(Http.publicAccess(settings)),
    Effect.provide(context)
  )
  const own = yield* Effect.provide(
    Web.handler(Http.api(settings, Owner.authentication(owner)), bodies),
    context
  )
  const agents = Context.get(context, Agents)

  /** Fails with `NOT_FOUND` when the tenant has no agent with this id. */
  const agent = (id: string) =>
    Option.match(decodeAgentId(id), {
      onNone: () => Effect.fail(noSuch("agent")),
      onSome: (agentId) => Effect.as(agents.get(owner, agentId), agentId)
    })

  return {
    tenantId: owner.tenantId,
    /** The response to a network request. `address` is that of the connection, if the host knows it. */
    network: (request: Request, address: string | undefined) =>
      network(request, Context.make(Web.ClientAddress, Option.fromNullable(address))),
    /** The response to a request by the owner or, with `agentId`, by a key with every permission of the agent. */
    own: (request: Request, agentId: AgentId | null) =>
      own(request, Context.make(Owner.HostAgent, Option.fromNullable(agentId))),
    agent,
    /** Begins the drain: `/readyz` fails from now on, and workers take no more jobs. Waits for the running ones. */
    drain: Effect.zipRight(Context.get(context, Draining).begin, stopWork)
  }
})

export type Embedded = Effect.Effect.Success<ReturnType<typeof open>>
