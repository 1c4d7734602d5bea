/**
 * Spans for what every request runs. They cost one look where nothing is traced; `Effect.fn` and `Effect.withSpan` make
 * their span, its scope and a stack trace even then, some thirty steps each time.
 */
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"

/** `self` inside a span of that name. */
export const span =
  (name: string) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiberRuntime<A, E, R>((fiber) =>
      fiber.getFiberRef(FiberRef.currentTracerEnabled)
        ? Effect.withSpan(self, name, { captureStackTrace: false })
        : self
    )

/** `Effect.fn`: the span holds all that is piped. */
export const fn = (name: string): Effect.fn.Untraced => {
  const traced = span(name)
  return (...given: ReadonlyArray<unknown>) => Reflect.apply(Effect.fnUntraced, undefined, [...given, traced])
}

/** Attributes of the span at hand, where there is one. */
export const annotate = (attributes: Readonly<Record<string, string>>): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) =>
    fiber.getFiberRef(FiberRef.currentTracerEnabled) ? Effect.annotateCurrentSpan(attributes) : Effect.void
  )
