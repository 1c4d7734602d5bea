/**
 * Spans for code that every request runs. They cost one check where nothing is traced. `Effect.fn` and
 * `Effect.withSpan` create their span, its scope and a stack trace even then, in some thirty steps.
 */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"

/** Runs `self` inside a span with this name. */
export const span =
  (name: string) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiberRuntime<A, E, R>((fiber) =>
      fiber.getFiberRef(FiberRef.currentTracerEnabled)
        ? Effect.withSpan(self, name, { captureStackTrace: false })
        : self
    )

/** Like `Effect.fn`: the span covers all piped effects. */
export const fn = (name: string): Effect.fn.Untraced => {
  const traced = span(name)
  return (...given: ReadonlyArray<unknown>) => Reflect.apply(Effect.fnUntraced, undefined, [...given, traced])
}

/** Adds attributes to the current span, if there is one. */
export const annotate = (attributes: Readonly<Record<string, string>>): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) =>
    fiber.getFiberRef(FiberRef.currentTracerEnabled) ? Effect.annotateCurrentSpan(attributes) : Effect.void
  )
