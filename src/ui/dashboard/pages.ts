import { loadOnce } from "./loadOnce.ts"
import { agentParts } from "./pages/agents/agentParts.ts"
import { pageFiles } from "./pageFiles.ts"

/** Functions that load the code of each page. */
export const pages = {
  agentPage: loadOnce(() => import("./pages/agents/AgentPage.tsx")),
  agents: loadOnce(() => import("./pages/agents/Agents.tsx")),
  tokens: loadOnce(() => import("./pages/tokens/Tokens.tsx")),
  audit: loadOnce(() => import("./pages/audit/Audit.tsx")),
  inbox: loadOnce(() => import("./pages/conversations/Inbox.tsx")),
  insights: loadOnce(() => import("./pages/insights/Insights.tsx")),
  people: loadOnce(() => import("./pages/people/People.tsx")),
  retention: loadOnce(() => import("./pages/retention/Retention.tsx")),
  sessions: loadOnce(() => import("./pages/team/Sessions.tsx")),
  singleSignOn: loadOnce(() => import("./pages/sign-on/SingleSignOn.tsx")),
  document: loadOnce(() => import("./pages/sources/contents/Document.tsx")),
  source: loadOnce(() => import("./pages/sources/Source.tsx")),
  sources: loadOnce(() => import("./pages/sources/Sources.tsx")),
  start: loadOnce(() => import("./pages/start/Start.tsx")),
  team: loadOnce(() => import("./pages/team/Team.tsx")),
  webhooks: loadOnce(() => import("./pages/webhooks/Webhooks.tsx")),
  usage: loadOnce(() => import("./pages/usage/Usage.tsx")),
  signIn: loadOnce(() => import("./pages/SignIn.tsx")),
  welcome: loadOnce(() => import("./pages/team/Welcome.tsx")),
  ...agentParts
} as const

/**
 * Loads the code of the page at `path`, below /app, in advance. Failures are ignored, because showing the page loads it
 * again.
 */
export const preload = (path: string): void => {
  for (const name of pageFiles.find(([pattern]) => pattern.test(path))?.[1] ?? [])
    pages[name]().catch(() => {})
}
