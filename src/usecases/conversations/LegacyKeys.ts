/** Gives messages without a pagination key theirs, in the background. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { LegacyMessages } from "../../store/conversations/LegacyMessages.ts"

/** Messages of one short transaction. */
const batch = 500
/** Interval between two looks for new ones. */
const polling = Duration.seconds(1)

export class LegacyKeys extends Effect.Service<LegacyKeys>()("usecases/conversations/LegacyKeys", {
  effect: Effect.gen(function* () {
    const store = yield* LegacyMessages

    /** All that wait now, batch by batch; says how many were given a key. */
    const run = Effect.iterate(
      { total: 0, given: 1 },
      {
        while: ({ given }) => given > 0,
        body: ({ total }) => Effect.map(store.giveKeys(batch), (given) => ({ total: total + given, given }))
      }
    ).pipe(
      Effect.map(({ total }) => total),
      Effect.tap((total) =>
        total === 0 ? Effect.void : Effect.logInfo(`${total} messages were given their keys`)
      ),
      Effect.withSpan("LegacyKeys.run")
    )

    /** Forever; a failure is logged and tried again. */
    const work = run.pipe(
      Effect.catchAllCause((cause) => Effect.logWarning("Messages could not be given their keys", cause)),
      Effect.repeat(Schedule.spaced(polling)),
      Effect.asVoid
    )

    return { run, work } as const
  })
}) {}
