/** Converts BMP to PPM, because the library's own BMP decoder takes a thousand times the file's memory. */
import { imageSize } from "./ImageHeader.ts"

/** Undefined for compressed bitmaps and those with a palette. */
export const bitmapToPpm = (bytes: Uint8Array): Uint8Array | undefined => {
  const size = imageSize(bytes, "bmp")
  if (size === undefined || bytes.length < 54) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const bytesPerPixel = view.getUint16(28, true) / 8
  const compression = view.getUint32(30, true)
  const { width, height } = size
  const start = view.getUint32(10, true)
  const stride = Math.ceil((width * bytesPerPixel) / 4) * 4
  const isUncompressed =
    (bytesPerPixel === 3 && compression === 0) ||
    (bytesPerPixel === 4 && (compression === 0 || compression === 3))
  if (!isUncompressed || start + stride * height > bytes.length) return undefined
  const header = new TextEncoder().encode(`P6 ${width} ${height} 255\n`)
  const ppm = new Uint8Array(header.length + width * height * 3)
  ppm.set(header)
  const isBottomUp = view.getInt32(22, true) > 0
  let to = header.length
  for (let row = 0; row < height; row++) {
    let from = start + (isBottomUp ? height - 1 - row : row) * stride
    for (let column = 0; column < width; column++, from += bytesPerPixel, to += 3) {
      ppm[to] = bytes[from + 2] ?? 0
      ppm[to + 1] = bytes[from + 1] ?? 0
      ppm[to + 2] = bytes[from] ?? 0
    }
  }
  return ppm
}
