import { agentParts } from "./pages/agents/agentParts.ts"
import { shown } from "./shown.ts"

/** The code of each page, loaded when it is shown or about to be. */
export const pages = {
  agentPage: () => import("./pages/agents/AgentPage.tsx"),
  agents: () => import("./pages/agents/Agents.tsx"),
  tokens: () => import("./pages/tokens/Tokens.tsx"),
  audit: () => import("./pages/audit/Audit.tsx"),
  inbox: () => import("./pages/conversations/Inbox.tsx"),
  insights: () => import("./pages/insights/Insights.tsx"),
  people: () => import("./pages/people/People.tsx"),
  retention: () => import("./pages/retention/Retention.tsx"),
  sessions: () => import("./pages/team/Sessions.tsx"),
  singleSignOn: () => import("./pages/sign-on/SingleSignOn.tsx"),
  document: () => import("./pages/sources/contents/Document.tsx"),
  source: () => import("./pages/sources/Source.tsx"),
  sources: () => import("./pages/sources/Sources.tsx"),
  start: () => import("./pages/start/Start.tsx"),
  team: () => import("./pages/team/Team.tsx"),
  webhooks: () => import("./pages/webhooks/Webhooks.tsx"),
  usage: () => import("./pages/usage/Usage.tsx"),
  signIn: () => import("./pages/SignIn.tsx"),
  welcome: () => import("./pages/team/Welcome.tsx"),
  ...agentParts
} as const

/** Begins to load the code of the page at `path`, below /app. What fails is loaded again when the page is shown. */
export const preload = (path: string): void => {
  for (const name of shown.find(([pattern]) => pattern.test(path))?.[1] ?? []) pages[name]().catch(() => {})
}
