/**
 * The lease of this process, which owns its running turns. Renews the lease, and ends the runs of processes whose lease
 * has expired, so that no run stays `running`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { typeId } from "../../domain/Ids.ts"
import { ProcessLeases } from "../../store/chat/ProcessLeases.ts"

const leaseDuration = Duration.seconds(20)
const renewalInterval = Duration.seconds(5)
const sweepInterval = Duration.seconds(10)

/** Runs `effect`. A failure is logged as the warning `message`. */
export const warnOnFailure = <A, E>(message: string, effect: Effect.Effect<A, E>) =>
  Effect.catchAllCause(effect, (cause) => Effect.logWarning(message, cause))

export class ProcessLease extends Effect.Service<ProcessLease>()("usecases/chat/ProcessLease", {
  scoped: Effect.gen(function* () {
    const instances = yield* ProcessLeases
    const id = typeId("ins", yield* Effect.clockWith((clock) => clock.currentTimeMillis))

    yield* Effect.orDie(instances.renew(id, leaseDuration))
    yield* Effect.addFinalizer(() =>
      warnOnFailure("The instance could not be deregistered", instances.remove(id))
    )
    yield* warnOnFailure(
      "The instance's lease could not be renewed",
      instances.renew(id, leaseDuration)
    ).pipe(Effect.repeat(Schedule.spaced(renewalInterval)), Effect.forkScoped)
    // Renew first: a process that was paused until its lease expired is alive and must not end its own runs.
    const sweep = Effect.zipRight(instances.renew(id, leaseDuration), instances.sweep).pipe(
      Effect.tap((count) =>
        count === 0 ? Effect.void : Effect.logWarning(`Ended ${count} runs of a process that died`)
      )
    )
    const sweepAndLog = warnOnFailure("Dead runs could not be swept", sweep)
    yield* sweepAndLog.pipe(Effect.repeat(Schedule.spaced(sweepInterval)), Effect.forkScoped)
    return {
      id,
      /** Ends the runs of dead processes now, without waiting for the next interval. */
      sweep: sweepAndLog
    } as const
  })
}) {}
