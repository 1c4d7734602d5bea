/** Reads format and size of an image from its header, so that large images can be refused before they are decoded. */

type ImageFormat = "png" | "jpeg" | "gif" | "webp" | "bmp" | "tiff"

export interface ImageSize {
  readonly width: number
  readonly height: number
}

const startsWith = (bytes: Uint8Array, at: number, text: string): boolean =>
  bytes.length >= at + text.length &&
  Array.from(text).every((c, index) => bytes[at + index] === c.charCodeAt(0))

/** Signatures that could begin a text are checked together with bytes that text does not contain. */
export const imageFormat = (bytes: Uint8Array): ImageFormat | undefined => {
  if (startsWith(bytes, 0, "\x89PNG\r\n\x1a\n")) return "png"
  if (startsWith(bytes, 0, "\xff\xd8\xff")) return "jpeg"
  if (startsWith(bytes, 0, "GIF87a") || startsWith(bytes, 0, "GIF89a")) return "gif"
  if (startsWith(bytes, 0, "RIFF") && startsWith(bytes, 8, "WEBP")) return "webp"
  if (startsWith(bytes, 0, "BM") && startsWith(bytes, 6, "\0\0\0\0")) return "bmp"
  if (startsWith(bytes, 0, "II*\0") || startsWith(bytes, 0, "MM\0*")) return "tiff"
  return undefined
}

const pngSize = (view: DataView): ImageSize => ({ width: view.getUint32(16), height: view.getUint32(20) })

/** All frames of a GIF are decoded, but with one byte per pixel. This number counts as one pixel of other formats. */
const gifPixelsPerCountedPixel = 8

const colourTableBytes = (flags: number): number => ((flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 7) + 1))

/** The position after the data blocks that begin at `at`. Each has a length; an empty one ends them. */
const afterBlocks = (view: DataView, at: number): number => {
  let next = at
  while (next < view.byteLength && view.getUint8(next) !== 0) next += 1 + view.getUint8(next)
  return next + 1
}

/**
 * The size of the largest frame, or a share of all frames together, if that is larger. The size of a frame may differ
 * from that of the picture.
 */
const gifSize = (view: DataView): ImageSize => {
  let width = view.getUint16(6, true)
  let height = view.getUint16(8, true)
  let pixels = 0
  for (let at = 13 + colourTableBytes(view.getUint8(10)); at < view.byteLength;) {
    const block = view.getUint8(at)
    if (block === 0x21) at = afterBlocks(view, at + 2)
    else if (block === 0x2c) {
      const [frameWidth, frameHeight] = [view.getUint16(at + 5, true), view.getUint16(at + 7, true)]
      width = Math.max(width, frameWidth)
      height = Math.max(height, frameHeight)
      pixels += frameWidth * frameHeight
      at = afterBlocks(view, at + 11 + colourTableBytes(view.getUint8(at + 9)))
    } else break
  }
  return {
    width,
    height: Math.max(height, Math.ceil(pixels / gifPixelsPerCountedPixel / Math.max(1, width)))
  }
}

const bmpSize = (view: DataView): ImageSize => ({
  width: Math.abs(view.getInt32(18, true)),
  height: Math.abs(view.getInt32(22, true))
})

/** Start-of-frame markers: C0 to CF, except three with another meaning. */
const isStartOfFrame = (marker: number): boolean =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc

const jpegSize = (view: DataView): ImageSize | undefined => {
  for (let at = 2; at + 9 < view.byteLength;) {
    if (view.getUint8(at) !== 0xff) return undefined
    const marker = view.getUint8(at + 1)
    if (isStartOfFrame(marker)) return { height: view.getUint16(at + 5), width: view.getUint16(at + 7) }
    at += marker === 0xff ? 1 : 2 + view.getUint16(at + 2)
  }
  return undefined
}

const webpSize = (view: DataView): ImageSize | undefined => {
  const kind = view.getUint32(12)
  const uint24 = (at: number) => view.getUint16(at, true) | (view.getUint8(at + 2) << 16)
  // "VP8X", "VP8L", "VP8 "
  if (kind === 0x56503858) return { width: uint24(24) + 1, height: uint24(27) + 1 }
  if (kind === 0x5650384c) {
    const bits = view.getUint32(21, true)
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
  }
  if (kind !== 0x56503820) return undefined
  return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff }
}

/** The size of the first page. */
const tiffSize = (view: DataView): ImageSize => {
  const isLittleEndian = view.getUint8(0) === 0x49
  const start = view.getUint32(4, isLittleEndian)
  const found = { width: 0, height: 0 }
  for (let entry = 0; entry < view.getUint16(start, isLittleEndian); entry++) {
    const at = start + 2 + entry * 12
    const value =
      view.getUint16(at + 2, isLittleEndian) === 3
        ? view.getUint16(at + 8, isLittleEndian)
        : view.getUint32(at + 8, isLittleEndian)
    // The entry may occur twice, and a decoder may use the first.
    if (view.getUint16(at, isLittleEndian) === 256) found.width = Math.max(found.width, value)
    if (view.getUint16(at, isLittleEndian) === 257) found.height = Math.max(found.height, value)
  }
  return found
}

const sizes: Readonly<Record<ImageFormat, (view: DataView) => ImageSize | undefined>> = {
  png: pngSize,
  jpeg: jpegSize,
  gif: gifSize,
  webp: webpSize,
  bmp: bmpSize,
  tiff: tiffSize
}

/** The declared size in pixels; undefined when the header is incomplete or has none. */
export const imageSize = (bytes: Uint8Array, format: ImageFormat): ImageSize | undefined => {
  try {
    const size = sizes[format](new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    return size !== undefined && size.width > 0 && size.height > 0 ? size : undefined
  } catch {
    return undefined
  }
}
