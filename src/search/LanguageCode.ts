/**
 * Detects the language of a question by its function words. This is cheap, and gives no result where they do not tell.
 */

const functionWords: Readonly<Record<string, string>> = {
  en: "the is are was were do does did can could how what where when why which who my your our i you we they it of to in on for with and not this that have has there",
  de: "der die das den dem ein eine einen ist sind war wie was wo wann warum welche wer mein meine ich sie wir es und nicht mit von zu zum zur für auf im kann können habe hat gibt bei muss",
  fr: "le la les un une des est sont était comment que quoi où quand pourquoi quel quelle qui mon ma mes je vous nous il elle et ne pas avec pour dans sur puis peut avez ai du au",
  es: "el los las una es son era cómo como qué dónde cuándo por porque cuál quién mi mis yo usted nosotros y no con para en puedo puede tengo tiene hay del al está están",
  it: "il lo gli una è sono era come che cosa dove quando perché quale chi mio mia io voi noi e non con per nel posso può ho avete ci della del alla",
  pt: "os as um uma é são foi como o que onde quando porque qual quem meu minha eu você nós e não com para em posso pode tenho tem há do da no na está",
  nl: "het een is zijn was hoe wat waar wanneer waarom welke wie mijn ik jij u wij en niet met van naar voor op kan kunnen heb heeft er bij moet deze",
  pl: "jest są był jak co gdzie kiedy dlaczego który kto mój moja ja pan pani my i nie z do na dla w mogę może mam czy się po od",
  sv: "är var hur vad vart när varför vilken vem min mitt jag du ni vi och inte med för på kan har det att ett en av till",
  tr: "bir bu nasıl ne nerede zaman neden hangi kim benim ben siz biz ve değil ile için mi mı mu mü var yok olarak kadar"
}

/** The languages that a function word belongs to. */
const languagesOfWord = new Map<string, Array<string>>()
for (const [language, words] of Object.entries(functionWords))
  for (const word of words.split(" "))
    languagesOfWord.set(word, [...(languagesOfWord.get(word) ?? []), language])

/** Maximum number of UTF-16 units of a question that are examined. */
const sampleLength = 500
const latinWord = /[\p{Script=Latin}\p{M}]+/gu

/**
 * Letters that occur in only one language of a script, and scripts that are used for mostly one language. The first
 * match counts, so the letters of a language come before its script.
 */
const scripts: ReadonlyArray<readonly [RegExp, string]> = [
  [/[\p{Script=Hiragana}\p{Script=Katakana}]/u, "ja"],
  [/\p{Script=Hangul}/u, "ko"],
  [/\p{Script=Han}/u, "zh"],
  [/ў/u, "be"],
  [/[ғқұ]/u, "kk"],
  [/[іїєґ]/u, "uk"],
  [/[ѓќѕ]/u, "mk"],
  [/[ђјљњћџ]/u, "sr"],
  // In Russian this letter stands only before these vowels.
  [/ъ(?![еёюя])/u, "bg"],
  [/\p{Script=Cyrillic}/u, "ru"],
  [/[ٹڈڑںھہے]/u, "ur"],
  [/[پچژگکی]/u, "fa"],
  [/\p{Script=Arabic}/u, "ar"],
  [/\p{Script=Hebrew}/u, "he"],
  [/\p{Script=Greek}/u, "el"],
  [/\p{Script=Devanagari}/u, "hi"],
  [/\p{Script=Bengali}/u, "bn"],
  [/\p{Script=Tamil}/u, "ta"],
  [/\p{Script=Thai}/u, "th"],
  [/\p{Script=Georgian}/u, "ka"],
  [/\p{Script=Armenian}/u, "hy"]
]

/** The ISO 639-1 code of the language; null if the words do not tell, or two languages are equally likely. */
export const languageCode = (text: string): string | null => {
  const sample = text.slice(0, sampleLength).toLowerCase()
  for (const [letter, language] of scripts) if (letter.test(sample)) return language
  const counts = new Map<string, number>()
  for (const [word] of sample.matchAll(latinWord)) {
    const languages = languagesOfWord.get(word) ?? []
    // A word that several languages share counts less for each.
    for (const language of languages) counts.set(language, (counts.get(language) ?? 0) + 1 / languages.length)
  }
  const [first, second] = [...counts].toSorted(([, one], [, other]) => other - one)
  return first === undefined || first[1] === second?.[1] ? null : first[0]
}
