/**
 * Load shedding: decides which requests begin, wait or are refused when more arrive than the process can handle.
 *
 * While the process keeps up, every request begins at once. When its thread or its database is late, requests wait, and
 * owners (clients, by address) are served round-robin: a client with one request does not wait behind another client's
 * thousand. A request that would wait too long is refused at once. The measure is lateness and the number of unanswered
 * requests, not open streams: a stream that waits for a model uses no CPU.
 *
 * Most of a request's cost comes after its begin, so lateness alone would be noticed only when a whole burst has begun.
 * A burst is therefore begun in batches, and while the thread is fully busy, four requests for five answered ones. A
 * request of an owner without one in progress does not wait for the others' answers, as long as few owners have any.
 */
import { FairQueue, type Waiter } from "../../concurrency/FairQueue.ts"

/** Milliseconds between two calls of {@link LoadShedder.look}. */
export const lookInterval = 20

export interface Requester {
  /** The owner of the request. Owners share the waiting places. */
  readonly owner: string
  readonly begin: () => void
  /** Called with the milliseconds after which another try may succeed. */
  readonly refuse: (retryAfter: number) => void
  /** True when the response has begun or the client has disconnected. */
  readonly isOver: () => boolean
}

export interface Limits {
  /** Longest time a request may wait, in milliseconds. */
  readonly maxWait: number
  /** Maximum waiting requests. */
  readonly maxWaiting: number
}

/** Lateness of the thread, in milliseconds, above which new requests wait. */
const maxThreadDelayMs = 100
/** Duration of the database probe, in milliseconds, above which new requests wait. */
const maxDatabaseDelayMs = 250
/**
 * Requests up to this number always begin, even when the process is late for other reasons. So does the first request of
 * an owner, while fewer owners than this have a request in progress.
 */
const minInProgress = 16
/** Longest time, in milliseconds, that waiting requests are begun without yielding. */
const maxBatchMillis = 20
/** Requests that begin at once. The idle share of it follows each time the database has answered in time. */
const batchSize = 128
/** Longest time, in milliseconds, that requests wait for a burst of connections to be accepted. */
const maxGatherMillis = 250
/**
 * The thread is fully busy above this share of its time, averaged over these milliseconds. Then fewer requests begin than
 * are answered.
 */
const busyThread = { share: 0.9, over: 50, begunPerAnswered: 0.8 }
/** At least one waiting request begins in this time, in milliseconds, even when none was answered. */
const trickleMillis = 100
/** Window, in milliseconds, for the rate at which waiting requests begin. */
const rateWindow = 5_000

interface Waiting {
  readonly requester: Requester
  /** Arrival time. */
  readonly since: number
}

export class LoadShedder {
  readonly #now: () => number
  readonly #activeMillis: () => number
  readonly #limits: Limits
  readonly #inProgress = new Set<Requester>()
  /** Number of requests in progress, of each owner that has any. */
  readonly #ofOwner = new Map<string, number>()
  readonly #queue: FairQueue<Waiting>
  #lookedAt: number | null = null
  #lastActive = 0
  /** Recent share of the thread's time that was busy. */
  #busyShare = 0
  /** Time since which connections have arrived without a pause. */
  #gatheringSince: number | null = null
  /** Requests that may begin before the next look, and a fraction of one. */
  #places = batchSize
  /** True when the database has answered in time since places were last added. */
  #databaseInTime = false
  #threadLate = 0
  #askedDatabaseAt: number | null = null
  #databaseTook = 0
  #begun = 0
  #lastBegun = 0
  /** Start of the window of {@link #begun}. */
  #countingSince = 0

  /** `now` is monotonic time in milliseconds; `activeMillis` the milliseconds that the thread was busy. */
  constructor(now: () => number, activeMillis: () => number, limits: Limits) {
    this.#now = now
    this.#activeMillis = activeMillis
    this.#limits = limits
    this.#queue = new FairQueue(limits.maxWaiting)
  }

  /** True while {@link look} must be called every {@link lookInterval}. */
  get isBusy(): boolean {
    return this.#inProgress.size + this.#queue.size > 0
  }

  /** True while the lateness of the database matters, so that the probe must run. */
  get isCrowded(): boolean {
    return this.#inProgress.size >= minInProgress || this.#queue.size > 0
  }

  get waiting(): number {
    return this.#queue.size
  }

  arrive(requester: Requester): void {
    const now = this.#now()
    if (this.#lookedAt === null) {
      this.#lookedAt = now
      this.#lastActive = this.#activeMillis()
    }
    const { owner } = requester
    if (this.#isFirst(owner) && this.#queue.sizeOf(owner) === 0) return this.#begin(requester, now)
    if (this.#queue.size === 0) {
      if (this.#inProgress.size < minInProgress || this.#mayBegin(now)) return this.#begin(requester, now)
      this.#countingSince = now
      this.#begun = 0
    }
    if (this.#isHopeless(owner, now)) return requester.refuse(this.#waitOf(owner, now))
    const added = this.#queue.add(owner, { requester, since: now })
    if (added === null) return requester.refuse(this.#waitOf(owner, now))
    if (added.displaced !== null) this.#refuse(added.displaced, now)
  }

  /**
   * Connections are arriving. The thread accepts one per iteration of its event loop, beside all other work. Until the
   * whole burst is accepted, including health checks, only the minimum of requests begins.
   */
  connectionsCome(): void {
    this.#gatheringSince ??= this.#now()
  }

  /** No connection arrived in the last iteration of the event loop. */
  connectionsPause(): void {
    this.#gatheringSince = null
    if (this.#queue.size > 0) this.look()
  }

  /** The database probe has started. */
  databaseAsked(): void {
    this.#askedDatabaseAt = this.#now()
  }

  /** The database probe has ended, successfully or not. */
  databaseAnswered(): void {
    if (this.#askedDatabaseAt !== null) this.#databaseTook = this.#now() - this.#askedDatabaseAt
    this.#askedDatabaseAt = null
    this.#databaseInTime = this.#databaseTook <= maxDatabaseDelayMs / 2
  }

  /** Begins requests as far as possible, and refuses those that have waited too long. */
  look(): void {
    const now = this.#now()
    this.#threadLate = Math.max(this.#latenessSince(now), this.#threadLate / 2)
    this.#measureThread(now)
    this.#lookedAt = now
    const before = this.#inProgress.size
    for (const requester of this.#inProgress) if (requester.isOver()) this.#end(requester)
    this.#addPlaces(before - this.#inProgress.size)
    for (const waiter of this.#queue) {
      const { requester, since } = waiter.item
      if (requester.isOver()) this.#queue.delete(waiter)
      else if (now - since >= this.#limits.maxWait) {
        this.#queue.delete(waiter)
        this.#refuse(waiter, now)
      }
    }
    this.#beginWaiting(now)
    if (now - this.#countingSince > rateWindow) {
      this.#countingSince = now - rateWindow / 2
      this.#begun /= 2
    }
    if (this.isBusy) return
    this.#lookedAt = null
    this.#threadLate = 0
    this.#databaseTook = 0
    this.#busyShare = 0
    this.#places = batchSize
    this.#databaseInTime = false
  }

  /** Refuses all waiting requests. No request begins afterwards. */
  refuseAll(): void {
    for (const waiter of this.#queue) {
      this.#queue.delete(waiter)
      waiter.item.requester.refuse(0)
    }
  }

  #refuse({ item, owner }: Waiter<Waiting>, now: number): void {
    item.requester.refuse(this.#waitOf(owner, now))
  }

  /**
   * Adds one place for each answered request, and more while the thread has time and the database answers in time. While
   * the thread is fully busy, it adds fewer than were answered: more requests in progress only make each other later.
   */
  #addPlaces(answered: number): void {
    const idle = 1 - this.#busyShare / busyThread.share
    if (idle <= 0) {
      this.#places = Math.min(batchSize, (this.#places % 1) + answered * busyThread.begunPerAnswered)
      return
    }
    const more = this.#databaseInTime ? Math.ceil(batchSize * idle) : 0
    if (more > 0) this.#databaseInTime = false
    this.#places = Math.min(batchSize, this.#places + more + answered)
  }

  #measureThread(now: number): void {
    const passed = this.#lookedAt === null ? 0 : now - this.#lookedAt
    const active = this.#activeMillis()
    if (passed > 0) {
      const share = (active - this.#lastActive) / passed
      this.#busyShare += (share - this.#busyShare) * Math.min(1, passed / busyThread.over)
    }
    this.#lastActive = active
  }

  /** Begins as many requests as time allows, and at least one per {@link trickleMillis}. */
  #beginWaiting(from: number): void {
    let now = from
    let any = false
    for (let next = this.#queue.next; next !== null; next = this.#queue.next) {
      const pressure = this.#pressure(now)
      const may =
        this.#inProgress.size < minInProgress ||
        this.#isFirst(next.owner) ||
        (this.#mayBegin(now) && now - from < maxBatchMillis)
      const pause = pressure <= 1 ? trickleMillis : lookInterval * pressure
      if (!may && (any || now - this.#lastBegun < pause)) return
      any = true
      this.#queue.shift()
      this.#begun++
      this.#begin(next.item.requester, now)
      now = this.#now()
    }
  }

  #mayBegin(now: number): boolean {
    const isGathering = this.#gatheringSince !== null && now - this.#gatheringSince < maxGatherMillis
    return !isGathering && this.#places >= 1 && this.#pressure(now) <= 1
  }

  #begin(requester: Requester, now: number): void {
    this.#lastBegun = now
    this.#places--
    this.#inProgress.add(requester)
    this.#ofOwner.set(requester.owner, (this.#ofOwner.get(requester.owner) ?? 0) + 1)
    requester.begin()
  }

  #end(requester: Requester): void {
    this.#inProgress.delete(requester)
    const left = (this.#ofOwner.get(requester.owner) ?? 0) - 1
    if (left > 0) this.#ofOwner.set(requester.owner, left)
    else this.#ofOwner.delete(requester.owner)
  }

  /** True if `owner` has no request in progress, and few other owners have one. */
  #isFirst(owner: string): boolean {
    return this.#ofOwner.size < minInProgress && !this.#ofOwner.has(owner)
  }

  /** Lateness of the current look, which is itself late when the thread is. */
  #latenessSince(now: number): number {
    return this.#lookedAt === null ? 0 : Math.max(0, now - this.#lookedAt - lookInterval)
  }

  /** Load relative to the limits. Above 1 the process does not keep up. */
  #pressure(now: number): number {
    const thread = Math.max(this.#threadLate, this.#latenessSince(now))
    const database = Math.max(
      this.#databaseTook,
      this.#askedDatabaseAt === null ? 0 : now - this.#askedDatabaseAt
    )
    return Math.max(thread / maxThreadDelayMs, database / maxDatabaseDelayMs)
  }

  /**
   * True when a new request would exceed its wait limit. One late measurement is not enough: the oldest request must
   * have waited already.
   */
  #isHopeless(owner: string, now: number): boolean {
    const { maxWait } = this.#limits
    const [first] = this.#queue
    const waited = first === undefined ? 0 : now - first.item.since
    return waited >= maxWait / 4 && this.#waitOf(owner, now) > maxWait
  }

  /** Expected wait of a new request of `owner` in milliseconds: behind its own, and as many of each other owner. */
  #waitOf(owner: string, now: number): number {
    const others = Math.max(1, this.#queue.owners)
    const ahead = Math.min(
      this.#queue.size,
      this.#queue.sizeOf(owner) + (this.#queue.sizeOf(owner) + 1) * others
    )
    return (ahead * (now - this.#countingSince)) / (this.#begun + 1)
  }
}
