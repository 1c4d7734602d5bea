/** Adds pagination keys to messages without one, in the background. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { LegacyMessages } from "../../store/conversations/LegacyMessages.ts"

/** Messages per transaction, so that transactions stay short. */
const batchSize = 500
/** Interval between two checks for new ones. */
const pollInterval = Duration.seconds(1)

export class LegacyKeys extends Effect.Service<LegacyKeys>()("usecases/conversations/LegacyKeys", {
  effect: Effect.gen(function* () {
    const store = yield* LegacyMessages

    /** Adds all missing keys, batch by batch. Returns the number of messages that got one. */
    const run = Effect.iterate(
      { total: 0, updated: 1 },
      {
        while: ({ updated }) => updated > 0,
        body: ({ total }) =>
          Effect.map(store.giveKeys(batchSize), (updated) => ({ total: total + updated, updated }))
      }
    ).pipe(
      Effect.map(({ total }) => total),
      Effect.tap((total) =>
        total === 0 ? Effect.void : Effect.logInfo(`${total} messages were given their keys`)
      ),
      Effect.withSpan("LegacyKeys.run")
    )

    /** Runs forever. A failure is logged and retried. */
    const work = run.pipe(
      Effect.catchAllCause((cause) => Effect.logWarning("Messages could not be given their keys", cause)),
      Effect.repeat(Schedule.spaced(pollInterval)),
      Effect.asVoid
    )

    return { run, work } as const
  })
}) {}
