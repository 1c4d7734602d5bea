/** Texts about sources that several pages use. */
import type { Tone } from "../../components/Badge.tsx"
import type { Outcome, SourceStatus } from "../../api/Sources.ts"
import { texts } from "../../text/Language.tsx"

export const words = texts(
  {
    title: "Sources",
    lead: "What an agent knows. Pages, files and images are read, cut into passages and found by words and by meaning.",
    agent: "Agent",
    add: "Add source",
    empty: "Nothing to know yet",
    emptyLead:
      "Add a website or a sitemap, or drop documents and folders here. It answers as soon as it is ready.",
    noAgents: "No agent yet",
    noAgentsLead: "Sources belong to an agent. Create one first.",
    toAgents: "To the agents",
    type: "Type",
    status: "Status",
    synced: "Last sync",
    URL: "Website",
    SITEMAP: "Sitemap",
    FILE: "Document",
    IMAGE: "Image",
    BULK_UPLOAD: "ZIP of documents",
    TEXT: "Text",
    QA: "Questions and answers",
    CONNECTOR: "Connected system",
    untouched: "Not synced yet",
    syncNow: "Sync now",
    syncNowOf: (name: string) => `Sync now: ${name}`,
    PENDING: "Waiting",
    PROCESSING: "Syncing",
    READY: "Ready",
    FAILED: "Failed",
    QUEUED: "Queued",
    passages: (count: number) => (count === 1 ? "1 passage" : `${count} passages`),
    find: "Find a source by its name",
    allTypes: "All types",
    allStates: "All states",
    noneFound: "No source is like that.",
    choose: "Select",
    chooseAll: "Select all that are shown",
    chooseOne: (name: string) => `Select ${name}`
  },
  {
    title: "Quellen",
    lead: "Was ein Agent weiß. Seiten, Dateien und Bilder werden gelesen, in Abschnitte zerlegt und nach Wort und Sinn gefunden.",
    agent: "Agent",
    add: "Quelle hinzufügen",
    empty: "Noch kein Wissen",
    emptyLead:
      "Eine Website oder eine Sitemap hinzufügen, oder Dokumente und Ordner hier loslassen. Was gelesen ist, antwortet mit.",
    noAgents: "Noch kein Agent",
    noAgentsLead: "Quellen gehören zu einem Agenten. Bitte zuerst einen anlegen.",
    toAgents: "Zu den Agenten",
    type: "Art",
    status: "Stand",
    synced: "Zuletzt synchronisiert",
    URL: "Website",
    SITEMAP: "Sitemap",
    FILE: "Dokument",
    IMAGE: "Bild",
    BULK_UPLOAD: "ZIP von Dokumenten",
    TEXT: "Text",
    QA: "Fragen und Antworten",
    CONNECTOR: "Verbundenes System",
    untouched: "Noch nicht synchronisiert",
    syncNow: "Jetzt synchronisieren",
    syncNowOf: (name: string) => `Jetzt synchronisieren: ${name}`,
    PENDING: "Wartet",
    PROCESSING: "Wird synchronisiert",
    READY: "Bereit",
    FAILED: "Fehlgeschlagen",
    QUEUED: "In der Warteschlange",
    passages: (count: number) => (count === 1 ? "1 Abschnitt" : `${count} Abschnitte`),
    find: "Quelle nach Namen finden",
    allTypes: "Alle Arten",
    allStates: "Jeder Stand",
    noneFound: "Keine Quelle ist so.",
    choose: "Auswählen",
    chooseAll: "Alle gezeigten auswählen",
    chooseOne: (name: string) => `${name} auswählen`
  }
)

export const tones: Record<SourceStatus, Tone> = {
  PENDING: "neutral",
  PROCESSING: "accent",
  READY: "good",
  FAILED: "bad"
}

export const outcomeTones: Record<Outcome, Tone> = {
  indexed: "good",
  unchanged: "neutral",
  skipped: "warn",
  failed: "bad",
  redirected: "accent"
}
