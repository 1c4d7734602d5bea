/** Decodes text of a named encoding. */
import * as Option from "effect/Option"

const decoder = Option.liftThrowable((label: string, fatal: boolean) => new TextDecoder(label, { fatal }))
const decode = Option.liftThrowable(
  (bytes: Uint8Array, { label, fatal }: { label: string; fatal: boolean }) =>
    new TextDecoder(label, { fatal }).decode(bytes)
)

/** Whether `label` names an encoding that {@link decodeAs} knows. */
export const isEncoding = (label: string): boolean => Option.isSome(decoder(label, false))

/** The encoding that a byte order mark declares. */
export const markedEncoding = (bytes: Uint8Array): string | undefined => {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return "utf-8"
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le"
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be"
  return undefined
}

/** The `charset` in a content type or in markup, in lower case. */
export const charsetIn = (text: string): string | undefined =>
  /charset[ \t]{0,8}=[ \t]{0,8}["']?([A-Za-z0-9._:-]{2,40})/i.exec(text)?.[1]?.toLowerCase()

/** The encoding that the XML declaration at the start of `xml` names, in lower case. */
export const xmlEncodingIn = (xml: string): string | undefined =>
  /^\s{0,100}<\?xml\s[^>]{0,200}?encoding\s?=\s?["']([\w.:-]{2,40})/i.exec(xml)?.[1]?.toLowerCase()

/** None for bytes that are not UTF-8. */
export const decodeUtf8 = (bytes: Uint8Array): Option.Option<string> =>
  decode(bytes, { label: "utf-8", fatal: true })

/** The characters of 0x80 to 0x9F in windows-1252. Five are unassigned. */
const windows1252Characters = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"

/** Some releases of Node decode windows-1252 (alias latin1) as if these were control characters. */
const withWindows1252Characters = (text: string): string =>
  text.replace(/[\u0080-\u009f]/g, (control) => windows1252Characters.charAt(control.charCodeAt(0) - 0x80))

const isWindows1252 = (label: string): boolean =>
  Option.exists(decoder(label, false), ({ encoding }) => encoding === "windows-1252")

/** Undecodable bytes become U+FFFD. Bytes of an unknown encoding are decoded as UTF-8. */
export const decodeAs = (bytes: Uint8Array, label: string): string => {
  const text = Option.getOrElse(decode(bytes, { label, fatal: false }), () => new TextDecoder().decode(bytes))
  return isWindows1252(label) ? withWindows1252Characters(text) : text
}

/** By byte order mark, else as UTF-8 if it is valid, else in the `declared` encoding. */
export const decodeDeclared = (bytes: Uint8Array, declared: () => string | undefined): string => {
  const marked = markedEncoding(bytes)
  if (marked !== undefined) return decodeAs(bytes, marked)
  return Option.getOrElse(decodeUtf8(bytes), () => decodeAs(bytes, declared() ?? "utf-8"))
}
