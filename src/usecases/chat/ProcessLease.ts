/**
 * The lease of this process, which owns its running turns. Renews the lease, and ends the runs of processes whose lease
 * has expired, so that no run stays `running`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { typeId } from "../../domain/Ids.ts"
import { ProcessLeases } from "../../store/chat/ProcessLeases.ts"

const lease = Duration.seconds(20)
const renewal = Duration.seconds(5)
const sweeping = Duration.seconds(10)

export class ProcessLease extends Effect.Service<ProcessLease>()("usecases/chat/ProcessLease", {
  scoped: Effect.gen(function* () {
    const instances = yield* ProcessLeases
    const id = typeId("ins", yield* Effect.clockWith((clock) => clock.currentTimeMillis))
    const quietly = <A, E>(what: string, effect: Effect.Effect<A, E>) =>
      Effect.catchAllCause(effect, (cause) => Effect.logWarning(what, cause))

    yield* Effect.orDie(instances.renew(id, lease))
    yield* Effect.addFinalizer(() => quietly("The instance could not be deregistered", instances.leave(id)))
    yield* quietly("The instance's lease could not be renewed", instances.renew(id, lease)).pipe(
      Effect.repeat(Schedule.spaced(renewal)),
      Effect.forkScoped
    )
    // Renew first: a process that was paused until its lease expired is alive and must not end its own runs.
    const sweep = Effect.zipRight(instances.renew(id, lease), instances.sweep).pipe(
      Effect.tap((count) =>
        count === 0 ? Effect.void : Effect.logWarning(`Ended ${count} runs of a process that died`)
      )
    )
    const sweepQuietly = quietly("Dead runs could not be swept", sweep)
    yield* sweepQuietly.pipe(Effect.repeat(Schedule.spaced(sweeping)), Effect.forkScoped)
    return {
      id,
      /** Ends the runs of dead processes now, without waiting for the next interval. */
      sweep: sweepQuietly
    } as const
  })
}) {}
