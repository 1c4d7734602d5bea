/** Words of conversations that several of their parts use. */
import type { State } from "../../api/Conversations.ts"
import type { Tone } from "../../components/Badge.tsx"
import { texts } from "../../text/Language.tsx"

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
    AI_ACTIVE: "Agent antwortet",
    HUMAN_REQUESTED: "Mensch gewünscht",
    HUMAN_ACTIVE: "Mensch antwortet",
    CLOSED: "Geschlossen"
  }
)

export const tones: Record<State, Tone> = {
  HUMAN_REQUESTED: "warn",
  HUMAN_ACTIVE: "accent",
  AI_ACTIVE: "good",
  CLOSED: "neutral"
}
