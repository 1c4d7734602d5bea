/** Names of an agent's settings, shared by all pages. */
import { texts, useText } from "../../text/Language.tsx"

const words = texts(
  {
    instructions: "Instructions",
    model: "Model",
    topK: "Passages per question",
    minScore: "Minimum score",
    contextTokens: "Context size in tokens",
    maxSearches: "Further searches",
    mode: "When the sources do not answer",
    strict: "Say that nothing was found",
    general: "Answer from general knowledge, and say so",
    length: "Length of replies",
    tone: "Tone",
    default: "No preference",
    short: "Short: up to three sentences",
    detailed: "Detailed",
    friendly: "Friendly",
    formal: "Formal",
    casual: "Casual",
    unsupported: "When the sources do not support a reply",
    annotate: "Send it; its citations say so",
    withhold: "Send a refusal instead",
    handoff: "Hand over to a person"
  },
  {
    instructions: "Anweisungen",
    model: "Modell",
    topK: "Abschnitte je Frage",
    minScore: "Mindestwert",
    contextTokens: "Kontextgröße in Tokens",
    maxSearches: "Weitere Suchen",
    mode: "Wenn die Quellen nicht antworten",
    strict: "Sagen, dass nichts gefunden wurde",
    general: "Aus allgemeinem Wissen antworten und das sagen",
    length: "Länge der Antworten",
    tone: "Ton",
    default: "Ohne Vorgabe",
    short: "Kurz: bis zu drei Sätze",
    detailed: "Ausführlich",
    friendly: "Freundlich",
    formal: "Förmlich",
    casual: "Locker",
    unsupported: "Wenn die Quellen eine Antwort nicht stützen",
    annotate: "Senden; ihre Belege sagen es",
    withhold: "Stattdessen ablehnen",
    handoff: "An einen Menschen übergeben"
  }
)

export const useSettingsWords = () => useText(words)
