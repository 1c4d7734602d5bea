/** State that survives a reload. A page that may not store anything works without it, as does one with null. */
export interface SavedState {
  readonly sessionId?: string
  /** The message being sent. */
  readonly pending?: {
    readonly message: string
    /** The id of the last message before it; null if it is the first. */
    readonly after: string | null
    readonly at: number
    /** The stored message that is retried, if any. */
    readonly again?: string
  }
}

export const memoryOf = (name: string | null) => {
  let fallback: SavedState = {}
  return {
    get: (): SavedState => {
      if (name === null) return fallback
      try {
        const kept: SavedState | null = JSON.parse(localStorage.getItem(name) ?? "{}")
        return kept ?? {}
      } catch {
        return fallback
      }
    },
    set: (kept: SavedState) => {
      fallback = kept
      if (name === null) return
      try {
        localStorage.setItem(name, JSON.stringify(kept))
      } catch {
        // Kept only in memory.
      }
    }
  }
}
