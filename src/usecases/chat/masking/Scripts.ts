/** Characters of other scripts, in which people write the same numbers and addresses. */
import { asciiDigit } from "../../../domain/Text.ts"

/** Full-width forms are this far from ASCII. */
const fullWidthOffset = 0xfee0
const separators: ReadonlyMap<string, string> = new Map([
  ["\u2212", "-"],
  ["\u30fc", "-"],
  ["\u3000", " "]
])
const otherDigit = /(?![0-9\u{10000}-\u{10ffff}])\p{Nd}/gu
// Japanese writers take the mark of a long vowel (U+30FC) for a dash between digits. Elsewhere it belongs to a word.
const fullWidth = /[\u2212\u3000\uff01-\uff5e]|(?<=[0-9\uff09])\u30fc(?=[0-9\uff08])/g

const asciiForm = (character: string): string =>
  separators.get(character) ?? String.fromCharCode(character.charCodeAt(0) - fullWidthOffset)

/** The text with ASCII digits and separators. Every character keeps its position. */
export const inAscii = (text: string): string =>
  text.replaceAll(otherDigit, asciiDigit).replaceAll(fullWidth, asciiForm)

/**
 * A letter of a script without spaces between words, or the mark of a long vowel, which has no script of its own. It does
 * not belong to a number or an address beside it.
 */
export const unspacedLetter =
  /[\u30fc\uff70\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Khmer}\p{Script=Lao}\p{Script=Myanmar}\p{Script=Thai}]/u
