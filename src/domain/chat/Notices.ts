/**
 * Fixed notices to a customer: when a human takes over and the model wrote nothing, and when a reply is withheld. The
 * language is that of the message where it is one of these, else English.
 */

interface Language {
  /** ISO 639-1. */
  readonly code: string
  readonly sentence: string
  /** Replaces a reply that the sources do not support. */
  readonly refusal: string
  /** Matches frequent short words of the language, or its script. */
  readonly words: RegExp
}

const words = (list: string): RegExp =>
  new RegExp(`(?<![\\p{L}\\p{M}])(?:${list.split(" ").join("|")})(?![\\p{L}\\p{M}])`, "giu")

const languages: ReadonlyArray<Language> = [
  {
    code: "de",
    sentence: "Ein Mensch aus unserem Team übernimmt und antwortet hier, sobald es geht.",
    refusal: "Dazu habe ich in den Quellen keine verlässliche Antwort gefunden.",
    words: words("ich und der die das ist nicht ein eine mit bitte wie kann mir möchte für auf")
  },
  {
    code: "fr",
    sentence: "Une personne de notre équipe prend le relais et vous répondra ici dès que possible.",
    refusal: "Je n’ai pas trouvé de réponse fiable à cette question dans les sources.",
    words: words("je vous et le la les est une des pas pour bonjour avec mon ma puis voudrais")
  },
  {
    code: "es",
    sentence: "Una persona de nuestro equipo se hará cargo y responderá aquí en cuanto sea posible.",
    refusal: "No he encontrado una respuesta fiable a esto en las fuentes.",
    words: words("el los las y es una por qué con mi quiero puedo hola para cómo usted")
  },
  {
    code: "it",
    sentence:
      "Una persona del nostro team prende in carico la conversazione e risponderà qui appena possibile.",
    refusal: "Non ho trovato una risposta affidabile a questo nelle fonti.",
    words: words("il lo gli è non di che per una con vorrei posso ciao come mio sono")
  },
  {
    code: "pt",
    sentence: "Uma pessoa da nossa equipe vai assumir e responder aqui assim que possível.",
    refusal: "Não encontrei uma resposta fiável a isto nas fontes.",
    words: words("o os é não uma você por com meu minha quero posso olá como em preciso")
  },
  {
    code: "nl",
    sentence: "Een medewerker van ons team neemt het over en antwoordt hier zo snel mogelijk.",
    refusal: "Ik heb hierop geen betrouwbaar antwoord in de bronnen gevonden.",
    words: words("ik het een en niet van voor met kan graag mijn wil hoe alstublieft dat")
  },
  {
    code: "zh",
    sentence: "我们的工作人员会接手，并尽快在这里回复您。",
    refusal: "我在资料中没有找到对此可靠的答案。",
    words: /\p{Script=Han}/gu
  },
  {
    code: "ja",
    sentence: "担当者が引き継ぎ、できるだけ早くここでお返事します。",
    refusal: "この件について、資料の中に確かな答えは見つかりませんでした。",
    words: /[\p{Script=Hiragana}\p{Script=Katakana}]{1,2}/gu
  },
  {
    code: "ko",
    sentence: "담당자가 이어받아 최대한 빨리 여기에서 답변드리겠습니다.",
    refusal: "자료에서 이에 대한 믿을 만한 답을 찾지 못했습니다.",
    words: /\p{Script=Hangul}/gu
  },
  {
    code: "ru",
    sentence: "Сотрудник нашей команды ответит вам здесь как можно скорее.",
    refusal: "В источниках я не нашёл надёжного ответа на это.",
    words: /\p{Script=Cyrillic}+/gu
  },
  {
    code: "ar",
    sentence: "سيتولى أحد أعضاء فريقنا المحادثة ويرد عليك هنا في أقرب وقت ممكن.",
    refusal: "لم أجد في المصادر إجابة موثوقة عن هذا.",
    words: /\p{Script=Arabic}+/gu
  }
]

const english: Language = {
  code: "en",
  sentence: "A member of our team is taking over and will answer here as soon as possible.",
  refusal: "I did not find a reliable answer to that in the sources.",
  words: words("i the and is to a you my of can want with please how not it for hello")
}

/** Characters of a message that language detection reads. */
const maxSampleCharacters = 2_000

/** Detects the language of `message`. */
const languageOf = (message: string): Language => {
  const sample = message.slice(0, maxSampleCharacters)
  const count = (language: Language) => (sample.match(language.words) ?? []).length
  let best = english
  let bestCount = count(english)
  for (const language of languages) {
    const found = count(language)
    // The language with the most matches wins; of equal ones, the first.
    if (found > bestCount) {
      best = language
      bestCount = found
    }
  }
  return best
}

/** The notice in `language`, a tag such as `de-AT`, if it is supported, else in the language of `message`. */
export const noticeFor = (message: string, language = ""): string => {
  const code = language.slice(0, 2).toLowerCase()
  return ([english, ...languages].find((one) => one.code === code) ?? languageOf(message)).sentence
}

/** Replaces a reply that the sources do not support. */
export const refusalFor = (message: string): string => languageOf(message).refusal

/** Every {@link refusalFor}. */
export const refusals: ReadonlyArray<string> = [english, ...languages].map(({ refusal }) => refusal)

const sentences = new Set([english, ...languages].map(({ sentence }) => sentence))

/** True when `text` is one of these notices, in any language. */
export const isNotice = (text: string): boolean => sentences.has(text)
