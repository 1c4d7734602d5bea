/**
 * Load shedding: which requests are begun, wait or are refused when more come than the process can work on.
 *
 * While the process keeps up, every request is begun at once. While its one thread or its database is late, requests wait,
 * and owners (clients, by address) are served round-robin: a client with one request does not wait behind another's
 * thousand. A request that would wait too long is refused at once. Only lateness counts, and requests that are begun and
 * not answered: a stream that waits for a model takes no CPU.
 *
 * Most of what a request costs comes after it was begun, so lateness alone would be seen when a whole crowd is inside. So
 * a crowd is begun in batches, and while the thread is fully busy, one request for each that is answered.
 */
import { FairQueue, type Waiter } from "../../concurrency/FairQueue.ts"

/** Milliseconds between two calls of {@link LoadShedder.look}. */
export const lookInterval = 20

export interface Requester {
  /** The owner of the request; owners share the waiting places. */
  readonly owner: string
  readonly begin: () => void
  /** With the milliseconds after which another try may succeed. */
  readonly refuse: (retryAfter: number) => void
  /** True when the response has begun or the client is gone. */
  readonly isOver: () => boolean
}

export interface Limits {
  /** Milliseconds that a request may wait. */
  readonly maxWait: number
  /** Requests that wait at the same time. */
  readonly maxWaiting: number
}

/** Milliseconds that the thread may be late before new requests wait. */
const threadLateness = 100
/** Milliseconds that the database may take for its shortest answer. */
const databaseLateness = 250
/** Requests that are always begun, even when the process is late for other reasons. */
const minInProgress = 16
/** Milliseconds of the thread in which waiting requests are begun without a break. */
const maxBatchMillis = 20
/** Requests that are begun at once; as many more follow each time the database is known to answer in time. */
const batchSize = 128
/** Longest time, in milliseconds, that requests wait for a burst of connections to be accepted. */
const maxGatherMillis = 250
/** The thread is fully busy when it has worked for this part of the time, averaged over these milliseconds. */
const busyThread = { share: 0.9, over: 50 }
/** One waiting request is begun at least this often, in milliseconds, although none was answered. */
const trickleMillis = 100
/** Milliseconds over which it is counted how fast waiting requests are begun. */
const rateWindow = 5_000

interface Waiting {
  readonly requester: Requester
  /** Its arrival time. */
  readonly since: number
}

export class LoadShedder {
  readonly #now: () => number
  readonly #activeMillis: () => number
  readonly #limits: Limits
  readonly #inProgress = new Set<Requester>()
  readonly #queue: FairQueue<Waiting>
  #lookedAt: number | null = null
  #lastActive = 0
  /** The part of its time that the thread has been busy lately. */
  #busyShare = 0
  /** Since when connections have come without a pause. */
  #gatheringSince: number | null = null
  /** Requests that may be begun before the next look. */
  #places = batchSize
  /** The database has answered in time since places were added. */
  #databaseInTime = false
  #threadLate = 0
  #askedDatabaseAt: number | null = null
  #databaseTook = 0
  #begun = 0
  #lastBegun = 0
  /** Since when {@link #begun} counts. */
  #countingSince = 0

  /** `now` counts milliseconds and never goes back; `activeMillis` those that the thread has been busy. */
  constructor(now: () => number, activeMillis: () => number, limits: Limits) {
    this.#now = now
    this.#activeMillis = activeMillis
    this.#limits = limits
    this.#queue = new FairQueue(limits.maxWaiting)
  }

  /** True while {@link look} has to be called every {@link lookInterval}. */
  get isBusy(): boolean {
    return this.#inProgress.size + this.#queue.size > 0
  }

  /** True while it matters how late the database is. */
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
    if (this.#queue.size === 0) {
      if (this.#inProgress.size < minInProgress || this.#mayBegin(now)) return this.#begin(requester, now)
      this.#countingSince = now
      this.#begun = 0
    }
    if (this.#isHopeless(requester.owner, now)) return requester.refuse(this.#waitOf(requester.owner, now))
    const added = this.#queue.add(requester.owner, { requester, since: now })
    if (added === null) return requester.refuse(this.#waitOf(requester.owner, now))
    if (added.displaced !== null) this.#refuse(added.displaced, now)
  }

  /**
   * Connections come. The thread accepts one in each turn of its loop, beside all other work: until all of a crowd
   * have been accepted, health checks among them, no more is begun than has to be.
   */
  connectionsCome(): void {
    this.#gatheringSince ??= this.#now()
  }

  /** No connection came in the last turn of the loop. */
  connectionsPause(): void {
    this.#gatheringSince = null
    if (this.#queue.size > 0) this.look()
  }

  /** The database is asked something small. */
  databaseAsked(): void {
    this.#askedDatabaseAt = this.#now()
  }

  /** The database has answered, or will not. */
  databaseAnswered(): void {
    if (this.#askedDatabaseAt !== null) this.#databaseTook = this.#now() - this.#askedDatabaseAt
    this.#askedDatabaseAt = null
    this.#databaseInTime = this.#databaseTook <= databaseLateness / 2
  }

  /** Begins what may be begun, and refuses what has waited too long. */
  look(): void {
    const now = this.#now()
    this.#threadLate = Math.max(this.#latenessSince(now), this.#threadLate / 2)
    this.#measureThread(now)
    this.#lookedAt = now
    const before = this.#inProgress.size
    for (const requester of this.#inProgress) if (requester.isOver()) this.#inProgress.delete(requester)
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

  /** Refuses all waiting requests. No request is begun afterwards. */
  refuseAll(): void {
    for (const waiter of this.#queue) {
      this.#queue.delete(waiter)
      waiter.item.requester.refuse(0)
    }
  }

  #refuse({ item, owner }: Waiter<Waiting>, now: number): void {
    item.requester.refuse(this.#waitOf(owner, now))
  }

  /** A place for each that was answered, and more while the thread is not fully busy and the database answers in time. */
  #addPlaces(answered: number): void {
    const hasTime = this.#busyShare < busyThread.share
    const more = hasTime && this.#databaseInTime ? batchSize : 0
    if (more > 0) this.#databaseInTime = false
    this.#places = Math.min(batchSize, (hasTime ? this.#places : 0) + more + answered)
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
        this.#inProgress.size < minInProgress || (this.#mayBegin(now) && now - from < maxBatchMillis)
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
    return !isGathering && this.#places > 0 && this.#pressure(now) <= 1
  }

  #begin(requester: Requester, now: number): void {
    this.#lastBegun = now
    this.#places--
    this.#inProgress.add(requester)
    requester.begin()
  }

  /** Since the last look, which is itself late when the thread is. */
  #latenessSince(now: number): number {
    return this.#lookedAt === null ? 0 : Math.max(0, now - this.#lookedAt - lookInterval)
  }

  /** Above 1 the process does not keep up. */
  #pressure(now: number): number {
    const thread = Math.max(this.#threadLate, this.#latenessSince(now))
    const database = Math.max(
      this.#databaseTook,
      this.#askedDatabaseAt === null ? 0 : now - this.#askedDatabaseAt
    )
    return Math.max(thread / threadLateness, database / databaseLateness)
  }

  /** True when a new request would exceed its wait limit. One late measurement is not enough: the oldest request must wait already. */
  #isHopeless(owner: string, now: number): boolean {
    const { maxWait } = this.#limits
    const [first] = this.#queue
    const waited = first === undefined ? 0 : now - first.item.since
    return waited >= maxWait / 4 && this.#waitOf(owner, now) > maxWait
  }

  /** Milliseconds that a new request of `owner` would wait: behind its own, and as many of each other owner. */
  #waitOf(owner: string, now: number): number {
    const others = Math.max(1, this.#queue.owners)
    const ahead = Math.min(
      this.#queue.size,
      this.#queue.sizeOf(owner) + (this.#queue.sizeOf(owner) + 1) * others
    )
    return (ahead * (now - this.#countingSince)) / (this.#begun + 1)
  }
}
