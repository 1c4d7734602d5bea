/** The session and the message being sent, kept in local storage so that they survive a reload. */

/** The message that a page is sending. */
export interface PendingMessage {
  readonly message: string
  /** The id of the last message before it; null if it is the first. */
  readonly after: string | null
  /** Milliseconds since the epoch. */
  readonly at: number
  /** The id of the stored message that is retried, if any. */
  readonly again?: string
}

interface StoredPending extends PendingMessage {
  readonly sessionId: string
  /** True if its page was closed. Only written by browsers without locks. */
  readonly left?: boolean
}

/** Age at which a message counts as abandoned if the browser has no locks and the page did not report its end. */
const abandonedAfterMs = 180_000

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
    // Storage is blocked or full. The value is kept only in memory.
  }
}

/** Undefined in old browsers, and on pages without HTTPS. */
const locksOf = (): LockManager | undefined => navigator.locks

/** Calls `take` if the page that wrote `key` was closed. With locks, only one of several pages calls it. */
const takeAbandoned = async (key: string, take: () => void): Promise<void> => {
  const locks = locksOf()
  if (locks === undefined) {
    const stored = read<StoredPending>(key)
    if (stored?.left === true || Date.now() - (stored?.at ?? 0) > abandonedAfterMs) take()
    return
  }
  // Pages with an opaque origin may not use locks.
  await locks
    .request(key, { ifAvailable: true }, (lock) => (lock === null ? undefined : take()))
    .catch(() => undefined)
}

/**
 * All pages of the site share the session. A pending message belongs to the page that sends it. After this page is
 * closed, the next page that calls `recoverPending` owns it. With null as name, or if storage is blocked, nothing
 * survives.
 */
export class WidgetStorage {
  private readonly name: string | null
  /** The storage key of this page's pending message. The page holds a lock of this name meanwhile. */
  private readonly key: string
  private sessionInMemory: string | undefined
  private ownPending: StoredPending | undefined
  private releaseLock: (() => void) | null = null

  constructor(name: string | null) {
    this.name = name
    this.key = `${name}.pending.${Date.now()}.${Math.random()}`
    if (name !== null && locksOf() === undefined) addEventListener("pagehide", () => this.abandonPending())
  }

  get sessionId(): string | undefined {
    const stored = this.name === null ? null : read<{ readonly sessionId?: string }>(this.name)
    return stored?.sessionId ?? this.sessionInMemory
  }

  storeSession(sessionId: string): void {
    this.sessionInMemory = sessionId
    if (this.name !== null) write(this.name, { sessionId })
  }

  /** Forgets the session, unless another page has begun the next one. */
  forgetSession(sessionId: string): void {
    const isCurrent = this.sessionId === sessionId
    this.sessionInMemory = undefined
    if (this.name !== null && isCurrent) write(this.name, undefined)
  }

  /** The message that this page is sending. */
  get pending(): PendingMessage | undefined {
    return this.ownPending
  }

  storePending(pending: PendingMessage, sessionId: string): void {
    this.ownPending = { ...pending, sessionId }
    if (this.name === null) return
    // The lock is requested before the message is stored, so that no other page takes it.
    if (this.releaseLock === null) {
      const released = new Promise<void>((resolve) => (this.releaseLock = resolve))
      locksOf()
        ?.request(this.key, () => released)
        .catch(() => undefined)
    }
    write(this.key, this.ownPending)
  }

  clearPending(): void {
    this.ownPending = undefined
    if (this.name !== null) write(this.key, undefined)
    this.unlock()
  }

  /** Another page may take the message, because this one is closed. */
  abandonPending(): void {
    const isDetectedByLock = this.name === null || locksOf() !== undefined
    if (this.ownPending !== undefined && !isDetectedByLock)
      write(this.key, { ...this.ownPending, left: true })
    this.unlock()
  }

  /** Takes over the message of a closed page of this session. Returns this page's message, if any. */
  async recoverPending(sessionId: string): Promise<PendingMessage | undefined> {
    for (const key of this.pendingKeys()) {
      if (this.ownPending !== undefined) break
      await takeAbandoned(key, () => {
        const stored = read<StoredPending>(key)
        if (stored?.sessionId === sessionId) {
          const { left: _, ...pending } = stored
          this.storePending(pending, sessionId)
        }
        write(key, undefined)
      })
    }
    return this.ownPending
  }

  private pendingKeys(): ReadonlyArray<string> {
    try {
      return this.name === null
        ? []
        : Object.keys(localStorage).filter((key) => key.startsWith(`${this.name}.pending.`))
    } catch {
      return []
    }
  }

  private unlock(): void {
    this.releaseLock?.()
    this.releaseLock = null
  }
}
