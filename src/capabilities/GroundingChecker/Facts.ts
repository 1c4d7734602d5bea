/** The checkable facts of a sentence: numbers, names, quotations, and negation. */

const listed = (words: string): ReadonlySet<string> => new Set(words.split(/\s+/u))

/** Two to twelve in words; "one" says too much else. */
const numberWords = new Map(
  [
    "two three four five six seven eight nine ten eleven twelve",
    "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "deux trois quatre cinq six sept huit neuf dix onze douze",
    "dos tres cuatro cinco seis siete ocho nueve diez once doce"
  ].flatMap((words) => words.split(" ").map((word, place) => [word, String(place + 2)] as const))
)

const number = /\d+(?:[.,'’\u00a0\u202f]\d+)*/gu

const plainNumber = (digits: string, fraction = ""): string => {
  const whole = digits.replace(/^0+(?=\d)/u, "")
  let end = fraction.length
  while (fraction.charAt(end - 1) === "0") end--
  return end === 0 ? whole : `${whole}.${fraction.slice(0, end)}`
}

/** How a number can be meant: `1.000` is a thousand, or one. */
const formsOf = (written: string): ReadonlyArray<string> => {
  const groups = written.split(/[.,'’\u00a0\u202f]/u)
  const [first = "", ...others] = groups
  if (others.length === 0) return [plainNumber(first)]
  const signs = new Set(written.replaceAll(/\d/gu, ""))
  const last = others.at(-1) ?? ""
  const isGrouped = first.length <= 3 && others.every((group) => group.length === 3)
  if (signs.size > 1) return [plainNumber(groups.slice(0, -1).join(""), last)]
  const grouped = isGrouped ? [plainNumber(groups.join(""))] : []
  if (others.length > 1) return isGrouped ? grouped : [written]
  return /[.,]/u.test(written) ? [...grouped, plainNumber(first, last)] : grouped
}

/** Digits of any script as those of ASCII, and one form of what looks alike. */
export const normal = (text: string): string => {
  const plain = text.replaceAll(/(\p{M}{8})\p{M}+/gu, "$1").normalize("NFKC")
  return plain.replaceAll(/\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0) ?? 0
    // Each script has its ten digits in a row.
    for (let value = 0; value < 10; value++)
      if (value === 9 || !/\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) return String(value % 10)
    return digit
  })
}

/** Each number with the ways in which it can be meant. */
export const numbersOf = (text: string): ReadonlyArray<ReadonlyArray<string>> => [
  ...Array.from(text.matchAll(number), ([written]) => formsOf(written)),
  ...Array.from(text.toLowerCase().matchAll(/\p{L}+/gu), ([word]) => numberWords.get(word)).flatMap(
    (value) => (value === undefined ? [] : [[value]])
  )
]

/** A run of letters and digits; scripts that are written without spaces have none. */
const word =
  /(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}])[\p{L}\p{N}\p{M}_])+/gu

/** Every word, lower case. */
export const wordsOf = (text: string): ReadonlySet<string> =>
  new Set(Array.from(text.matchAll(word), ([found]) => found.toLowerCase()))

const isMixed = (found: string): boolean => /\p{Ll}\p{Lu}|\p{Lu}{2}|_|\p{L}\p{N}|\p{N}\p{L}/u.test(found)
const isCapital = (found: string): boolean => /^\p{Lu}/u.test(found)

/** Share of words with a capital from which capitals tell nothing, as in German. */
const capitalShare = 0.22

/** Whether the words of a text that begin with a capital are names; the first of a sentence tells nothing. */
export const namesHaveCapitals = (text: string): boolean => {
  let capitals = 0
  let all = 0
  for (const { 0: found, index } of text.matchAll(word)) {
    if (
      !/^\p{L}/u.test(found) ||
      /(?:^|[.!?:\n]\s*|[*#>|-]\s*)$/u.test(text.slice(Math.max(0, index - 3), index))
    )
      continue
    all++
    if (isCapital(found) && !isMixed(found)) capitals++
  }
  return capitals <= all * capitalShare
}

/** Names and identifiers, lower case: words with a capital inside of a sentence, and words that no language has. */
export const namesOf = (
  sentence: string,
  { capitals }: { readonly capitals: boolean }
): ReadonlyArray<string> => {
  const names: Array<string> = []
  const first = sentence.search(/[\p{L}\p{N}]/u)
  for (const { 0: found, index } of sentence.matchAll(word)) {
    const isName = isMixed(found) || (capitals && index !== first && isCapital(found) && found.length > 1)
    if (isName) names.push(found.toLowerCase())
  }
  return names
}

/** What stands between quotation marks and is more than a word, or between backticks. */
export const quotationsOf = (text: string): ReadonlyArray<string> =>
  Array.from(
    text.matchAll(/["“„«]([^"“”„«»\n]{6,300})["”“»]|`([^`\n]{2,300})`/gu),
    ([, quoted, code]) => quoted ?? code ?? ""
  ).filter((quoted) => /\S\s+\S/u.test(quoted) || /[^\p{L}\s]/u.test(quoted))

const denying = listed(
  "not no never none nor neither cannot nothing nobody unable " +
    "nicht kein keine keinen keinem keiner keines nie niemals weder nichts " +
    "pas jamais aucun aucune rien nunca ningún ninguna ninguno jamás tampoco " +
    "non mai nessun nessuno nessuna não nenhum nenhuma niet geen nooit " +
    "не нет никогда ни нельзя nie nigdy değil yok لا لم لن ليس δεν μην " +
    // What is forbidden is not to be done.
    "prohibited forbidden banned verboten untersagt interdit interdite interdits interdites prohibido prohibida " +
    "prohibidos prohibidas vietato vietata vietati vietate proibido proibida proibidos proibidas verboden " +
    "запрещено запрещён запрещена запрещены zabroniony zabroniona zabronione wzbroniony wzbronione yasak yasaktır ممنوع"
)
const denyingPiece = /n['’]t\b|\bfree (?:of|from)\b(?! charge)|[不没沒无無未]|禁止|ない|ません|않|없|못하/u

/** What stands after it alone is missing; the rest of the sentence is affirmed. */
const lacking = listed("without ohne sans sin senza sem zonder utan uden uten без bez بدون χωρίς")
/** Words after it, of which the first that is no article is missing. */
const lackedWords = 3
const isArticle = (found: string): boolean => found.length < 4

/** Whether a sentence or a part of it denies something. */
export const denies = (text: string): boolean => {
  if (denyingPiece.test(text)) return true
  for (const [found] of text.toLowerCase().matchAll(/[\p{L}\p{M}]+/gu)) if (denying.has(found)) return true
  return false
}

/** What a text says is missing: the word after each "without". */
export const lackedIn = (text: string): ReadonlyArray<string> => {
  const words = Array.from(text.toLowerCase().matchAll(/[\p{L}\p{M}]+/gu), ([found]) => found)
  return words.flatMap((found, at) => {
    if (!lacking.has(found)) return []
    const after = words.slice(at + 1, at + 1 + lackedWords)
    const lacked = after.find((next) => !isArticle(next)) ?? after[0]
    return lacked === undefined ? [] : [lacked]
  })
}

/** What a sentence says one after the other. */
export const clausesOf = (sentence: string): ReadonlyArray<string> =>
  sentence
    .split(/[,;:()–—、，；：]|\b(?:but|aber|sondern|mais|pero|ma|mas|maar|except|unless)\b/iu)
    .filter((part) => /[\p{L}\p{N}]/u.test(part))
