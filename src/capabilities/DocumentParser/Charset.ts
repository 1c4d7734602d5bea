/** Decodes bytes to text: by byte order mark, else UTF-8 if valid, else the declared encoding, else a guess. */
import * as chardet from "chardet"
import * as Option from "effect/Option"

const guessSampleBytes = 64 * 1024

const decoder = Option.liftThrowable((label: string, fatal: boolean) => new TextDecoder(label, { fatal }))
const decode = Option.liftThrowable(
  (bytes: Uint8Array, { label, fatal }: { label: string; fatal: boolean }) =>
    new TextDecoder(label, { fatal }).decode(bytes)
)

/** The encoding that a byte order mark declares. */
const markedEncoding = (bytes: Uint8Array): string | undefined => {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8"
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le"
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be"
  return undefined
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

const charsetIn = (text: string): string | undefined =>
  /charset[ \t]{0,8}=[ \t]{0,8}["']?([A-Za-z0-9._:-]{2,40})/i.exec(text)?.[1]?.toLowerCase()

/** The `<meta charset>` in the first 2 KiB. Such declarations are ASCII. */
const metaCharset = (bytes: Uint8Array): string | undefined =>
  charsetIn(new TextDecoder("latin1").decode(bytes.subarray(0, 2_048)))

/** Seven-bit encodings with escape sequences are valid UTF-8, but must not be decoded as such. */
const sevenBitLabel = /^(?:iso-2022-|hz-gb)/

const declaredEncoding = (
  bytes: Uint8Array,
  contentType: string | undefined,
  markup: boolean
): string | undefined => {
  const label = charsetIn(contentType ?? "") ?? (markup ? metaCharset(bytes) : undefined)
  return label !== undefined && Option.isSome(decoder(label, false)) ? label : undefined
}

/** The characters of 0x80 to 0x9F in windows-1252. Five are unassigned. */
const windows1252Characters = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"

/** Some releases of Node decode windows-1252 (alias latin1) as if these were control characters. */
const withWindows1252Characters = (text: string): string =>
  text.replace(/[\u0080-\u009f]/g, (control) => windows1252Characters.charAt(control.charCodeAt(0) - 0x80))

const isWindows1252 = (label: string): boolean =>
  Option.exists(decoder(label, false), ({ encoding }) => encoding === "windows-1252")

/** Always returns text; undecodable bytes become U+FFFD. `markup` also looks for `<meta charset>`. */
export const decodeText = (bytes: Uint8Array, contentType: string | undefined, markup: boolean): string => {
  const decodeAs = (label: string) => {
    const text = Option.getOrElse(decode(bytes, { label, fatal: false }), () =>
      new TextDecoder().decode(bytes)
    )
    return isWindows1252(label) ? withWindows1252Characters(text) : text
  }
  const certainLabel = certainEncoding(bytes)
  if (certainLabel !== undefined) return decodeAs(certainLabel)
  const label = declaredEncoding(bytes, contentType, markup)
  if (label !== undefined && sevenBitLabel.test(label)) return decodeAs(label)
  return Option.getOrElse(decode(bytes, { label: "utf-8", fatal: true }), () =>
    decodeAs(label ?? chardet.detect(bytes.subarray(0, guessSampleBytes)) ?? "windows-1252")
  )
}
