/** Texts of the widget in English and German. */
const en = {
  chat: "Chat",
  open: "Open chat",
  close: "Close chat",
  conversation: "Conversation",
  placeholder: "Write a message…",
  message: "Message",
  send: "Send",
  attach: "Attach files",
  remove: (name: string) => `Remove ${name}`,
  download: (name: string) => `Download ${name}`,
  greeting: "Hello! How can I help?",
  you: "You",
  person: "Team",
  system: "Notice",
  typing: "A reply is being written",
  human: "Talk to a person",
  notices: { handoff: "A member of our team is taking over and will answer here as soon as possible." },
  waiting: "We have asked the team. A person will answer here.",
  active: "You are talking with a person.",
  closed: "This conversation has ended.",
  again: "Start a new conversation",
  sources: (count: number) => (count === 1 ? "1 source" : `${count} sources`),
  source: (index: number, title: string) => `Source ${index}: ${title}`,
  helpful: "Helpful",
  unhelpful: "Not helpful",
  comment: "What was wrong? (optional)",
  submit: "Send feedback",
  thanks: "Thank you for the feedback.",
  retry: "Try again",
  offline: "There is no connection. Check your network and try again.",
  lost: "The connection broke. If your message arrived, the answer will appear here.",
  unreachable: "The chat cannot be reached at the moment. It goes on by itself as soon as it can.",
  running: "The connection was interrupted. The answer is still being written.",
  repeating: "The answer was interrupted. It is being written again.",
  notArrived: "Your message did not arrive. You can send it again.",
  unanswered: "No answer came. Your message may not have arrived; you can send it again.",
  failed: "The reply could not be finished. You can ask again.",
  askAgain: "Ask again",
  quota: "This chat has reached its limit for now. Please try again later.",
  busy: "The service is busy. Please try again in a moment.",
  blocked: "This chat is not allowed on this website.",
  expired: "Your access to this chat has expired. Please reload the page.",
  denied: "This chat is not set up correctly: its key is not valid.",
  long: "The message is too long. It may have 32,000 characters.",
  wrong: "Something went wrong. Please try again.",
  fileType: (name: string) => `${name}: only JPEG, PNG, WebP, GIF and PDF can be sent.`,
  fileSize: (name: string) => `${name} is too large: 10 MB for an image, 25 MB for a PDF.`,
  fileCount: "At most ten files can be sent at once.",
  preview: "This is a preview: nothing is sent.",
  suggestions: "Suggested questions",
  fileUnread: "This agent cannot read files of this kind."
}

export type Texts = typeof en

const de: Texts = {
  chat: "Chat",
  open: "Chat öffnen",
  close: "Chat schließen",
  conversation: "Unterhaltung",
  placeholder: "Nachricht schreiben …",
  message: "Nachricht",
  send: "Senden",
  attach: "Dateien anhängen",
  remove: (name) => `${name} entfernen`,
  download: (name) => `${name} herunterladen`,
  greeting: "Hallo! Wie kann ich helfen?",
  you: "Sie",
  person: "Team",
  system: "Hinweis",
  typing: "Eine Antwort wird geschrieben",
  human: "Mit einem Menschen sprechen",
  notices: { handoff: "Ein Mensch aus unserem Team übernimmt und antwortet hier, sobald es geht." },
  waiting: "Wir haben das Team gefragt. Ein Mensch wird hier antworten.",
  active: "Sie sprechen mit einem Menschen.",
  closed: "Diese Unterhaltung ist beendet.",
  again: "Neue Unterhaltung beginnen",
  sources: (count) => (count === 1 ? "1 Quelle" : `${count} Quellen`),
  source: (index, title) => `Quelle ${index}: ${title}`,
  helpful: "Hilfreich",
  unhelpful: "Nicht hilfreich",
  comment: "Was war falsch? (freiwillig)",
  submit: "Rückmeldung senden",
  thanks: "Danke für die Rückmeldung.",
  retry: "Noch einmal versuchen",
  offline: "Es gibt keine Verbindung. Prüfen Sie Ihr Netz und versuchen Sie es noch einmal.",
  lost: "Die Verbindung ist abgerissen. Falls Ihre Nachricht ankam, erscheint die Antwort hier.",
  unreachable: "Der Chat ist gerade nicht erreichbar. Es geht von selbst weiter, sobald er es ist.",
  running: "Die Verbindung war unterbrochen. Die Antwort wird noch geschrieben.",
  repeating: "Die Antwort wurde unterbrochen. Sie wird noch einmal geschrieben.",
  notArrived: "Ihre Nachricht ist nicht angekommen. Sie können sie noch einmal senden.",
  unanswered:
    "Es kam keine Antwort. Ihre Nachricht ist vielleicht nicht angekommen; Sie können sie noch einmal senden.",
  failed: "Die Antwort konnte nicht beendet werden. Sie können noch einmal fragen.",
  askAgain: "Noch einmal fragen",
  quota: "Dieser Chat hat seine Grenze vorerst erreicht. Bitte versuchen Sie es später.",
  busy: "Der Dienst ist ausgelastet. Bitte versuchen Sie es gleich noch einmal.",
  blocked: "Dieser Chat ist auf dieser Website nicht erlaubt.",
  expired: "Ihr Zugang zu diesem Chat ist abgelaufen. Bitte laden Sie die Seite neu.",
  denied: "Dieser Chat ist nicht richtig eingerichtet: Sein Schlüssel ist nicht gültig.",
  long: "Die Nachricht ist zu lang. Sie darf 32.000 Zeichen haben.",
  wrong: "Etwas ist schiefgegangen. Bitte versuchen Sie es noch einmal.",
  fileType: (name) => `${name}: Nur JPEG, PNG, WebP, GIF und PDF können gesendet werden.`,
  fileSize: (name) => `${name} ist zu groß: 10 MB für ein Bild, 25 MB für ein PDF.`,
  fileCount: "Höchstens zehn Dateien können zugleich gesendet werden.",
  preview: "Das ist eine Vorschau: Es wird nichts gesendet.",
  suggestions: "Vorgeschlagene Fragen",
  fileUnread: "Dieser Agent kann solche Dateien nicht lesen."
}

export const textsFor = (language: string): Texts => (/^de\b/iu.test(language) ? de : en)
export const languageOf = (language: string): "de" | "en" => (/^de\b/iu.test(language) ? "de" : "en")

/** The message for a refused request. */
export const refusalText = (
  texts: Texts,
  { code, status }: { readonly code: string; readonly status: number }
): string => {
  if (code === "PREVIEW") return texts.preview
  if (code === "TURN_LIMIT_EXCEEDED") return texts.quota
  if (code === "UNSUPPORTED_ATTACHMENT_TYPE") return texts.fileUnread
  if (status === 401) return texts.denied
  if (status === 403) return texts.blocked
  if (status === 413) return texts.long
  return status === 429 || status === 503 ? texts.busy : texts.wrong
}
