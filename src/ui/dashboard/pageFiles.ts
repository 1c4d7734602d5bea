/**
 * By pattern of a path below /app, the names of the code that it shows: the keys of `pages`, which are also the names of
 * their files; and what it asks first, of any role. The first match counts. The build writes the same table with the
 * built files for the server, which names both in the page's headers: they are requested with the page.
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
