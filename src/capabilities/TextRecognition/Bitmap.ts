/** Converts BMP to PPM, because the library's own BMP decoder takes a thousand times the file's memory. */
import { imageSize } from "./ImageHeader.ts"

/** Undefined for compressed bitmaps and those with a palette. */
export const bitmapToPpm = (bytes: Uint8Array): Uint8Array | undefined => {
  const size = imageSize(bytes, "bmp")
  if (size === undefined || bytes.length < 54) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const dotBytes = view.getUint16(28, true) / 8
  const compression = view.getUint32(30, true)
  const { width, height } = size
  const start = view.getUint32(10, true)
  const stride = Math.ceil((width * dotBytes) / 4) * 4
  const plain =
    (dotBytes === 3 && compression === 0) || (dotBytes === 4 && (compression === 0 || compression === 3))
  if (!plain || start + stride * height > bytes.length) return undefined
  const head = new TextEncoder().encode(`P6 ${width} ${height} 255\n`)
  const ppm = new Uint8Array(head.length + width * height * 3)
  ppm.set(head)
  const upwards = view.getInt32(22, true) > 0
  let to = head.length
  for (let row = 0; row < height; row++) {
    let from = start + (upwards ? height - 1 - row : row) * stride
    for (let column = 0; column < width; column++, from += dotBytes, to += 3) {
      ppm[to] = bytes[from + 2] ?? 0
      ppm[to + 1] = bytes[from + 1] ?? 0
      ppm[to + 2] = bytes[from] ?? 0
    }
  }
  return ppm
}
