/** The one way to end a turn's work from outside: somebody's wish, or the clock. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

export type Why = "wished" | "late"

export class Stop {
  #why: Why | null = null
  readonly #listeners = new Set<() => void>()

  /** Null until it is stopped; the first reason stays. */
  get why(): Why | null {
    return this.#why
  }

  private because(why: Why): Effect.Effect<void> {
    return Effect.sync(() => {
      if (this.#why !== null) return
      this.#why = why
      for (const listener of this.#listeners) listener()
      this.#listeners.clear()
    })
  }

  readonly wish = this.because("wished")
  readonly timeOut = this.because("late")

  /**
   * `effect`, interrupted when the turn is stopped, which then goes on as `otherwise`. One fiber beside the turn's, where a
   * race takes two and a good part of what else a turn does.
   */
  unless<A, E, R, A2, E2, R2>(
    effect: Effect.Effect<A, E, R>,
    otherwise: (why: Why) => Effect.Effect<A2, E2, R2>
  ): Effect.Effect<A | A2, E | E2, R | R2> {
    return Effect.suspend(() => {
      if (this.#why !== null) return otherwise(this.#why)
      return Effect.flatMap(Effect.fork(effect), (fiber) => this.#watch(fiber, otherwise))
    })
  }

  #watch<A, E, A2, E2, R2>(
    fiber: Fiber.RuntimeFiber<A, E>,
    otherwise: (why: Why) => Effect.Effect<A2, E2, R2>
  ): Effect.Effect<A | A2, E | E2, R2> {
    return Effect.async<A | A2, E | E2, R2>((resume) => {
      const stopped = () =>
        resume(
          Effect.zipRight(
            Fiber.interrupt(fiber),
            Effect.suspend(() => otherwise(this.#why ?? "wished"))
          )
        )
      this.#listeners.add(stopped)
      fiber.addObserver((exit) => {
        this.#listeners.delete(stopped)
        resume(exit)
      })
      return Effect.zipRight(
        Effect.sync(() => void this.#listeners.delete(stopped)),
        Fiber.interrupt(fiber)
      )
    })
  }
}
