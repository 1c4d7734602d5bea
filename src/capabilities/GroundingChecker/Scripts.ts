/** The script of a text. */

/** Chinese and Japanese texts mix these scripts. */
const eastAsian = ["Han", "Hiragana", "Katakana", "Bopomofo"]

/**
 * The other scripts that are in use today, by their names in Unicode. Where two have as many letters, the first one
 * counts.
 */
const scriptNames = (
  "Hangul Cyrillic Arabic Greek Hebrew Devanagari Thai Latin Bengali Tamil Telugu Gujarati Kannada Malayalam Gurmukhi " +
  "Oriya Sinhala Khmer Lao Myanmar Tibetan Armenian Georgian Ethiopic Thaana Mongolian Adlam Balinese Bamum Batak " +
  "Canadian_Aboriginal Chakma Cham Cherokee Hanifi_Rohingya Javanese Kayah_Li Lepcha Limbu Lisu Mandaic Meetei_Mayek " +
  "Miao New_Tai_Lue Newa Nko Nyiakeng_Puachue_Hmong Ol_Chiki Osage Saurashtra Sundanese Syloti_Nagri Syriac Tai_Le " +
  "Tai_Tham Tai_Viet Tifinagh Vai Wancho Yi"
).split(" ")

const lettersOf = (scripts: ReadonlyArray<string>): RegExp =>
  new RegExp(`[${scripts.map((name) => `\\p{Script=${name}}`).join("")}]`, "gu")

const scripts = [
  ["Han", lettersOf(eastAsian)] as const,
  ...scriptNames.map((name) => [name, lettersOf([name])] as const)
]

/** A character that belongs to one script. Digits, punctuation and accents are common to several. */
const characterOfOneScript = /[^\p{Script=Common}\p{Script=Inherited}]/gu

const countOf = (text: string, characters: RegExp): number => text.match(characters)?.length ?? 0

/**
 * The name of the script that most letters of a text belong to; "Han" for Chinese and Japanese, and "other" for scripts
 * that are out of use. Undefined for a text without letters.
 */
export const scriptOf = (text: string): string | undefined => {
  let lettersLeft = countOf(text, characterOfOneScript)
  let mostLetters = 0
  let found: string | undefined
  for (const [name, letters] of scripts) {
    // No other script can have more letters.
    if (lettersLeft <= mostLetters) return found
    const count = countOf(text, letters)
    lettersLeft -= count
    if (count > mostLetters) {
      mostLetters = count
      found = name
    }
  }
  return lettersLeft > mostLetters ? "other" : found
}

/** Scripts without spaces between words, which are compared by pairs of characters. */
export const unspacedScripts: ReadonlySet<string | undefined> = new Set([
  "Han",
  "Thai",
  "Lao",
  "Khmer",
  "Myanmar"
])
