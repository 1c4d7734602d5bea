/** Converts text to unit vectors. The offline model reads about the first 500 characters of a text. */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/**
 * `retryAfter` is set when the provider requested a pause. `dependsOnInput`: the provider may accept other, fewer or
 * shorter texts.
 */
export class EmbedderError extends Schema.TaggedError<EmbedderError>()("EmbedderError", {
  message: Schema.String,
  retryable: Schema.Boolean,
  dependsOnInput: Schema.optionalWith(Schema.Boolean, { exact: true }),
  retryAfter: Schema.optionalWith(Schema.DurationFromMillis, { exact: true })
}) {}

export class Embedder extends Context.Tag("capabilities/Embedder")<
  Embedder,
  {
    /**
     * Identifies model and dimensions. It is stored with every vector, so that vectors of two models are never
     * compared.
     */
    readonly profile: string
    readonly dimensions: number
    /** True for a model that supports English only. It does not get texts and queries in other languages. */
    readonly englishOnly?: boolean
    /** Weight of the lexical score in the hybrid score, 0..1, by the query's number of terms. High for a weak model. */
    readonly lexicalWeight: (terms: number) => number
    /** Recommended minimum of the hybrid score for a chat turn, 0..1. */
    readonly minScore: number
    /** Maximum batch size of `embedAll`. */
    readonly maxBatch: number
    /** Recommended time-out for one query. After it, retrieval uses words only. */
    readonly queryTimeout: Duration.DurationInput
    /** Loads what the first text needs. Undefined when the first takes no longer than others. */
    readonly prepare?: Effect.Effect<void, EmbedderError>
    /** A unit vector of `dimensions` floats. */
    readonly embedQuery: (text: string) => Effect.Effect<Float32Array, EmbedderError>
    /** Unit vectors in the order of `texts`, which may have at most `maxBatch` texts. */
    readonly embedAll: (
      texts: ReadonlyArray<string>
    ) => Effect.Effect<ReadonlyArray<Float32Array>, EmbedderError>
  }
>() {}

export type EmbedderService = Context.Tag.Service<typeof Embedder>

/**
 * Embedders of other profiles. While an agent moves to another model, its queries are embedded with the model of its
 * live vectors. Default: none.
 */
export class OtherEmbedders extends Context.Reference<OtherEmbedders>()("capabilities/OtherEmbedders", {
  defaultValue: () => ({
    /** None when this configuration has no embedder for `profile`. */
    of: (_profile: string): Effect.Effect<Option.Option<EmbedderService>> => Effect.succeedNone
  })
}) {}

/** Finds the embedder of a profile: the current embedder or another one. */
export const embedderOf = Effect.gen(function* () {
  const current = yield* Embedder
  const others = yield* OtherEmbedders
  return (profile: string): Effect.Effect<Option.Option<EmbedderService>> =>
    profile === current.profile ? Effect.succeedSome(current) : others.of(profile)
})
