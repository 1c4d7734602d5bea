/**
 * How vectors are stored: as float16, in the binary form of pgvector's `halfvec` (big-endian: the number of dimensions
 * and a zero, two bytes each, then the numbers). Rounding changes a cosine by about 1e-5. Node 20 has no float16.
 */

/** Maximum number of vectors of an agent that a search in the database compares one by one. A larger agent has an index. */
export const maxComparedVectors = 20_000

const headerBytes = 4

/** Shared memory in which a float32 number can be read as its bits, and the reverse. */
const float = new Float32Array(1)
const floatBits = new Uint32Array(float.buffer)

/** The bits of the nearest float16; of two equally near, the even one. Beyond the range, the largest. */
const toHalf = (value: number): number => {
  float[0] = value
  const bits = floatBits[0] ?? 0
  const sign = (bits >>> 16) & 0x8000
  const size = bits & 0x7fffffff
  // 65,504 and more.
  if (size >= 0x477fe000) return sign | 0x7bff
  // Below 2⁻¹⁴ the numbers are multiples of 2⁻²⁴; the addition rounds to them.
  if (size < 0x38800000) return sign | ((Math.fround(Math.abs(value) + 0.5) - 0.5) * 2 ** 24)
  return sign | ((size + 0xfff + ((size >>> 13) & 1) - 0x38000000) >>> 13)
}

const fromHalf = (half: number): number => {
  const sign = half & 0x8000
  const size = half & 0x7fff
  if (size < 0x400) return (sign === 0 ? size : -size) * 2 ** -24
  floatBits[0] = (sign << 16) | ((size << 13) + 0x38000000)
  return float[0] ?? 0
}

/** The text of each float16, by its bits. Five digits are enough to identify it. */
const texts: Array<string | undefined> = []

const textOf = (bits: number): string => (texts[bits] ??= String(Number(fromHalf(bits).toPrecision(5))))

/** The vector with its numbers rounded as they are stored. */
export const roundVector = (vector: Float32Array): Float32Array =>
  vector.map((value) => fromHalf(toHalf(value)))

/** The bytes of a stored vector. */
export const encodeVector = (vector: Float32Array): Uint8Array => {
  const bytes = new Uint8Array(headerBytes + 2 * vector.length)
  const view = new DataView(bytes.buffer)
  view.setUint16(0, vector.length)
  for (let place = 0; place < vector.length; place++) {
    view.setUint16(headerBytes + 2 * place, toHalf(vector[place] ?? 0))
  }
  return bytes
}

/** Little-endian float32, as 0.1.0 stores and reads vectors. */
export const encodeFloat32 = (vector: Float32Array): Uint8Array => {
  const bytes = new Uint8Array(Float32Array.BYTES_PER_ELEMENT * vector.length)
  const view = new DataView(bytes.buffer)
  for (const [place, value] of vector.entries())
    view.setFloat32(Float32Array.BYTES_PER_ELEMENT * place, value, true)
  return bytes
}

/** The text of a stored vector, as PostgreSQL reads a `halfvec`. */
export const vectorText = (vector: Float32Array): string => {
  let text = "["
  for (let place = 0; place < vector.length; place++) {
    text += place === 0 ? textOf(toHalf(vector[place] ?? 0)) : `,${textOf(toHalf(vector[place] ?? 0))}`
  }
  return `${text}]`
}

const isFloat16 = (view: DataView): boolean =>
  view.byteLength > headerBytes &&
  view.byteLength === headerBytes + 2 * view.getUint16(0) &&
  view.getUint16(2) === 0

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const readNumbers = (view: DataView, into: Float32Array) => {
  const half = isFloat16(view)
  for (let place = 0; place < into.length; place++) {
    into[place] = fromHalf(
      half ? view.getUint16(headerBytes + 2 * place) : toHalf(view.getFloat32(4 * place, true))
    )
  }
}

const lengthOf = (view: DataView): number =>
  isFloat16(view) ? view.getUint16(0) : view.byteLength / Float32Array.BYTES_PER_ELEMENT

/**
 * Writes the stored numbers into `into`. False if their count differs from its length. Also reads little-endian float32, as 0.1.0
 * stored vectors, and rounds them, so that a search finds the same before and after they are converted. Bytes are
 * float16 if they begin with their header. A float32 would have to be below 1e-40 to be mistaken for it.
 */
export const decodeInto = (bytes: Uint8Array, into: Float32Array): boolean => {
  const view = viewOf(bytes)
  if (lengthOf(view) !== into.length) return false
  readNumbers(view, into)
  return true
}

/** The numbers that {@link decodeInto} reads. */
export const decodeVector = (bytes: Uint8Array): Float32Array => {
  const view = viewOf(bytes)
  const vector = new Float32Array(Math.floor(lengthOf(view)))
  readNumbers(view, vector)
  return vector
}
