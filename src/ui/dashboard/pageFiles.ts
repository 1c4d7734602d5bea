/**
 * What each page loads: the pattern of its path below /app, the keys of its modules in `pages`, and the address of the
 * data that it requests first, whatever the user's role. The first matching pattern applies. The build writes this
 * table with the names of the built files for the server. The server lists them in the page's `Link` headers, so that
 * the browser requests them early.
 */
export const pageFiles = [
  [/^\/(?:start)?$/u, ["start"]],
  [/^\/agents$/u, ["agents"], "/api/agents?limit=100"],
  [/^\/agents\/[^/]+(?:\/try)?$/u, ["agentPage", "workbench"]],
  [/^\/agents\/[^/]+\/sources/u, ["agentPage", "agentSources"]],
  [/^\/agents\/[^/]+\/tools/u, ["agentPage", "tools"]],
  [/^\/agents\/[^/]+\/settings/u, ["agentPage", "settings"]],
  [/^\/agents\/[^/]+\/versions/u, ["agentPage", "versions"]],
  [/^\/agents\/[^/]+\/widget/u, ["agentPage", "designer"]],
  [/^\/agents\/[^/]+\/channels/u, ["agentPage", "channels"]],
  [/^\/agents\/[^/]+\/keys/u, ["agentPage", "keys"]],
  [/^\/agents\/[^/]+\/improve/u, ["agentPage", "improve"]],
  [/^\/agents\/[^/]+\/cases/u, ["agentPage", "testCases"]],
  [/^\/agents\/[^/]+\/experiments/u, ["agentPage", "experiments"]],
  [/^\/sources$/u, ["sources"]],
  [/^\/sources\/[^/]+\/documents\//u, ["document"]],
  [/^\/sources\//u, ["source"]],
  [/^\/conversations/u, ["inbox"]],
  [/^\/insights/u, ["insights"]],
  [/^\/usage/u, ["usage"]],
  [/^\/people/u, ["people"]],
  [/^\/team$/u, ["team"]],
  [/^\/team\/|^\/sessions/u, ["sessions"]],
  [/^\/webhooks/u, ["webhooks"]],
  [/^\/tokens/u, ["tokens"]],
  [/^\/audit/u, ["audit"]],
  [/^\/retention/u, ["retention"]],
  [/^\/single-sign-on/u, ["singleSignOn"]],
  [/^\/welcome/u, ["welcome"]]
] as const
