/** Embedders of other profiles, each created on first use. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import { inSharedFiber } from "../../concurrency/InOwnFiber.ts"
import { Embedder, type EmbedderService, OtherEmbedders } from "../Embedder.ts"

/** Parses a profile with a provider's model, such as `text-embedding-3-small/1536`. */
export const modelOf = (
  profile: string
): Option.Option<{ readonly model: string; readonly dimensions: number }> => {
  const [, model, digits] = /^(.+)\/(\d{1,5})$/u.exec(profile) ?? []
  return model === undefined || digits === undefined
    ? Option.none()
    : Option.some({ model, dimensions: Number(digits) })
}

/** `layerOf` returns the layer for a profile, or none where the configuration has no such model. */
export const layerOthers = <R>(
  layerOf: (profile: string) => Option.Option<Layer.Layer<Embedder, never, R>>
) =>
  Layer.scoped(
    OtherEmbedders,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const context = yield* Effect.context<R>()
      const build = (layer: Layer.Layer<Embedder, never, R>): Effect.Effect<EmbedderService> =>
        Layer.build(layer).pipe(
          Effect.map(Context.get(Embedder)),
          Effect.provide(context),
          Scope.extend(scope)
        )
      const cached = yield* Effect.cachedFunction((profile: string) =>
        Option.match(layerOf(profile), {
          onNone: () => Effect.succeedNone,
          onSome: (layer) => Effect.asSome(build(layer))
        })
      )
      return { of: (profile: string) => inSharedFiber(cached(profile)) }
    })
  )
