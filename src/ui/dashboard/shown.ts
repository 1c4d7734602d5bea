/**
 * By pattern of a path below /app, the names of the code that it shows: the keys of `pages`, which are also the names of
 * their files. The first match counts. The build writes the same table with the built files for the server, which names
 * them in the page's headers.
 */
export const shown = [
  [/^\/(?:start)?$/u, ["start"]],
  [/^\/agents$/u, ["agents"]],
  [/^\/agents\/[^/]+(?:\/try)?$/u, ["agentPage", "workbench"]],
  [/^\/agents\//u, ["agentPage"]],
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
