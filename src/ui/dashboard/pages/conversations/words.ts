/** Words of conversations that several of their parts use. */
import type { Conversation, State } from "../../api/Conversations.ts"
import type { Tone } from "../../components/Badge.tsx"
import { texts, useLanguage } from "../../text/Language.tsx"

export const words = texts(
  {
    title: "Conversations",
    lead: "What customers and agents say to each other. Whoever waits for a human comes first.",
    agent: "Agent",
    channel: "Channel",
    state: "State",
    everyAgent: "Every agent",
    everyChannel: "Every channel",
    everyState: "Every state",
    waiting: "Waiting for a human",
    all: "All conversations",
    others: "Everyone else",
    empty: "Nobody has written yet",
    emptyLead: "Conversations of the API, the widget and messaging channels appear here as they begin.",
    noMatch: "No conversation is like that",
    noMatchLead: "Choose other filters.",
    clear: "Clear filters",
    anonymous: "Unknown customer",
    messages: (count: number) => (count === 1 ? "1 message" : `${count} messages`),
    api: "API",
    widget: "Website",
    whatsapp: "WhatsApp",
    messenger: "Messenger",
    telegram: "Telegram",
    slack: "Slack",
    test: "Tests",
    failed: "No answer",
    helpful: (count: number) => (count === 1 ? "1 helpful reply" : `${count} helpful replies`),
    unhelpful: (count: number) => (count === 1 ? "1 unhelpful reply" : `${count} unhelpful replies`),
    AI_ACTIVE: "Agent answers",
    HUMAN_REQUESTED: "Human wanted",
    HUMAN_ACTIVE: "Human answers",
    CLOSED: "Closed"
  },
  {
    title: "Gespräche",
    lead: "Was Kunden und Agenten einander sagen. Wer auf einen Menschen wartet, steht oben.",
    agent: "Agent",
    channel: "Kanal",
    state: "Stand",
    everyAgent: "Alle Agenten",
    everyChannel: "Alle Kanäle",
    everyState: "Jeder Stand",
    waiting: "Wartet auf einen Menschen",
    all: "Alle Gespräche",
    others: "Alle anderen",
    empty: "Noch hat niemand geschrieben",
    emptyLead: "Gespräche über API, Widget und Nachrichtenkanäle erscheinen hier, sobald sie beginnen.",
    noMatch: "So ein Gespräch gibt es nicht",
    noMatchLead: "Bitte andere Filter wählen.",
    clear: "Filter aufheben",
    anonymous: "Unbekannter Kunde",
    messages: (count: number) => (count === 1 ? "1 Nachricht" : `${count} Nachrichten`),
    api: "API",
    widget: "Website",
    whatsapp: "WhatsApp",
    messenger: "Messenger",
    telegram: "Telegram",
    slack: "Slack",
    test: "Tests",
    failed: "Keine Antwort",
    helpful: (count: number) => (count === 1 ? "1 hilfreiche Antwort" : `${count} hilfreiche Antworten`),
    unhelpful: (count: number) =>
      count === 1 ? "1 nicht hilfreiche Antwort" : `${count} nicht hilfreiche Antworten`,
    AI_ACTIVE: "Agent antwortet",
    HUMAN_REQUESTED: "Mensch gewünscht",
    HUMAN_ACTIVE: "Mensch antwortet",
    CLOSED: "Geschlossen"
  }
)

/** Reasons that the service itself gives, in German; a model gives its own, in the customer's language. */
const germanReasons: Readonly<Record<string, string>> = {
  "The person asked for a human.": "Die Person hat um einen Menschen gebeten.",
  "The agent did not answer in time.": "Der Agent hat nicht rechtzeitig geantwortet.",
  "The agent could not answer.": "Der Agent konnte nicht antworten.",
  "The chat turns of this period are used up.": "Die Antworten dieses Zeitraums sind aufgebraucht.",
  "There were too many replies in a short time.": "Es gab zu viele Antworten in kurzer Zeit."
}

/** Why a conversation asks for a human. */
export const useHandoffReason = (): ((row: Conversation) => string | null) => {
  const { language } = useLanguage()
  return ({ handoffReason }) =>
    handoffReason === null || language === "en"
      ? handoffReason
      : (germanReasons[handoffReason] ?? handoffReason)
}

export const tones: Record<State, Tone> = {
  HUMAN_REQUESTED: "warn",
  HUMAN_ACTIVE: "accent",
  AI_ACTIVE: "good",
  CLOSED: "neutral"
}
