/** Characters of other scripts, in which people write the same numbers and addresses. */

/** The zeros of decimal digits: Arabic, Persian, Devanagari, Bengali, Thai. */
const zeros = [0x0660, 0x06f0, 0x0966, 0x09e6, 0x0e50]
/** Full-width forms are this far from ASCII. */
const fullWidthOffset = 0xfee0
const separators: ReadonlyMap<string, string> = new Map([
  ["\u2212", "-"],
  // Japanese writers take the mark of a long vowel for a dash.
  ["\u30fc", "-"],
  ["\u3000", " "]
])
const replaceable =
  /[\u0660-\u0669\u06f0-\u06f9\u0966-\u096f\u09e6-\u09ef\u0e50-\u0e59\u2212\u3000\u30fc\uff01-\uff5e]/g

const asciiOf = (character: string): string => {
  const separator = separators.get(character)
  if (separator !== undefined) return separator
  const code = character.charCodeAt(0)
  const zero = zeros.find((first) => code >= first && code < first + 10)
  return zero === undefined ? String.fromCharCode(code - fullWidthOffset) : String(code - zero)
}

/** The text with ASCII digits and separators. Every character keeps its position. */
export const inAscii = (text: string): string => text.replaceAll(replaceable, asciiOf)

/** A letter of a script without spaces between words. It does not belong to a number or an address beside it. */
export const unspacedLetter =
  /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Khmer}\p{Script=Lao}\p{Script=Myanmar}\p{Script=Thai}]/u
