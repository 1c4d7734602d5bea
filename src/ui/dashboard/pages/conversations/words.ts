/** Texts about conversations that several components use. */
import type { Conversation, State } from "../../api/Conversations.ts"
import type { Tone } from "../../components/Badge.tsx"
import { texts, useLanguage, useText } from "../../text/Language.tsx"

export const words = texts(
  {
    title: "Conversations",
    agent: "Agent",
    channel: "Channel",
    state: "State",
    anonymous: (code: string) => `Visitor ${code}`,
    messages: (count: number) => (count === 1 ? "1 message" : `${count} messages`),
    api: "API",
    widget: "Website",
    whatsapp: "WhatsApp",
    messenger: "Messenger",
    telegram: "Telegram",
    slack: "Slack",
    email: "E-mail",
    test: "Tests",
    failed: "No answer",
    helpful: (count: number) => (count === 1 ? "1 helpful reply" : `${count} helpful replies`),
    unhelpful: (count: number) => (count === 1 ? "1 unhelpful reply" : `${count} unhelpful replies`),
    AI_ACTIVE: "Agent answers",
    HUMAN_REQUESTED: "Human wanted",
    HUMAN_ACTIVE: "Human answers",
    CLOSED: "Closed",
    former: "A former member"
  },
  {
    title: "Gespräche",
    agent: "Agent",
    channel: "Kanal",
    state: "Stand",
    anonymous: (code: string) => `Gast ${code}`,
    messages: (count: number) => (count === 1 ? "1 Nachricht" : `${count} Nachrichten`),
    api: "API",
    widget: "Website",
    whatsapp: "WhatsApp",
    messenger: "Messenger",
    telegram: "Telegram",
    slack: "Slack",
    email: "E-Mail",
    test: "Tests",
    failed: "Keine Antwort",
    helpful: (count: number) => (count === 1 ? "1 hilfreiche Antwort" : `${count} hilfreiche Antworten`),
    unhelpful: (count: number) =>
      count === 1 ? "1 nicht hilfreiche Antwort" : `${count} nicht hilfreiche Antworten`,
    AI_ACTIVE: "Agent antwortet",
    HUMAN_REQUESTED: "Mensch gewünscht",
    HUMAN_ACTIVE: "Mensch antwortet",
    CLOSED: "Geschlossen",
    former: "Ein früheres Mitglied"
  }
)

/** German texts of the reasons that the service gives. A model gives its own reasons, in the customer's language. */
const germanReasons: Readonly<Record<string, string>> = {
  "The person asked for a human.": "Die Person hat um einen Menschen gebeten.",
  "The agent did not answer in time.": "Der Agent hat nicht rechtzeitig geantwortet.",
  "The agent could not answer.": "Der Agent konnte nicht antworten.",
  "The chat turns of this period are used up.": "Die Antworten dieses Zeitraums sind aufgebraucht.",
  "There were too many replies in a short time.": "Es gab zu viele Antworten in kurzer Zeit."
}

/** Why a human was requested. */
export const useHandoffReason = (): ((reason: string | null) => string | null) => {
  const { language } = useLanguage()
  return (reason) => (reason === null || language === "en" ? reason : (germanReasons[reason] ?? reason))
}

/** Number of characters of an id that distinguish people without a name. */
const codeLength = 4

/** The customer's display name: name or contact, else the end of their id, which does not change. */
export const useCustomer = (): ((row: Pick<Conversation, "customer" | "endUserId">) => string) => {
  const t = useText(words)
  return ({ customer, endUserId }) => customer ?? t.anonymous(endUserId.slice(-codeLength).toUpperCase())
}

export const tones: Record<State, Tone> = {
  HUMAN_REQUESTED: "warn",
  HUMAN_ACTIVE: "accent",
  AI_ACTIVE: "good",
  CLOSED: "neutral"
}
