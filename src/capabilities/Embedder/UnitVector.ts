/** Normalization of embeddings: vectors have length one, so that their dot product is their cosine. */

/** `values` scaled to length one, or null when a component is not a finite number, or all are zero. */
export const toUnit = (values: ArrayLike<number>): Float32Array | null => {
  let squares = 0
  for (let index = 0; index < values.length; index++) squares += (values[index] ?? 0) ** 2
  const length = Math.sqrt(squares)
  if (!Number.isFinite(length) || length === 0) return null
  const unit = new Float32Array(values.length)
  for (let index = 0; index < values.length; index++) unit[index] = (values[index] ?? 0) / length
  return unit
}
