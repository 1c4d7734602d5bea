/** The parts of an agent, which have an address each: in the order and the groups of the navigation. */
import type { Role } from "../api/Session.ts"
import { texts, useText } from "../text/Language.tsx"

export const parts = [
  { part: "try", group: "build", least: "agent" },
  { part: "sources", group: "build", least: "viewer" },
  { part: "tools", group: "build", least: "viewer" },
  { part: "settings", group: "build", least: "viewer" },
  { part: "versions", group: "build", least: "viewer" },
  { part: "widget", group: "connect", least: "admin" },
  { part: "channels", group: "connect", least: "viewer" },
  { part: "keys", group: "connect", least: "admin" },
  { part: "improve", group: "measure", least: "viewer" },
  { part: "cases", group: "measure", least: "viewer" },
  { part: "experiments", group: "measure", least: "agent" }
] as const satisfies ReadonlyArray<{
  readonly part: string
  readonly group: "build" | "connect" | "measure"
  /** Lower roles do not see it. */
  readonly least: Role
}>

export type Part = (typeof parts)[number]["part"]

const words = texts(
  {
    try: "Workbench",
    sources: "Sources",
    settings: "Settings",
    versions: "Versions",
    improve: "Improve",
    cases: "Test cases",
    experiments: "Experiments",
    keys: "Keys",
    tools: "Tools",
    channels: "Channels",
    widget: "Widget"
  },
  {
    try: "Werkbank",
    sources: "Quellen",
    settings: "Einstellungen",
    versions: "Versionen",
    improve: "Verbessern",
    cases: "Testfälle",
    experiments: "Experimente",
    keys: "Schlüssel",
    tools: "Werkzeuge",
    channels: "Kanäle",
    widget: "Widget"
  }
)

/** Their names. */
export const useParts = () => useText(words)
