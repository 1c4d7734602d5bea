/**
 * What a customer is told when a human takes over and the model has not said so: one sentence, in the
 * language that the customer writes where it is one of these, else in English.
 */

interface Language {
  /** ISO 639-1. */
  readonly code: string
  readonly sentence: string
  /** Frequent short words, or the script. */
  readonly words: RegExp
}

const words = (list: string): RegExp =>
  new RegExp(`(?<![\\p{L}\\p{M}])(?:${list.split(" ").join("|")})(?![\\p{L}\\p{M}])`, "giu")

const languages: ReadonlyArray<Language> = [
  {
    code: "de",
    sentence: "Ein Mensch aus unserem Team übernimmt und antwortet hier, sobald es geht.",
    words: words("ich und der die das ist nicht ein eine mit bitte wie kann mir möchte für auf")
  },
  {
    code: "fr",
    sentence: "Une personne de notre équipe prend le relais et vous répondra ici dès que possible.",
    words: words("je vous et le la les est une des pas pour bonjour avec mon ma puis voudrais")
  },
  {
    code: "es",
    sentence: "Una persona de nuestro equipo se hará cargo y responderá aquí en cuanto sea posible.",
    words: words("el los las y es una por qué con mi quiero puedo hola para cómo usted")
  },
  {
    code: "it",
    sentence:
      "Una persona del nostro team prende in carico la conversazione e risponderà qui appena possibile.",
    words: words("il lo gli è non di che per una con vorrei posso ciao come mio sono")
  },
  {
    code: "pt",
    sentence: "Uma pessoa da nossa equipe vai assumir e responder aqui assim que possível.",
    words: words("o os é não uma você por com meu minha quero posso olá como em preciso")
  },
  {
    code: "nl",
    sentence: "Een medewerker van ons team neemt het over en antwoordt hier zo snel mogelijk.",
    words: words("ik het een en niet van voor met kan graag mijn wil hoe alstublieft dat")
  },
  { code: "zh", sentence: "我们的工作人员会接手，并尽快在这里回复您。", words: /\p{Script=Han}/gu },
  {
    code: "ja",
    sentence: "担当者が引き継ぎ、できるだけ早くここでお返事します。",
    words: /[\p{Script=Hiragana}\p{Script=Katakana}]{1,2}/gu
  },
  {
    code: "ko",
    sentence: "담당자가 이어받아 최대한 빨리 여기에서 답변드리겠습니다.",
    words: /\p{Script=Hangul}/gu
  },
  {
    code: "ru",
    sentence: "Сотрудник нашей команды ответит вам здесь как можно скорее.",
    words: /\p{Script=Cyrillic}+/gu
  },
  {
    code: "ar",
    sentence: "سيتولى أحد أعضاء فريقنا المحادثة ويرد عليك هنا في أقرب وقت ممكن.",
    words: /\p{Script=Arabic}+/gu
  }
]

const english: Language = {
  code: "en",
  sentence: "A member of our team is taking over and will answer here as soon as possible.",
  words: words("i the and is to a you my of can want with please how not it for hello")
}

/** Characters that are looked at. */
const enough = 2_000

/** The sentence in `language`, a tag such as `de-AT`, where it is known, else for a customer who writes like `message`. */
export const sentenceFor = (message: string, language = ""): string => {
  const code = language.slice(0, 2).toLowerCase()
  const named = [english, ...languages].find((one) => one.code === code)
  if (named !== undefined) return named.sentence
  const sample = message.slice(0, enough)
  const count = (language: Language) => (sample.match(language.words) ?? []).length
  let best = english
  let most = count(english)
  for (const language of languages) {
    const found = count(language)
    // Kana settles what Chinese characters leave open, so the later of two equals wins among those that were found.
    if (found > most) {
      best = language
      most = found
    }
  }
  return best.sentence
}

const sentences = new Set([english, ...languages].map(({ sentence }) => sentence))

/** Whether the service says `text`, whatever the language. */
export const isSentence = (text: string): boolean => sentences.has(text)
