/** Text to unit vectors (the offline model reads about the first 500 characters of a text). */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/** `retryAfter` is set when the provider asked for a pause. */
export class EmbedderError extends Schema.TaggedError<EmbedderError>()("EmbedderError", {
  message: Schema.String,
  retryable: Schema.Boolean,
  retryAfter: Schema.optionalWith(Schema.DurationFromMillis, { exact: true })
}) {}

export class Embedder extends Context.Tag("capabilities/Embedder")<
  Embedder,
  {
    /** Names model and dimensions; stored beside every vector, so that vectors of two models never meet. */
    readonly profile: string
    readonly dimensions: number
    /** True for a model that knows no other language: it is not asked about texts and queries of others. */
    readonly englishOnly?: boolean
    /** Weight of words against meaning in the hybrid score, 0..1: high for a weak model. */
    readonly lexicalWeight: number
    /** Recommended cut of the hybrid score for a chat turn, 0..1. */
    readonly minScore: number
    /** Largest batch `embedAll` takes. */
    readonly maxBatch: number
    /** Recommended limit for one query; past it retrieval falls back to words alone. */
    readonly queryTimeout: Duration.DurationInput
    /** A unit vector of `dimensions` floats. */
    readonly embedQuery: (text: string) => Effect.Effect<Float32Array, EmbedderError>
    /** Unit vectors in the order of `texts`; at most `maxBatch` texts. */
    readonly embedAll: (
      texts: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<Float32Array>, EmbedderError>
  }
>() {}

export type EmbedderService = Context.Tag.Service<typeof Embedder>

/**
 * Embedders beside the current one, by profile: while an agent moves to another model, its queries are embedded with the
 * model of the vectors it still answers with. None by default.
 */
export class OtherEmbedders extends Context.Reference<OtherEmbedders>()("capabilities/OtherEmbedders", {
  defaultValue: () => ({
    /** None when nothing in this configuration makes vectors of `profile`. */
    of: (_profile: string): Effect.Effect<Option.Option<EmbedderService>> => Effect.succeedNone
  })
}) {}

/** What makes vectors of a profile: the current embedder or another that is at hand. */
export const embedderOf = Effect.gen(function* () {
  const current = yield* Embedder
  const others = yield* OtherEmbedders
  return (profile: string): Effect.Effect<Option.Option<EmbedderService>> =>
    profile === current.profile ? Effect.succeedSome(current) : others.of(profile)
})
