/** The Markdown renderer. It is large, and loaded when the chat is opened. */
export type Markdown = typeof import("../markdown/Elements.ts")

/**
 * Null where it cannot be had: a policy of the page forbids it, or the service is away. What did not load is not asked for
 * again under the same name, so each try has one of its own.
 */
export const loadMarkdown = async (base: string, tried: number): Promise<Markdown | null> => {
  try {
    const markdown: Markdown = await import(
      `${base}/widget-markdown.js${tried === 0 ? "" : `?again=${tried}`}`
    )
    return markdown
  } catch {
    return null
  }
}
