/**
 * Fixed sentences for a customer: when a human takes over and the model wrote nothing, when a reply is withheld by the
 * agent or by the model's provider, and in replies without a model. They are in the language of the message if it is
 * supported, else in English.
 */

interface Language {
  /** ISO 639-1. */
  readonly code: string
  /** Tells that a human takes over. */
  readonly handoff: string
  /** Replaces a reply that the sources do not support. */
  readonly refusal: string
  /** Replaces a reply of which the model's provider has withheld everything. */
  readonly blocked: string
  /** The reply without a model when no passage answers. */
  readonly nothingFound: string
  /** Introduces passages that may not answer, in a reply without a model. */
  readonly closest: string
  /** Matches frequent short words of the language, or its script. */
  readonly frequentWords: RegExp
}

const wordPattern = (list: string): RegExp =>
  new RegExp(`(?<![\\p{L}\\p{M}])(?:${list.split(" ").join("|")})(?![\\p{L}\\p{M}])`, "giu")

const languages: ReadonlyArray<Language> = [
  {
    code: "de",
    handoff: "Ein Mensch aus unserem Team übernimmt und antwortet hier, sobald es geht.",
    refusal: "Dazu habe ich in den Quellen keine verlässliche Antwort gefunden.",
    blocked: "Darauf kann ich hier nicht antworten.",
    nothingFound: "Dazu habe ich in den Quellen nichts gefunden.",
    closest: "Ich bin nicht sicher, dass die Quellen das beantworten. Diese Stellen kommen dem am nächsten:",
    frequentWords: wordPattern("ich und der die das ist nicht ein eine mit bitte wie kann mir möchte für auf")
  },
  {
    code: "fr",
    handoff: "Une personne de notre équipe prend le relais et vous répondra ici dès que possible.",
    refusal: "Je n’ai pas trouvé de réponse fiable à cette question dans les sources.",
    blocked: "Je ne peux pas répondre à cela ici.",
    nothingFound: "Je n’ai rien trouvé à ce sujet dans les sources.",
    closest: "Je ne suis pas sûr que les sources y répondent. Ces passages s’en rapprochent le plus :",
    frequentWords: wordPattern("je vous et le la les est une des pas pour bonjour avec mon ma puis voudrais")
  },
  {
    code: "es",
    handoff: "Una persona de nuestro equipo se hará cargo y responderá aquí en cuanto sea posible.",
    refusal: "No he encontrado una respuesta fiable a esto en las fuentes.",
    blocked: "No puedo responder a eso aquí.",
    nothingFound: "No he encontrado nada sobre esto en las fuentes.",
    closest: "No estoy seguro de que las fuentes respondan a esto. Estos pasajes son los más cercanos:",
    frequentWords: wordPattern("el los las y es una por qué con mi quiero puedo hola para cómo usted")
  },
  {
    code: "it",
    handoff:
      "Una persona del nostro team prende in carico la conversazione e risponderà qui appena possibile.",
    refusal: "Non ho trovato una risposta affidabile a questo nelle fonti.",
    blocked: "Non posso rispondere a questo qui.",
    nothingFound: "Non ho trovato nulla su questo nelle fonti.",
    closest: "Non sono sicuro che le fonti rispondano a questo. Questi passaggi sono i più vicini:",
    frequentWords: wordPattern("il lo gli è non di che per una con vorrei posso ciao come mio sono")
  },
  {
    code: "pt",
    handoff: "Uma pessoa da nossa equipe vai assumir e responder aqui assim que possível.",
    refusal: "Não encontrei uma resposta fiável a isto nas fontes.",
    blocked: "Não posso responder a isso aqui.",
    nothingFound: "Não encontrei nada sobre isto nas fontes.",
    closest: "Não tenho certeza de que as fontes respondam a isto. Estes trechos são os mais próximos:",
    frequentWords: wordPattern("o os é não uma você por com meu minha quero posso olá como em preciso")
  },
  {
    code: "nl",
    handoff: "Een medewerker van ons team neemt het over en antwoordt hier zo snel mogelijk.",
    refusal: "Ik heb hierop geen betrouwbaar antwoord in de bronnen gevonden.",
    blocked: "Daar kan ik hier geen antwoord op geven.",
    nothingFound: "Ik heb hierover niets gevonden in de bronnen.",
    closest: "Ik weet niet zeker of de bronnen dit beantwoorden. Deze passages komen er het dichtst bij:",
    frequentWords: wordPattern("ik het een en niet van voor met kan graag mijn wil hoe alstublieft dat")
  },
  {
    code: "zh",
    handoff: "我们的工作人员会接手，并尽快在这里回复您。",
    refusal: "我在资料中没有找到对此可靠的答案。",
    blocked: "我无法在这里回答这个问题。",
    nothingFound: "我在资料中没有找到相关内容。",
    closest: "我不确定资料是否回答了这个问题。以下内容最为接近：",
    frequentWords: /\p{Script=Han}/gu
  },
  {
    code: "ja",
    handoff: "担当者が引き継ぎ、できるだけ早くここでお返事します。",
    refusal: "この件について、資料の中に確かな答えは見つかりませんでした。",
    blocked: "この件については、ここではお答えできません。",
    nothingFound: "これについて資料には何も見つかりませんでした。",
    closest: "資料がこの質問に答えているか確かではありません。最も近い箇所は次のとおりです。",
    frequentWords: /[\p{Script=Hiragana}\p{Script=Katakana}]{1,2}/gu
  },
  {
    code: "ko",
    handoff: "담당자가 이어받아 최대한 빨리 여기에서 답변드리겠습니다.",
    refusal: "자료에서 이에 대한 믿을 만한 답을 찾지 못했습니다.",
    blocked: "이 내용에는 여기서 답변드릴 수 없습니다.",
    nothingFound: "이에 대한 내용을 자료에서 찾지 못했습니다.",
    closest: "자료가 이 질문에 답하는지 확실하지 않습니다. 가장 가까운 내용은 다음과 같습니다.",
    frequentWords: /\p{Script=Hangul}/gu
  },
  {
    code: "ru",
    handoff: "Сотрудник нашей команды ответит вам здесь как можно скорее.",
    refusal: "В источниках я не нашёл надёжного ответа на это.",
    blocked: "На это я не могу здесь ответить.",
    nothingFound: "Я ничего не нашёл об этом в источниках.",
    closest: "Я не уверен, что источники отвечают на этот вопрос. Ближе всего эти отрывки:",
    frequentWords: /\p{Script=Cyrillic}+/gu
  },
  {
    code: "ar",
    handoff: "سيتولى أحد أعضاء فريقنا المحادثة ويرد عليك هنا في أقرب وقت ممكن.",
    refusal: "لم أجد في المصادر إجابة موثوقة عن هذا.",
    blocked: "لا يمكنني الإجابة عن هذا هنا.",
    nothingFound: "لم أجد شيئًا عن هذا في المصادر.",
    closest: "لست متأكدًا من أن المصادر تجيب عن هذا. هذه المقاطع هي الأقرب:",
    frequentWords: /\p{Script=Arabic}+/gu
  }
]

const english: Language = {
  code: "en",
  handoff: "A member of our team is taking over and will answer here as soon as possible.",
  refusal: "I did not find a reliable answer to that in the sources.",
  blocked: "I cannot answer that here.",
  nothingFound: "I found nothing on that in the sources.",
  closest: "I am not sure that the sources answer this. These passages come closest:",
  frequentWords: wordPattern("i the and is to a you my of can want with please how not it for hello")
}

/** Characters of a message that language detection reads. */
const maxSampleCharacters = 2_000

/** Detects the language of `message`. */
const languageOf = (message: string): Language => {
  const sample = message.slice(0, maxSampleCharacters)
  const count = (language: Language) => (sample.match(language.frequentWords) ?? []).length
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

/** The handoff notice in `language`, a tag such as `de-AT`, if it is supported, else in the language of `message`. */
export const handoffNoticeFor = (message: string, language = ""): string => {
  const code = language.slice(0, 2).toLowerCase()
  return ([english, ...languages].find((one) => one.code === code) ?? languageOf(message)).handoff
}

/** Replaces a reply that the sources do not support. */
export const refusalFor = (message: string): string => languageOf(message).refusal

/** Replaces a reply of which the model's provider has withheld everything. */
export const blockedNoticeFor = (message: string): string => languageOf(message).blocked

/** Sentences for a reply without a model: if no passage answers, and to introduce passages that may not answer. */
export const extractiveNoticesFor = (message: string): Pick<Language, "nothingFound" | "closest"> =>
  languageOf(message)

/** Every `refusal`, `blocked` and `nothingFound`, in all languages. */
export const refusals: ReadonlyArray<string> = [english, ...languages].flatMap(
  ({ blocked, nothingFound, refusal }) => [refusal, blocked, nothingFound]
)

const handoffNotices = new Set([english, ...languages].map(({ handoff }) => handoff))

/** Whether `text` is the handoff notice in any language. */
export const isHandoffNotice = (text: string): boolean => handoffNotices.has(text)
