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
  /** The first tab of an agent's page. */
  workbench: () => import("./pages/workbench/Workbench.tsx")
} as const

/** By pattern of a path below /app, the code that it shows. The first match counts. */
const shown: ReadonlyArray<readonly [RegExp, ReadonlyArray<() => Promise<unknown>>]> = [
  [/^\/(?:start)?$/u, [pages.start]],
  [/^\/agents$/u, [pages.agents]],
  [/^\/agents\/[^/]+(?:\/try)?$/u, [pages.agentPage, pages.workbench]],
  [/^\/agents\//u, [pages.agentPage]],
  [/^\/sources$/u, [pages.sources]],
  [/^\/sources\/[^/]+\/documents\//u, [pages.document]],
  [/^\/sources\//u, [pages.source]],
  [/^\/conversations/u, [pages.inbox]],
  [/^\/insights/u, [pages.insights]],
  [/^\/usage/u, [pages.usage]],
  [/^\/people/u, [pages.people]],
  [/^\/team$/u, [pages.team]],
  [/^\/team\/|^\/sessions/u, [pages.sessions]],
  [/^\/webhooks/u, [pages.webhooks]],
  [/^\/tokens/u, [pages.tokens]],
  [/^\/audit/u, [pages.audit]],
  [/^\/retention/u, [pages.retention]],
  [/^\/single-sign-on/u, [pages.singleSignOn]],
  [/^\/welcome/u, [pages.welcome]]
]

/** Begins to load the code of the page at `path`, below /app. What fails is loaded again when the page is shown. */
export const preload = (path: string): void => {
  for (const load of shown.find(([pattern]) => pattern.test(path))?.[1] ?? []) load().catch(() => {})
}
