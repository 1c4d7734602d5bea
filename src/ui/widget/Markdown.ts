/** What makes elements of Markdown. It is too much for pages whose visitors never open the chat: it comes when one does. */
export type Markdown = typeof import("../markdown/Elements.ts")

/** Milliseconds before each try. */
const pauses = [0, 1_000, 5_000, 20_000]

/** Null where it cannot be had: a policy of the page forbids it, or the service is away. */
export const loadMarkdown = async (base: string): Promise<Markdown | null> => {
  for (const [tried, pause] of pauses.entries()) {
    await new Promise((resolve) => setTimeout(resolve, pause))
    try {
      // What did not load is not asked for again under the same name.
      const markdown: Markdown = await import(
        `${base}/widget-markdown.js${tried === 0 ? "" : `?again=${tried}`}`
      )
      return markdown
    } catch {
      // The next try, or the text as it is.
    }
  }
  return null
}
