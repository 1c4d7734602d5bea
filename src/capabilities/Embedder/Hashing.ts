/**
 * Vectors of hashed words, without a model. Equal texts have equal vectors, and shared words increase similarity.
 * Meaning is not considered.
 */
import { hash } from "../../search/Hash.ts"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { terms } from "../../search/Tokenizer.ts"
import { Embedder } from "../Embedder.ts"
import { toUnit } from "./UnitVector.ts"

const trigramWeight = 0.25

const vectorOf = (text: string, dimensions: number): Float32Array => {
  const sums = new Float64Array(dimensions)
  const add = (feature: string, weight: number) => {
    const featureHash = hash(feature)
    const index = featureHash % dimensions
    sums[index] = (sums[index] ?? 0) + (featureHash & 0x40000000 ? weight : -weight)
  }
  for (const term of terms(text)) {
    add(term, 1)
    for (let from = 0; from + 3 < term.length; from++) add(term.slice(from, from + 3), trigramWeight)
  }
  // A text without words, or whose words cancel each other, also needs a direction.
  return toUnit(sums) ?? Float32Array.from({ length: dimensions }, (_, index) => (index === 0 ? 1 : 0))
}

/** Deterministic; `dimensions` is at least 1. */
export const layerHashing = (dimensions: number) =>
  Layer.succeed(Embedder, {
    profile: `hashing/${dimensions}`,
    dimensions,
    lexicalWeight: () => 0.7,
    minScore: 0.25,
    maxBatch: 256,
    queryTimeout: "1 second",
    embedQuery: (text) => Effect.sync(() => vectorOf(text, dimensions)),
    embedAll: (texts) => Effect.sync(() => texts.map((text) => vectorOf(text, dimensions)))
  })
