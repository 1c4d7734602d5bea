/** The Markdown renderer. It is large, so it is loaded only when the chat is opened. */
export type Markdown = typeof import("../markdown/Elements.ts")

/**
 * Resolves to null if it cannot be loaded: the page's content security policy forbids it, or the service is
 * unavailable. Each attempt has its own address, because browsers do not retry a module that failed.
 */
export const loadMarkdown = async (base: string, attempt: number): Promise<Markdown | null> => {
  try {
    const markdown: Markdown = await import(
      `${base}/widget-markdown.js${attempt === 0 ? "" : `?again=${attempt}`}`
    )
    return markdown
  } catch {
    return null
  }
}
