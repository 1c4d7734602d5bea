/** The checkable facts of a sentence: numbers, names, quotations, and negation. */
import { asciiDigit } from "../../domain/Text.ts"
import { wordSet } from "../../search/FunctionWords.ts"
import { withoutJoiners } from "../../search/Tokenizer.ts"

/**
 * "Two" to "twelve" in words. Words that are more often something else are left out: "one", "once" in Spanish, which is
 * English too, and "dos", which is Portuguese too.
 */
const numberWords = new Map(
  [
    "two three four five six seven eight nine ten eleven twelve",
    "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "deux trois quatre cinq six sept huit neuf dix onze douze",
    "dos tres cuatro cinco seis siete ocho nueve diez once doce"
  ]
    .flatMap((words) => words.split(" ").map((word, index) => [word, String(index + 2)] as const))
    .filter(([word]) => word !== "dos" && word !== "once")
)

const number = /\d+(?:[.,'’\u00a0\u202f]\d+)*/gu

const plainNumber = (digits: string, fraction = ""): string => {
  const whole = digits.replace(/^0+(?=\d)/u, "")
  let end = fraction.length
  while (fraction.charAt(end - 1) === "0") end--
  return end === 0 ? whole : `${whole}.${fraction.slice(0, end)}`
}

/** The possible meanings of a number: `1.000` is a thousand, or one. */
const formsOf = (written: string): ReadonlyArray<string> => {
  const groups = written.split(/[.,'’\u00a0\u202f]/u)
  const [first = "", ...others] = groups
  if (others.length === 0) return [plainNumber(first)]
  const separators = new Set(written.replaceAll(/\d/gu, ""))
  const last = others.at(-1) ?? ""
  const isGrouped = first.length <= 3 && others.every((group) => group.length === 3)
  if (separators.size > 1) return [plainNumber(groups.slice(0, -1).join(""), last)]
  const grouped = isGrouped ? [plainNumber(groups.join(""))] : []
  if (others.length > 1) return isGrouped ? grouped : [written]
  return /[.,]/u.test(written) ? [...grouped, plainNumber(first, last)] : grouped
}

/** Normalizes the digits of any script to ASCII, and similar-looking characters to one form. */
export const normalize = (text: string): string => {
  const plain = withoutJoiners(text)
    .replaceAll(/(\p{M}{8})\p{M}+/gu, "$1")
    .normalize("NFKC")
  return plain.replaceAll(/\p{Nd}/gu, asciiDigit)
}

/** Each number with its possible meanings. */
export const numbersOf = (text: string): ReadonlyArray<ReadonlyArray<string>> => [
  ...Array.from(text.matchAll(number), ([written]) => formsOf(written)),
  ...Array.from(text.toLowerCase().matchAll(/\p{L}+/gu), ([word]) => numberWords.get(word)).flatMap(
    (value) => (value === undefined ? [] : [[value]])
  )
]

/** A run of letters and digits. Scripts without spaces have none. */
const word =
  /(?:(?![\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}])[\p{L}\p{N}\p{M}_])+/gu

/** Every word, lower case. */
export const wordsOf = (text: string): ReadonlySet<string> =>
  new Set(Array.from(text.matchAll(word), ([found]) => found.toLowerCase()))

const isMixed = (found: string): boolean => /\p{Ll}\p{Lu}|\p{Lu}{2}|_|\p{L}\p{N}|\p{N}\p{L}/u.test(found)
const isCapital = (found: string): boolean => /^\p{Lu}/u.test(found)

/** Share of capitalised words above which capitals do not indicate names, as in German. */
const maxCapitalShare = 0.22

/** Whether capitalised words of a text are names. The first word of a sentence is ignored. */
export const namesHaveCapitals = (text: string): boolean => {
  let capitalized = 0
  let words = 0
  for (const { 0: found, index } of text.matchAll(word)) {
    if (
      !/^\p{L}/u.test(found) ||
      /(?:^|[.!?:\n]\s*|[*#>|-]\s*)$/u.test(text.slice(Math.max(0, index - 3), index))
    )
      continue
    words++
    if (isCapital(found) && !isMixed(found)) capitalized++
  }
  return capitalized <= words * maxCapitalShare
}

/** Names and identifiers, lower case: capitalised words within a sentence, and words such as `iPhone` or `max_size`. */
export const namesOf = (
  sentence: string,
  { capitalsAreNames }: { readonly capitalsAreNames: boolean }
): ReadonlyArray<string> => {
  const names: Array<string> = []
  const first = sentence.search(/[\p{L}\p{N}]/u)
  for (const { 0: found, index } of sentence.matchAll(word)) {
    const isName =
      isMixed(found) || (capitalsAreNames && index !== first && isCapital(found) && found.length > 1)
    if (isName) names.push(found.toLowerCase())
  }
  return names
}

/** Text between quotation marks that is more than a word, or text between backticks. */
export const quotationsOf = (text: string): ReadonlyArray<string> =>
  Array.from(
    text.matchAll(/["“„«]([^"“”„«»\n]{6,300})["”“»]|`([^`\n]{2,300})`/gu),
    ([, quoted, code]) => quoted ?? code ?? ""
  ).filter((quoted) => /\S\s+\S/u.test(quoted) || /[^\p{L}\s]/u.test(quoted))

const negations = wordSet(
  "not no never none nor neither cannot nothing nobody unable " +
    "nicht kein keine keinen keinem keiner keines nie niemals weder nichts " +
    "pas jamais aucun aucune rien nunca ningún ninguna ninguno jamás tampoco " +
    "non mai nessun nessuno nessuna não nenhum nenhuma niet geen nooit " +
    "не нет никогда ни нельзя nie nigdy değil yok لا لم لن ليس δεν μην " +
    // Prohibitions count as negations.
    "prohibited forbidden banned verboten untersagt interdit interdite interdits interdites prohibido prohibida " +
    "prohibidos prohibidas vietato vietata vietati vietate proibido proibida proibidos proibidas verboden " +
    "запрещено запрещён запрещена запрещены zabroniony zabroniona zabronione wzbroniony wzbronione yasak yasaktır ممنوع"
)
const negationPattern = /n['’]t\b|\bfree (?:of|from)\b(?! charge)|[不没沒无無未]|禁止|ない|ません|않|없|못하/u

/** Words for "without". They negate only what follows them, not the rest of the sentence. */
const wordsForWithout = wordSet("without ohne sans sin senza sem zonder utan uden uten без bez بدون χωρίς")
/** The first of this number of following words that is not an article is negated. */
const maxWordsAfterWithout = 3
const isArticle = (found: string): boolean => found.length < 4

/** Whether a sentence or a clause contains a negation. */
export const hasNegation = (text: string): boolean => {
  if (negationPattern.test(text)) return true
  for (const [found] of text.toLowerCase().matchAll(/[\p{L}\p{M}]+/gu)) if (negations.has(found)) return true
  return false
}

/** The words that a text says are missing: the word after each "without". */
export const missingWordsIn = (text: string): ReadonlyArray<string> => {
  const words = Array.from(text.toLowerCase().matchAll(/[\p{L}\p{M}]+/gu), ([found]) => found)
  return words.flatMap((found, at) => {
    if (!wordsForWithout.has(found)) return []
    const after = words.slice(at + 1, at + 1 + maxWordsAfterWithout)
    const missing = after.find((next) => !isArticle(next)) ?? after[0]
    return missing === undefined ? [] : [missing]
  })
}

/** The clauses of a sentence. */
export const clausesOf = (sentence: string): ReadonlyArray<string> =>
  sentence
    .split(/[,;:()–—、，；：]|\b(?:but|aber|sondern|mais|pero|ma|mas|maar|except|unless)\b/iu)
    .filter((part) => /[\p{L}\p{N}]/u.test(part))
