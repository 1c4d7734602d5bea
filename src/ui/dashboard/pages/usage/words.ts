import { texts } from "../../text/Language.tsx"

export const words = texts(
  {
    title: "Usage",
    lead: "What this period has used of what the plan allows.",
    period: (start: string, end: string) => `${start} to ${end}`,
    turns: "Chat turns",
    jobs: "Syncs",
    sources: "Sources",
    tokens: "Tokens",
    overage: "Overage allowed",
    ofLimit: (limit: string, share: string) => `of ${limit} (${share})`,
    split: (input: string, output: string) => `${input} read, ${output} written`,
    days: "Turns by day",
    noDays: "No turn yet in this period.",
    agents: "Usage by agent",
    agent: "Agent",
    day: "Day",
    asTable: "As a table"
  },
  {
    title: "Verbrauch",
    lead: "Was in diesem Zeitraum vom Erlaubten verbraucht ist.",
    period: (start: string, end: string) => `${start} bis ${end}`,
    turns: "Antworten",
    jobs: "Synchronisierungen",
    sources: "Quellen",
    tokens: "Tokens",
    overage: "Mehrverbrauch erlaubt",
    ofLimit: (limit: string, share: string) => `von ${limit} (${share})`,
    split: (input: string, output: string) => `${input} gelesen, ${output} geschrieben`,
    days: "Antworten je Tag",
    noDays: "In diesem Zeitraum noch keine Antwort.",
    agents: "Verbrauch je Agent",
    agent: "Agent",
    day: "Tag",
    asTable: "Als Tabelle"
  }
)
