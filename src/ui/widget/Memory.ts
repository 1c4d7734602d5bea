/** What survives a reload. A page that may not store anything works without it, as does one with null for a name. */

/** The message that a page is sending. */
export interface Pending {
  readonly message: string
  /** The id of the last message before it; null if it is the first. */
  readonly after: string | null
  readonly at: number
  /** The stored message that is retried, if any. */
  readonly again?: string
}

interface Stored extends Pending {
  readonly sessionId: string
  /** Its page is gone. Only written where there are no locks. */
  readonly left?: boolean
}

/** Milliseconds after which a message counts as left by its page, where neither locks nor the page tell. */
const maxSilenceMs = 180_000

const read = <A>(key: string): A | null => {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "null")
  } catch {
    return null
  }
}

const write = (key: string, value: unknown): void => {
  try {
    if (value === undefined) localStorage.removeItem(key)
    else localStorage.setItem(key, JSON.stringify(value))
  } catch {
    // Kept only in memory.
  }
}

/** Undefined in old browsers, and on pages without https. */
const locksOf = (): LockManager | undefined => navigator.locks

/** Calls `take` if the page that wrote `key` is gone. Of several pages that ask, one comes first. */
const takeLeft = async (key: string, take: () => void): Promise<void> => {
  const locks = locksOf()
  if (locks === undefined) {
    const stored = read<Stored>(key)
    if (stored?.left === true || Date.now() - (stored?.at ?? 0) > maxSilenceMs) take()
    return
  }
  // A page without an origin of its own may not use them.
  await locks
    .request(key, { ifAvailable: true }, (lock) => (lock === null ? undefined : take()))
    .catch(() => undefined)
}

/**
 * The session is shared by all pages of the site. A message belongs to the page that sends it, until this page is gone:
 * then to the next page that asks.
 */
export class Memory {
  private readonly name: string | null
  /** Where this page stores its message. The page holds a lock of this name meanwhile. */
  private readonly key: string
  private known: string | undefined
  private own: Stored | undefined
  private release: (() => void) | null = null

  constructor(name: string | null) {
    this.name = name
    this.key = `${name}.pending.${Date.now()}.${Math.random()}`
    if (name !== null && locksOf() === undefined) addEventListener("pagehide", () => this.leave())
  }

  get sessionId(): string | undefined {
    const stored = this.name === null ? null : read<{ readonly sessionId?: string }>(this.name)
    return stored?.sessionId ?? this.known
  }

  begin(sessionId: string): void {
    this.known = sessionId
    if (this.name !== null) write(this.name, { sessionId })
  }

  /** Forgets the session, unless another page has begun the next one. */
  forget(sessionId: string): void {
    const isLast = this.sessionId === sessionId
    this.known = undefined
    if (this.name !== null && isLast) write(this.name, undefined)
  }

  /** The message that this page is sending. */
  get pending(): Pending | undefined {
    return this.own
  }

  keep(pending: Pending, sessionId: string): void {
    this.own = { ...pending, sessionId }
    if (this.name === null) return
    // Before it is stored, so that no other page finds it without an owner.
    if (this.release === null) {
      const over = new Promise<void>((resolve) => (this.release = resolve))
      locksOf()
        ?.request(this.key, () => over)
        .catch(() => undefined)
    }
    write(this.key, this.own)
  }

  clear(): void {
    this.own = undefined
    if (this.name !== null) write(this.key, undefined)
    this.free()
  }

  /** This page is gone: another may have its message. */
  leave(): void {
    const isToldByLock = this.name === null || locksOf() !== undefined
    if (this.own !== undefined && !isToldByLock) write(this.key, { ...this.own, left: true })
    this.free()
  }

  /** The message of a page of this session that is gone, which is now this page's. */
  async recover(sessionId: string): Promise<Pending | undefined> {
    for (const key of this.others()) {
      if (this.own !== undefined) break
      await takeLeft(key, () => {
        const stored = read<Stored>(key)
        if (stored?.sessionId === sessionId) {
          const { left: _, ...pending } = stored
          this.keep(pending, sessionId)
        }
        write(key, undefined)
      })
    }
    return this.own
  }

  private others(): ReadonlyArray<string> {
    try {
      return this.name === null
        ? []
        : Object.keys(localStorage).filter((key) => key.startsWith(`${this.name}.pending.`))
    } catch {
      return []
    }
  }

  private free(): void {
    this.release?.()
    this.release = null
  }
}
