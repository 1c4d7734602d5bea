/** Decodes bytes to text: by byte order mark, else UTF-8 if valid, else the declared encoding, else a guess. */
import * as chardet from "chardet"
import * as Option from "effect/Option"
import {
  charsetIn,
  decodeAs,
  decodeUtf8,
  isEncoding,
  markedEncoding,
  xmlEncodingIn
} from "../../domain/knowledge/Encoding.ts"

const guessSampleBytes = 64 * 1024

/** Bytes from the first that is not ASCII. Those before say nothing about the encoding. */
const guessSample = (bytes: Uint8Array): Uint8Array => {
  const start = Math.max(
    0,
    bytes.findIndex((byte) => byte > 127)
  )
  return bytes.subarray(start, start + guessSampleBytes)
}

/** Detects UTF-16 without a byte order mark by Latin text: every other byte is zero. */
const unmarkedUtf16 = (bytes: Uint8Array): string | undefined => {
  const sample = bytes.subarray(0, 1_024)
  let even = 0
  let odd = 0
  for (let index = sample.indexOf(0); index !== -1; index = sample.indexOf(0, index + 1)) {
    if (index % 2 === 0) even++
    else odd++
  }
  const minZeroBytes = sample.length * 0.4
  if (sample.length < 8) return undefined
  if (odd > minZeroBytes && even < minZeroBytes / 10) return "utf-16le"
  return even > minZeroBytes && odd < minZeroBytes / 10 ? "utf-16be" : undefined
}

/** The encoding if the first bytes determine it, such as a byte order mark. */
export const certainEncoding = (bytes: Uint8Array): string | undefined =>
  markedEncoding(bytes) ?? unmarkedUtf16(bytes)

/** The encoding of the XML declaration, or the `<meta charset>`, in the first 2 KiB. Such declarations are ASCII. */
const markupCharset = (bytes: Uint8Array): string | undefined => {
  const start = new TextDecoder("latin1").decode(bytes.subarray(0, 2_048))
  return xmlEncodingIn(start) ?? charsetIn(start)
}

/** Seven-bit encodings with escape sequences are valid UTF-8, but must not be decoded as such. */
const sevenBitLabel = /^(?:iso-2022-|hz-gb)/

const declaredEncoding = (
  bytes: Uint8Array,
  contentType: string | undefined,
  markup: boolean
): string | undefined => {
  const label = charsetIn(contentType ?? "") ?? (markup ? markupCharset(bytes) : undefined)
  return label !== undefined && isEncoding(label) ? label : undefined
}

/** Always returns text; undecodable bytes become U+FFFD. `markup` also looks for what markup declares. */
export const decodeText = (bytes: Uint8Array, contentType: string | undefined, markup: boolean): string => {
  const certainLabel = certainEncoding(bytes)
  if (certainLabel !== undefined) return decodeAs(bytes, certainLabel)
  const label = declaredEncoding(bytes, contentType, markup)
  if (label !== undefined && sevenBitLabel.test(label)) return decodeAs(bytes, label)
  return Option.getOrElse(decodeUtf8(bytes), () =>
    decodeAs(bytes, label ?? chardet.detect(guessSample(bytes)) ?? "windows-1252")
  )
}
