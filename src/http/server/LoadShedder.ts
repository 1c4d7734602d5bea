/**
 * Load shedding: decides which requests begin, wait or are refused when more arrive than the process can handle.
 *
 * While the process keeps up, every request begins at once. When its thread or its database is late, requests wait, and
 * owners (clients, by address) are served round-robin: a client with one request does not wait behind another client's
 * thousand. A request that would wait too long is refused at once. The measure is lateness and the number of unanswered
 * requests, not open streams: a stream that waits for a model uses no CPU.
 *
 * Most of a request's cost follows after it has begun, so lateness would show only after a whole burst has begun. A
 * burst therefore begins in batches, and while the thread is fully busy, four requests begin for each five that are
 * answered. The first request of an owner does not wait for the requests of other owners, as long as few owners have
 * any in progress.
 */
import { FairQueue, type Waiter } from "../../concurrency/FairQueue.ts"

/** Milliseconds between two calls of {@link LoadShedder.check}. */
export const checkIntervalMillis = 20

export interface AdmissionRequest {
  /** Whose request it is. Owners share the queue. */
  readonly owner: string
  readonly begin: () => void
  /** Called with the milliseconds after which another try may succeed. */
  readonly refuse: (retryAfter: number) => void
  /** True when the response has begun or the client has disconnected. */
  readonly isDone: () => boolean
}

export interface Limits {
  /** Longest time a request may wait, in milliseconds. */
  readonly maxWait: number
  /** Maximum waiting requests. */
  readonly maxWaiting: number
}

/** Lateness of the thread, in milliseconds, above which new requests wait. */
const maxThreadDelayMillis = 100
/** Duration of the database probe, in milliseconds, above which new requests wait. */
const maxDatabaseDelayMillis = 250
/**
 * Requests up to this number always begin, even when the process is late for other reasons. So does the first request
 * of an owner, while fewer owners than this have a request in progress.
 */
const minInProgress = 16
/** Longest time, in milliseconds, that waiting requests are begun without yielding. */
const maxBatchMillis = 20
/** Requests that begin at once. After each answer of the database in time, the idle share of as many may begin. */
const batchSize = 128
/** Longest time, in milliseconds, that requests wait for a burst of connections to be accepted. */
const maxGatherMillis = 250
/**
 * The thread is fully busy above this share of its time, averaged over `averageMillis`. Then fewer requests begin than
 * are answered.
 */
const busyThread = { minShare: 0.9, averageMillis: 50, begunPerAnswered: 0.8 }
/** At least one waiting request begins in this time, in milliseconds, even when none was answered. */
const trickleMillis = 100
/** Window, in milliseconds, for the rate at which waiting requests begin. */
const rateWindowMillis = 5_000

interface Waiting {
  readonly request: AdmissionRequest
  /** Arrival time. */
  readonly arrivedAt: number
}

export class LoadShedder {
  readonly #now: () => number
  readonly #activeMillis: () => number
  readonly #limits: Limits
  readonly #inProgress = new Set<AdmissionRequest>()
  /** Number of requests in progress, of each owner that has any. */
  readonly #inProgressByOwner = new Map<string, number>()
  readonly #queue: FairQueue<Waiting>
  #checkedAt: number | null = null
  #activeAtCheck = 0
  /** Recent share of the thread's time that was busy. */
  #busyShare = 0
  /** Time since which connections have arrived without a pause. */
  #connectionsSince: number | null = null
  /** Requests that may begin before the next check. May have a fraction. */
  #allowedStarts = batchSize
  /** True when the database has answered in time since starts were last added. */
  #isDatabaseInTime = false
  #threadDelay = 0
  #probeStartedAt: number | null = null
  #probeMillis = 0
  #begunCount = 0
  #lastBegunAt = 0
  /** Start of the window of {@link #begunCount}. */
  #countedSince = 0

  /** `now` is monotonic time in milliseconds; `activeMillis` the milliseconds that the thread was busy. */
  constructor(now: () => number, activeMillis: () => number, limits: Limits) {
    this.#now = now
    this.#activeMillis = activeMillis
    this.#limits = limits
    this.#queue = new FairQueue(limits.maxWaiting)
  }

  /** True while {@link check} must be called every {@link checkIntervalMillis}. */
  get needsChecks(): boolean {
    return this.#inProgress.size + this.#queue.size > 0
  }

  /** True while the lateness of the database matters, so that the probe must run. */
  get needsProbe(): boolean {
    return this.#inProgress.size >= minInProgress || this.#queue.size > 0
  }

  get waiting(): number {
    return this.#queue.size
  }

  submit(request: AdmissionRequest): void {
    const now = this.#now()
    if (this.#checkedAt === null) {
      this.#checkedAt = now
      this.#activeAtCheck = this.#activeMillis()
    }
    const { owner } = request
    if (this.#mayBeginFirst(owner) && this.#queue.sizeOf(owner) === 0) return this.#begin(request, now)
    if (this.#queue.size === 0) {
      if (this.#inProgress.size < minInProgress || this.#mayBegin(now)) return this.#begin(request, now)
      this.#countedSince = now
      this.#begunCount = 0
    }
    if (this.#wouldWaitTooLong(owner, now)) return request.refuse(this.#expectedWait(owner, now))
    const added = this.#queue.add(owner, { request, arrivedAt: now })
    if (added === null) return request.refuse(this.#expectedWait(owner, now))
    if (added.displaced !== null) this.#refuse(added.displaced, now)
  }

  /**
   * Connections are arriving. The thread accepts one per iteration of its event loop, besides all other work. Until the
   * whole burst is accepted, including health checks, only the minimum of requests begins.
   */
  connectionArrived(): void {
    this.#connectionsSince ??= this.#now()
  }

  /** No connection arrived in the last iteration of the event loop. */
  connectionsPaused(): void {
    this.#connectionsSince = null
    if (this.#queue.size > 0) this.check()
  }

  /** The database probe has started. */
  probeStarted(): void {
    this.#probeStartedAt = this.#now()
  }

  /** The database probe has ended, successfully or not. */
  probeEnded(): void {
    if (this.#probeStartedAt !== null) this.#probeMillis = this.#now() - this.#probeStartedAt
    this.#probeStartedAt = null
    this.#isDatabaseInTime = this.#probeMillis <= maxDatabaseDelayMillis / 2
  }

  /** Begins requests as far as possible, and refuses those that have waited too long. */
  check(): void {
    const now = this.#now()
    this.#threadDelay = Math.max(this.#checkDelay(now), this.#threadDelay / 2)
    this.#measureThread(now)
    this.#checkedAt = now
    const before = this.#inProgress.size
    for (const request of this.#inProgress) if (request.isDone()) this.#end(request)
    this.#addAllowedStarts(before - this.#inProgress.size)
    for (const waiter of this.#queue) {
      const { request, arrivedAt } = waiter.item
      if (request.isDone()) this.#queue.delete(waiter)
      else if (now - arrivedAt >= this.#limits.maxWait) {
        this.#queue.delete(waiter)
        this.#refuse(waiter, now)
      }
    }
    this.#beginWaiting(now)
    if (now - this.#countedSince > rateWindowMillis) {
      this.#countedSince = now - rateWindowMillis / 2
      this.#begunCount /= 2
    }
    if (this.needsChecks) return
    this.#checkedAt = null
    this.#threadDelay = 0
    this.#probeMillis = 0
    this.#busyShare = 0
    this.#allowedStarts = batchSize
    this.#isDatabaseInTime = false
  }

  /** Refuses all waiting requests. No request begins afterwards. */
  refuseAll(): void {
    for (const waiter of this.#queue) {
      this.#queue.delete(waiter)
      waiter.item.request.refuse(0)
    }
  }

  #refuse({ item, owner }: Waiter<Waiting>, now: number): void {
    item.request.refuse(this.#expectedWait(owner, now))
  }

  /**
   * Allows one start for each answered request, and more while the thread has time and the database answers in time.
   * While the thread is fully busy, it allows fewer starts than were answered: more requests in progress only delay
   * each other.
   */
  #addAllowedStarts(answered: number): void {
    const idle = 1 - this.#busyShare / busyThread.minShare
    if (idle <= 0) {
      this.#allowedStarts = Math.min(
        batchSize,
        (this.#allowedStarts % 1) + answered * busyThread.begunPerAnswered
      )
      return
    }
    const more = this.#isDatabaseInTime ? Math.ceil(batchSize * idle) : 0
    if (more > 0) this.#isDatabaseInTime = false
    this.#allowedStarts = Math.min(batchSize, this.#allowedStarts + more + answered)
  }

  #measureThread(now: number): void {
    const passed = this.#checkedAt === null ? 0 : now - this.#checkedAt
    const active = this.#activeMillis()
    if (passed > 0) {
      const share = (active - this.#activeAtCheck) / passed
      this.#busyShare += (share - this.#busyShare) * Math.min(1, passed / busyThread.averageMillis)
    }
    this.#activeAtCheck = active
  }

  /** Begins as many requests as time allows, and at least one per {@link trickleMillis}. */
  #beginWaiting(from: number): void {
    let now = from
    let hasBegun = false
    for (let next = this.#queue.next; next !== null; next = this.#queue.next) {
      const load = this.#load(now)
      const mayBegin =
        this.#inProgress.size < minInProgress ||
        this.#mayBeginFirst(next.owner) ||
        (this.#mayBegin(now) && now - from < maxBatchMillis)
      const minPause = load <= 1 ? trickleMillis : checkIntervalMillis * load
      if (!mayBegin && (hasBegun || now - this.#lastBegunAt < minPause)) return
      hasBegun = true
      this.#queue.shift()
      this.#begunCount++
      this.#begin(next.item.request, now)
      now = this.#now()
    }
  }

  #mayBegin(now: number): boolean {
    const isGathering = this.#connectionsSince !== null && now - this.#connectionsSince < maxGatherMillis
    return !isGathering && this.#allowedStarts >= 1 && this.#load(now) <= 1
  }

  #begin(request: AdmissionRequest, now: number): void {
    this.#lastBegunAt = now
    this.#allowedStarts--
    this.#inProgress.add(request)
    this.#inProgressByOwner.set(request.owner, (this.#inProgressByOwner.get(request.owner) ?? 0) + 1)
    request.begin()
  }

  #end(request: AdmissionRequest): void {
    this.#inProgress.delete(request)
    const left = (this.#inProgressByOwner.get(request.owner) ?? 0) - 1
    if (left > 0) this.#inProgressByOwner.set(request.owner, left)
    else this.#inProgressByOwner.delete(request.owner)
  }

  /** True if `owner` has no request in progress, and few other owners have one. */
  #mayBeginFirst(owner: string): boolean {
    return this.#inProgressByOwner.size < minInProgress && !this.#inProgressByOwner.has(owner)
  }

  /** Milliseconds by which the current check is late. */
  #checkDelay(now: number): number {
    return this.#checkedAt === null ? 0 : Math.max(0, now - this.#checkedAt - checkIntervalMillis)
  }

  /** Load relative to the limits. Above 1 the process does not keep up. */
  #load(now: number): number {
    const thread = Math.max(this.#threadDelay, this.#checkDelay(now))
    const database = Math.max(
      this.#probeMillis,
      this.#probeStartedAt === null ? 0 : now - this.#probeStartedAt
    )
    return Math.max(thread / maxThreadDelayMillis, database / maxDatabaseDelayMillis)
  }

  /**
   * True when a new request would exceed its wait limit. One late measurement is not enough: the oldest request must
   * have waited already.
   */
  #wouldWaitTooLong(owner: string, now: number): boolean {
    const { maxWait } = this.#limits
    const [first] = this.#queue
    const waited = first === undefined ? 0 : now - first.item.arrivedAt
    return waited >= maxWait / 4 && this.#expectedWait(owner, now) > maxWait
  }

  /** Expected wait of a new request of `owner` in milliseconds: behind its own, and as many of each other owner. */
  #expectedWait(owner: string, now: number): number {
    const others = Math.max(1, this.#queue.owners)
    const ahead = Math.min(
      this.#queue.size,
      this.#queue.sizeOf(owner) + (this.#queue.sizeOf(owner) + 1) * others
    )
    return (ahead * (now - this.#countedSince)) / (this.#begunCount + 1)
  }
}
