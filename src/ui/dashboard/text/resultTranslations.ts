/** German translations of the service's English messages about experiments and their results. */
import { germanCodes } from "./codes.ts"

type Translation = readonly [english: RegExp, german: (...parts: ReadonlyArray<string>) => string]

/** Names that the service quotes as JSON strings, with German quotes. What is between the names is `separator`. */
const translateQuotes = (names: string, separator: string) =>
  Array.from(
    names.matchAll(/"((?:[^"\\]|\\.)*)"/gsu),
    ([, name = ""]) => `„${name.replaceAll(/\\(["\\])/gu, "$1")}“`
  ).join(separator)
/** A message that is part of another one. */
const translateNested = (message: string) => germanResult(message) ?? message

const owners: Readonly<Record<string, string>> = {
  "the organisation": "der Organisation",
  "this agent": "dieses Agenten",
  "this API key": "dieses API-Schlüssels"
}
const periods: Readonly<Record<string, string>> = { day: "den Tag", month: "den Monat" }

const schema = "responseSchema"

/** The first match applies. */
const translations: ReadonlyArray<Translation> = [
  // Why a result failed.
  [/^is no object that fits the responseSchema$/u, () => `Ist kein Objekt, auf das das ${schema} passt.`],
  [
    /^expected ((?:"(?:[^"\\]|\\.)*"(?: or )?)+), cited (nothing|".+")$/su,
    (expected = "", cited = "") =>
      `Erwartet war ${translateQuotes(expected, " oder ")}, zitiert ist ${
        cited === "nothing" ? "nichts" : translateQuotes(cited, ", ")
      }.`
  ],
  [/^does not say: (.+)$/su, (fact = "") => `Sagt nicht: ${fact}`],
  [/^answered, and was expected to refuse$/u, () => "Antwortet und sollte ablehnen."],
  [/^refused, and was expected to answer$/u, () => "Lehnt ab und sollte antworten."],
  [
    /^cites nothing, and was expected to be supported by sources$/u,
    () => "Zitiert nichts und sollte durch Quellen belegt sein."
  ],
  [/^not supported by what it cites: (.+)$/su, (titles = "") => `Nicht belegt durch das Zitierte: ${titles}`],
  [/^does not meet the criterion: (.*)$/su, (reason = "") => `Erfüllt das Kriterium nicht: ${reason}`],
  [/^cannot be judged: (.*)$/su, (reason = "") => `Nicht zu beurteilen: ${translateNested(reason)}`],
  [/^no reply: (.+)$/su, (reason = "") => `Keine Antwort: ${translateNested(reason)}`],
  [
    /^no reply that fits the responseSchema: (.+)$/su,
    (reason = "") => `Keine Antwort, auf die das ${schema} passt: ${translateNested(reason)}`
  ],
  [/^The reply or its citations differ\.$/u, () => "Die Antwort oder was sie zitiert ist anders."],
  // Why a reply could not be judged.
  [/^no language model was asked$/u, () => "Kein Sprachmodell wurde gefragt."],
  [/^no language model is configured$/u, () => "Kein Sprachmodell ist eingerichtet."],
  [/^the model failed$/u, () => "Das Modell ist gescheitert."],
  [/^the model did not answer in time$/u, () => "Das Modell hat nicht rechtzeitig geantwortet."],
  [/^the model's answer cannot be read$/u, () => "Die Antwort des Modells ist nicht lesbar."],
  // Why there is no reply.
  [/^no reply$/u, () => "ohne Grund."],
  [/^The turn is gone\.$/u, () => "Die frühere Antwort gibt es nicht mehr."],
  [/^The run has not ended yet\.$/u, () => "Die frühere Antwort ist noch nicht beendet."],
  [
    /^Files came with the message, and a replay has none\.$/u,
    () => "Zur Nachricht gehörten Dateien, die nicht noch einmal gesendet werden."
  ],
  [
    /^A call of the tool (.+) was not recorded\.$/su,
    (tool = "") => `Ein Aufruf des Werkzeugs ${tool} ist nicht aufgezeichnet.`
  ],
  [
    /^TURN_FAILED: The model's reply did not match the responseSchema, also not at the second attempt\.$/u,
    () => `Auch beim zweiten Versuch passte das ${schema} nicht auf die Antwort des Modells.`
  ],
  [
    /^TURN_FAILED: The sources do not support what the model replied\.$/u,
    () => "Die Quellen belegen nicht, was das Modell antwortet."
  ],
  [
    /^NOT_CONFIGURED: A responseSchema needs a language model.*$/su,
    () => `Ein ${schema} braucht ein Sprachmodell, und dieser Server antwortet mit Auszügen.`
  ],
  [/^([A-Z_]+): .+$/su, (code = "") => translateNested(code)],
  // Why an experiment ended.
  [/^Its token budget is used up\.$/u, () => "Die erlaubten Tokens sind verbraucht."],
  [
    /^An unexpected error ended it\. The log of the service names it\.$/u,
    () => "Ein unerwarteter Fehler hat es beendet. Er steht im Protokoll des Servers."
  ],
  [
    /^The processes that asked it have stopped\.$/u,
    () => "Die Prozesse, die es gestellt haben, wurden beendet."
  ],
  [
    /^The chat turns of this period are used up\.$/u,
    () => "Das Kontingent an Antworten ist für diesen Zeitraum ausgeschöpft."
  ],
  [
    /^The budget of (the organisation|this agent|this API key) for the (day|month) is spent\..*$/su,
    (owner = "", period = "") =>
      `Das Budget ${owners[owner] ?? owner} für ${periods[period] ?? period} ist ausgegeben. Es lässt sich unter „Verbrauch“ erhöhen.`
  ]
]

const codes: ReadonlyMap<string, string> = new Map(Object.entries(germanCodes))

/** The translation of `message`, which may also be an error code; null if there is none. */
export const germanResult = (message: string): string | null => {
  for (const [english, german] of translations) {
    const parts = english.exec(message)
    if (parts !== null) return german(...parts.slice(1))
  }
  return codes.get(message) ?? null
}
