/** The Markdown renderer. It is large, so it is loaded only when the chat is opened. */
export type Markdown = typeof import("../markdown/Elements.ts")

/**
 * Resolves to null if it cannot be loaded: the page's content security policy forbids it, or the service is
 * unavailable. Each attempt has its own address, because browsers do not retry a module that failed.
 */
const loadMarkdown = async (base: string, attempt: number): Promise<Markdown | null> => {
  try {
    const markdown: Markdown = await import(
      `${base}/widget-markdown.js${attempt === 0 ? "" : `?again=${attempt}`}`
    )
    return markdown
  } catch {
    return null
  }
}

/** Number of retries, and the pause before the first one. Later pauses are longer. */
const maxRetries = 3
const pauseMs = 2_000

/** Loads the renderer once, with retries. */
export class MarkdownLoader {
  private loading: Promise<Markdown | null> | null = null
  private readonly base: string

  constructor(base: string) {
    this.base = base
  }

  /** Resolves to null if the first attempt fails. `onLoad` is called when any attempt succeeds, unless `ended`. */
  load(onLoad: (markdown: Markdown) => void, ended: AbortSignal): Promise<Markdown | null> {
    this.loading ??= this.attempt(0, onLoad, ended)
    return this.loading
  }

  private async attempt(
    retries: number,
    onLoad: (markdown: Markdown) => void,
    ended: AbortSignal
  ): Promise<Markdown | null> {
    const markdown = await loadMarkdown(this.base, retries)
    if (ended.aborted) return markdown
    if (markdown !== null) onLoad(markdown)
    else if (retries < maxRetries)
      setTimeout(() => void this.attempt(retries + 1, onLoad, ended), pauseMs * (retries + 1))
    return markdown
  }
}
