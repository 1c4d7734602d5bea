/**
 * Who is let in when more requests come than the process can work on. As long as it keeps up everybody is, at once. While
 * its one thread or its database is late, requests wait in the order in which they came; what would wait too long is
 * refused on the spot. Streams that wait for a model are nobody's burden: only lateness counts, and answers not begun.
 *
 * What is let in costs most of its time later: lateness alone would be told of a crowd when all of it is inside. So a crowd
 * comes in by parts, and while the thread has no rest, one for each that is answered.
 */

/** Milliseconds between two looks. */
export const interval = 20

export interface Visitor {
  readonly enter: () => void
  /** With the milliseconds after which it may be worth another try. */
  readonly refuse: (again: number) => void
  /** The answer has begun, or nobody waits for it any more. */
  readonly over: () => boolean
}

export interface Limits {
  /** Milliseconds that nobody waits longer, and that nobody is made to wait who is sure to. */
  readonly wait: number
  /** Most that wait. */
  readonly room: number
}

/** How late the thread may be, in milliseconds, before newcomers wait. */
const late = 100
/** The same of the database's shortest answer. */
const slow = 250
/** So many are worked on however late everything is, so that what is late for other reasons still gets on. */
const always = 16
/** Milliseconds in which what the door lets in may keep the thread. */
const batch = 20
/** So many come in at once, and as many more after each answer of the database that was asked for meanwhile and not slow. */
const crowd = 128
/** Milliseconds for which those who come to the house by now are waited for. */
const gathering = 250
/** The part of its time that the thread may be at work before it counts as having no rest, and the milliseconds it is judged by. */
const restless = { share: 0.9, over: 50 }
/** One comes in after so many milliseconds, though nobody was answered. */
const trickle = 100
/** Milliseconds over which it is counted how fast those who wait get in. */
const window = 5_000

export class Door {
  readonly #now: () => number
  readonly #active: () => number
  readonly #limits: Limits
  readonly #inside = new Set<Visitor>()
  readonly #waiting = new Map<Visitor, number>()
  #looked: number | null = null
  #wasActive = 0
  /** The part of its time that the thread has been at work lately. */
  #share = 0
  /** Since when connections have come without a pause. */
  #gathers: number | null = null
  /** So many may come in before the next look. */
  #places = crowd
  /** The database has answered, and soon enough, since places were added. */
  #proved = false
  #late = 0
  #asked: number | null = null
  #slow = 0
  #entered = 0
  #lastEntered = 0
  /** When the counting of `#entered` began. */
  #since = 0

  /** `now` counts milliseconds and never goes back; `active` those that the thread has been at work. */
  constructor(now: () => number, active: () => number, limits: Limits) {
    this.#now = now
    this.#active = active
    this.#limits = limits
  }

  /** True while {@link look} has to be called every {@link interval}. */
  get busy(): boolean {
    return this.#inside.size + this.#waiting.size > 0
  }

  /** True while it matters how late the database is. */
  get crowded(): boolean {
    return this.#inside.size >= always || this.#waiting.size > 0
  }

  get waiting(): number {
    return this.#waiting.size
  }

  arrive(visitor: Visitor): void {
    const now = this.#now()
    if (this.#looked === null) {
      this.#looked = now
      this.#wasActive = this.#active()
    }
    if (this.#waiting.size === 0) {
      if (this.#inside.size < always || this.#free(now)) return this.#enter(visitor, now)
      this.#since = now
      this.#entered = 0
    }
    if (this.#waiting.size >= this.#limits.room || this.#hopeless(now))
      return visitor.refuse(this.#expected(now))
    this.#waiting.set(visitor, now)
  }

  /**
   * Connections come. The thread accepts one a turn, whatever else is to be done in it: until the last of a crowd has come,
   * health checks among them, no more is begun than has to be.
   */
  gather(): void {
    this.#gathers ??= this.#now()
  }

  /** No connection came in the last turn. */
  gathered(): void {
    this.#gathers = null
    if (this.#waiting.size > 0) this.look()
  }

  /** The database is asked something small. */
  asked(): void {
    this.#asked = this.#now()
  }

  /** It has answered, or will not. */
  answered(): void {
    if (this.#asked !== null) this.#slow = this.#now() - this.#asked
    this.#asked = null
    this.#proved = this.#slow <= slow / 2
  }

  /** Lets in whoever may be, and sends away who has waited too long. */
  look(): void {
    const now = this.#now()
    this.#late = Math.max(this.#lateness(now), this.#late / 2)
    this.#watch(now)
    this.#looked = now
    const before = this.#inside.size
    for (const visitor of this.#inside) if (visitor.over()) this.#inside.delete(visitor)
    this.#allow(before - this.#inside.size)
    for (const [visitor, came] of this.#waiting) {
      if (visitor.over()) this.#waiting.delete(visitor)
      else if (now - came >= this.#limits.wait) {
        this.#waiting.delete(visitor)
        visitor.refuse(this.#expected(now))
      }
    }
    this.#admit(now)
    if (now - this.#since > window) {
      this.#since = now - window / 2
      this.#entered /= 2
    }
    if (this.busy) return
    this.#looked = null
    this.#late = 0
    this.#slow = 0
    this.#share = 0
    this.#places = crowd
    this.#proved = false
  }

  /** A place for each that has `left`, and more while the thread has rest and the database is known to. */
  #allow(left: number): void {
    const rests = this.#share < restless.share
    const more = rests && this.#proved ? crowd : 0
    if (more > 0) this.#proved = false
    this.#places = Math.min(crowd, (rests ? this.#places : 0) + more + left)
  }

  #watch(now: number): void {
    const passed = this.#looked === null ? 0 : now - this.#looked
    const active = this.#active()
    if (passed > 0) {
      const share = (active - this.#wasActive) / passed
      this.#share += (share - this.#share) * Math.min(1, passed / restless.over)
    }
    this.#wasActive = active
  }

  /** Those in front first: as many as there is time for, and one now and then when there is none. */
  #admit(now: number): void {
    let at = now
    let some = false
    for (const [visitor] of this.#waiting) {
      const pressure = this.#pressure(at)
      const may = this.#inside.size < always || (this.#free(at) && at - now < batch)
      const rest = pressure <= 1 ? trickle : interval * pressure
      if (!may && (some || at - this.#lastEntered < rest)) return
      some = true
      this.#waiting.delete(visitor)
      this.#entered++
      this.#enter(visitor, at)
      at = this.#now()
    }
  }

  #free(now: number): boolean {
    const gathers = this.#gathers !== null && now - this.#gathers < gathering
    return !gathers && this.#places > 0 && this.#pressure(now) <= 1
  }

  #enter(visitor: Visitor, now: number): void {
    this.#lastEntered = now
    this.#places--
    this.#inside.add(visitor)
    visitor.enter()
  }

  /** Since the last look, which is itself late when the thread is. */
  #lateness(now: number): number {
    return this.#looked === null ? 0 : Math.max(0, now - this.#looked - interval)
  }

  /** Above 1 the process does not keep up. */
  #pressure(now: number): number {
    const thread = Math.max(this.#late, this.#lateness(now))
    const database = Math.max(this.#slow, this.#asked === null ? 0 : now - this.#asked)
    return Math.max(thread / late, database / slow)
  }

  /** A bad moment says little: who came first has to have waited a good part of the limit already. */
  #hopeless(now: number): boolean {
    const [first = now] = this.#waiting.values()
    const { wait } = this.#limits
    return now - first >= wait / 4 && this.#expected(now) > wait
  }

  /** Milliseconds that a newcomer would wait behind all that wait already. */
  #expected(now: number): number {
    return (this.#waiting.size * (now - this.#since)) / (this.#entered + 1)
  }
}
