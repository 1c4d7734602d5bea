/** Texts of validation issues, by patterns of the service's English messages. */
import { useLanguage } from "./Language.tsx"

type Translation = readonly [pattern: RegExp, english: string, german: string]

/** The first match applies. */
const translations: ReadonlyArray<Translation> = [
  [/^is missing$/u, "This is missing.", "Das fehlt."],
  [
    /^Expected a string of at least 1 character$|^Expected a non empty string$/u,
    "This must not be empty.",
    "Das darf nicht leer sein."
  ],
  [/^Expected a string of at least (\d+) characters?$/u, "At least $1 characters.", "Mindestens $1 Zeichen."],
  [/^Expected a string of at most (\d+) characters?$/u, "At most $1 characters.", "Höchstens $1 Zeichen."],
  [/^Expected a number between (\S+) and (\S+)$/u, "A number from $1 to $2.", "Eine Zahl von $1 bis $2."],
  [/^Expected an integer$/u, "A whole number.", "Eine ganze Zahl."],
  [/^Expected a positive number$/u, "A number above 0.", "Eine Zahl über 0."],
  [/^Expected a number$/u, "A number.", "Eine Zahl."],
  [/^Expected an ISO 8601 timestamp$/u, "A date and a time.", "Ein Datum mit Uhrzeit."],
  [/^Expected a time in the future$/u, "This lies in the past.", "Das liegt in der Vergangenheit."],
  [/^Expected at least one permission$/u, "Choose at least one.", "Bitte mindestens eines wählen."],
  [
    /^Expected neither ingest nor \* for a key with a source scope$/u,
    "A key that reads only some sources cannot change sources.",
    "Ein Schlüssel, der nur manche Quellen liest, kann keine Quellen ändern."
  ],
  [/^Expected an array of at most (\d+) item\(s\)$/u, "At most $1.", "Höchstens $1."],
  [
    /^Expected lower-case letters, with - between them$/u,
    "A name of lower-case letters, with - between them.",
    "Ein Name aus Kleinbuchstaben, mit - dazwischen."
  ],
  [
    /^Expected another name: this one is reserved$/u,
    "This name has a meaning already: use another.",
    "Dieser Name hat schon eine Bedeutung: bitte einen anderen wählen."
  ],
  [/^Expected each (?:kind|name) once$/u, "Each name once.", "Jeder Name nur einmal."],
  [
    /^Expected a pattern that matches at least (\d+) characters$/u,
    "A pattern that matches at least $1 characters.",
    "Ein Muster, das mindestens $1 Zeichen trifft."
  ],
  [
    /^Expected a pattern that matches at most (\d+) characters$/u,
    "A pattern that matches at most $1 characters.",
    "Ein Muster, das höchstens $1 Zeichen trifft."
  ],
  [
    /^(.) has no meaning here; write (\\.) for the character itself$/u,
    "$1 has no meaning here; write $2 for the character itself.",
    "$1 hat hier keine Bedeutung; das Zeichen selbst schreibt man $2."
  ],
  [
    /^(\\.) is not known; there are \\d, \\w and \\s$/u,
    "$1 is not known; there are \\d, \\w and \\s.",
    "$1 ist nicht bekannt; es gibt \\d, \\w und \\s."
  ],
  [
    /^Expected (?:\] at the end of a set|characters in a set|a range such as a-z)$/u,
    "A set of characters such as [A-Z].",
    "Eine Menge von Zeichen wie [A-Z]."
  ],
  [/^Expected a count such as/u, "A count such as {6} or {6,8}.", "Eine Anzahl wie {6} oder {6,8}."],
  [/^Expected at most (\d+) pairs$/u, "At most $1 questions.", "Höchstens $1 Fragen."],
  [
    /^Expected at most (\d+) characters in all pairs together$/u,
    "At most $1 characters in all questions and answers together.",
    "Höchstens $1 Zeichen in allen Fragen und Antworten zusammen."
  ],
  [/^Expected at most (\d+) characters$/u, "At most $1 characters.", "Höchstens $1 Zeichen."],
  [/^Expected a text that is not empty$/u, "This must not be empty.", "Das darf nicht leer sein."],
  [
    /^Expected an origin such as/u,
    "A website such as https://example.com or http://localhost:3000.",
    "Eine Website wie https://example.com oder http://localhost:3000."
  ],
  [
    /^Expected the phone number id or the Page id/u,
    "The phone number id or the Page id: up to 128 letters, digits, _, - or .",
    "Die Id der Telefonnummer oder der Seite: bis zu 128 Buchstaben, Ziffern, _, - oder ."
  ],
  [
    /^Expected the provider's access token$/u,
    "The provider's access token, without spaces.",
    "Das Zugriffstoken des Anbieters, ohne Leerzeichen."
  ],
  [
    /^a refusal cites nothing: expectRefusal and \w+ exclude each other$/u,
    "A refusal cites nothing: expect no sources with it, and no support by sources.",
    "Eine Ablehnung zitiert nichts: bitte dazu weder Quellen noch Beleg durch Quellen erwarten."
  ],
  [
    /^Expected "object": a reply is an object$/u,
    'A reply is an object: the schema needs "type": "object".',
    'Eine Antwort ist ein Objekt: das Schema braucht "type": "object".'
  ],
  [
    /^The keyword (\S+) is not supported$/u,
    "The keyword $1 is not supported.",
    "Das Schlüsselwort $1 wird nicht unterstützt."
  ],
  [
    /^It has a keyword that is not one of JSON Schema$/u,
    "It has a keyword that is not one of JSON Schema.",
    "Es hat ein Schlüsselwort, das nicht zu JSON Schema gehört."
  ],
  [
    /^Another server was named: send the secret again$/u,
    "Another server was named: enter the secret again.",
    "Die Adresse führt zu einem anderen Server: bitte das Geheimnis noch einmal eingeben."
  ]
]

/** Returns the text of an issue in the user's language. Unknown messages are returned unchanged. */
export const useIssueText = (): ((message: string) => string) => {
  const { language } = useLanguage()
  return (message) => {
    const found = translations.find(([pattern]) => pattern.test(message))
    if (found === undefined) return message
    const [pattern, english, german] = found
    return message.replace(pattern, language === "de" ? german : english)
  }
}
