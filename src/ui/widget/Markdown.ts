/** The Markdown renderer. It is large, and loaded when the chat is opened. */
export type Markdown = typeof import("../markdown/Elements.ts")

/**
 * Null if it cannot be loaded: a policy of the page forbids it, or the service is unavailable. Browsers do not retry
 * a failed module with the same name, so each attempt has its own.
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
