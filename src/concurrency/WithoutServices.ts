/**
 * Runs an effect that needs no service without those of the request. A handler of the API has the context of the whole
 * application, some 220 services, which every fork, join and provided service in it would copy or compare.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"

/** Keeps only the parent span of the context. */
export const withoutServices = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.mapInputContext(effect, (given: Context.Context<never>) =>
    Option.match(Context.getOption(given, Tracer.ParentSpan), {
      onNone: () => Context.empty(),
      onSome: (span) => Context.make(Tracer.ParentSpan, span)
    })
  )
