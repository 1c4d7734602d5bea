/** Runs the server: listens, runs jobs, and drains without losing work. */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { packageMissing } from "../domain/OptionalPackage.ts"
import { listen } from "../http/server/Server.ts"
import { DatabaseUnavailable, OnEngineFailure } from "../store/Database.ts"
import * as Snapshots from "./backup/Snapshots.ts"
import * as Banner from "./Banner.ts"
import { Draining } from "./Lifecycle.ts"
import type { Settings } from "./config/Config.ts"
import * as Build from "./telemetry/Build.ts"
import * as EventLoop from "./telemetry/EventLoop.ts"
import * as Health from "./telemetry/Health.ts"
import * as Http from "./Http.ts"
import * as FirstOwner from "./FirstOwner.ts"
import * as FirstRun from "./FirstRun.ts"
import * as Live from "./Live.ts"
import { missingForDocuments } from "./OptionalPackages.ts"
import * as Package from "./Package.ts"
import * as Port from "./Port.ts"
import * as QueueAges from "./telemetry/QueueAges.ts"
import * as Workers from "./Workers.ts"

export type Role = "all" | "api" | "worker"

/**
 * Runs until it is interrupted. Then workers take no more jobs, requests are served for the drain delay, and turns
 * settle. Fails when its embedded database ends.
 */
export const run = (settings: Settings, role: Role) =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    yield* Build.recordBuildInfo
    yield* EventLoop.watch
    if (role !== "api") {
      for (const use of missingForDocuments()) yield* Effect.logWarning(packageMissing(use).message)
    }
    const databaseEnd = yield* Deferred.make<never, DatabaseUnavailable>()
    const live = yield* Layer.buildWithScope(
      Live.layer(settings).pipe(Layer.provideMerge(Draining.Default)),
      scope
    ).pipe(
      Effect.provideService(OnEngineFailure, (message) =>
        Deferred.fail(databaseEnd, new DatabaseUnavailable({ message }))
      )
    )
    const draining = Context.get(live, Draining)
    // Checked before the first start: the generated password would not be shown if the server failed after it.
    if (role !== "worker") yield* Port.findPorts(settings)
    const firstRun =
      settings.database === null
        ? // Without an interruption in between, which would lose the generated password.
          yield* FirstRun.run(settings, Package.docs).pipe(
            Effect.tap(Option.match({ onNone: () => Effect.void, onSome: Banner.printSecrets })),
            Effect.provide(live),
            Effect.uninterruptible
          )
        : Option.none()
    yield* FirstOwner.ensure(settings).pipe(Effect.provide(live))
    yield* QueueAges.watch.pipe(Effect.provide(live))
    // Closed after the workers have ended, because it reports the drain.
    const health = yield* Health.layer(settings).pipe(
      Layer.provide(Layer.succeedContext(live)),
      Layer.buildWithScope(scope)
    )
    yield* Effect.provide(Snapshots.schedule(settings), live)
    const workScope = yield* Scope.make()
    // Closing a scope a second time returns at once. Because of the cache every caller waits for the first close.
    const stopWork = yield* Effect.cached(Scope.close(workScope, Exit.void))
    yield* Effect.addFinalizer(() => stopWork)
    if (role !== "api")
      yield* Workers.layer.pipe(Layer.provide(Layer.succeedContext(live)), Layer.buildWithScope(workScope))
    if (role !== "worker") {
      const httpLayer = Http.layer(settings).pipe(
        Layer.provide(
          listen({ host: settings.host, port: settings.port, grace: Live.drainTimeouts.requests }).pipe(
            Layer.provide(Http.overload(settings))
          )
        ),
        Layer.provide(Layer.succeedContext(live))
      )
      yield* Layer.buildWithScope(httpLayer, scope)
    }
    if (settings.database === null) yield* FirstRun.rememberAddress(settings)
    yield* Banner.print(settings, role, firstRun, Context.get(health, Health.HealthAddress)).pipe(
      Effect.provide(live),
      Effect.zipRight(Deferred.await(databaseEnd)),
      Effect.onInterrupt(() =>
        Effect.gen(function* () {
          yield* Effect.logInfo("Draining: no more jobs, then no more requests")
          yield* draining.begin
          yield* Effect.forkDaemon(stopWork)
          yield* Effect.sleep(settings.drainDelay)
        })
      )
    )
  }).pipe(Effect.scoped)
