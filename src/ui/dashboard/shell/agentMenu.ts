/** The parts of an agent, each with its own path, in the order and groups of the navigation. */
import type { Role } from "../api/Session.ts"
import { texts, useText } from "../text/Language.tsx"

export const agentMenu = [
  { part: "try", group: "build", minRole: "agent" },
  { part: "sources", group: "build", minRole: "viewer" },
  { part: "tools", group: "build", minRole: "viewer" },
  { part: "settings", group: "build", minRole: "viewer" },
  { part: "versions", group: "build", minRole: "viewer" },
  { part: "widget", group: "connect", minRole: "admin" },
  { part: "channels", group: "connect", minRole: "viewer" },
  { part: "keys", group: "connect", minRole: "admin" },
  { part: "improve", group: "measure", minRole: "viewer" },
  { part: "cases", group: "measure", minRole: "viewer" },
  { part: "experiments", group: "measure", minRole: "agent" }
] as const satisfies ReadonlyArray<{
  readonly part: string
  readonly group: "build" | "connect" | "measure"
  /** Lower roles do not see the part. */
  readonly minRole: Role
}>

export type Part = (typeof agentMenu)[number]["part"]

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

/** The names of the parts in the user's language. */
export const usePartNames = () => useText(words)
