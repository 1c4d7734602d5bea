/** A deterministic embedder for tests: texts that share words or parts of words have close vectors. No model, no I/O. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Embedder } from "../src/capabilities/Embedder.ts"

export const dimensions = 128

const hash = (text: string): number => {
  let value = 2_166_136_261
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 16_777_619)
  value = Math.imul(value ^ (value >>> 15), 2_246_822_507)
  return (value ^ (value >>> 13)) >>> 0
}

const features = (text: string): ReadonlyArray<string> =>
  Array.from(text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu), ([word]) => word).flatMap((word) => [
    word,
    ...Array.from({ length: Math.max(0, word.length - 2) }, (_, at) => word.slice(at, at + 3))
  ])

/** The unit vector of a text; a text without words has a fixed one. */
export const hashVector = (text: string, size: number = dimensions): Float32Array => {
  const vector = new Float32Array(size)
  const all = features(text)
  for (const feature of all.length === 0 ? ["\u0000"] : all) {
    const code = hash(feature)
    const place = code % size
    vector[place] = (vector[place] ?? 0) + (code & 0x40000000 ? 1 : -1)
  }
  const norm = Math.hypot(...vector)
  if (norm === 0) vector[0] = 1
  return vector.map((value) => (norm === 0 ? value : value / norm))
}

export interface HashingOptions {
  readonly profile?: string
  readonly dimensions?: number
  readonly lexicalWeight?: number
}

/** An `Embedder` that never fails. */
export const makeHashing = (options: HashingOptions = {}) => {
  const size = options.dimensions ?? dimensions
  return Embedder.of({
    profile: options.profile ?? `hashing-${size}`,
    dimensions: size,
    lexicalWeight: () => options.lexicalWeight ?? 0.7,
    minScore: 0.25,
    maxBatch: 32,
    queryTimeout: "2 seconds",
    embedQuery: (text) => Effect.sync(() => hashVector(text, size)),
    embedAll: (texts) => Effect.sync(() => texts.map((text) => hashVector(text, size)))
  })
}

export const layerHashing = (options: HashingOptions = {}): Layer.Layer<Embedder> =>
  Layer.succeed(Embedder, makeHashing(options))
