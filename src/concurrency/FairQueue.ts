/**
 * A bounded queue shared by several owners (tenants, keys, addresses), which take turns: an owner with one item waits
 * for at most one item of each other owner, however many those have. When it is full, the newest item of the owner with
 * the most items is displaced by an owner with fewer. Each operation takes O(log owners).
 */

/** A max-heap by weight. The heaviest member is found in O(1); each change takes O(log n). */
export class Heap<A> {
  readonly #weightOf: (member: A) => number
  readonly #members: Array<A> = []
  readonly #places = new Map<A, number>()

  constructor(weightOf: (member: A) => number) {
    this.#weightOf = weightOf
  }

  get top(): A | undefined {
    return this.#members[0]
  }

  /** Adds `member`, or moves it if its weight has changed. */
  update(member: A): void {
    const place = this.#places.get(member) ?? this.#members.push(member) - 1
    this.#down(this.#up(place, member), member)
  }

  remove(member: A): void {
    const place = this.#places.get(member)
    if (place === undefined) return
    this.#places.delete(member)
    const last = this.#members.pop()
    if (last !== undefined && last !== member) this.#down(this.#up(place, last), last)
  }

  #put(member: A, place: number): void {
    this.#members[place] = member
    this.#places.set(member, place)
  }

  #up(from: number, member: A): number {
    const weight = this.#weightOf(member)
    let place = from
    while (place > 0) {
      const above = (place - 1) >> 1
      const other = this.#members[above]
      if (other === undefined || this.#weightOf(other) >= weight) break
      this.#put(other, place)
      place = above
    }
    this.#put(member, place)
    return place
  }

  #down(from: number, member: A): void {
    const weight = this.#weightOf(member)
    let place = from
    for (;;) {
      const leftChild = 2 * place + 1
      const right = this.#members[leftChild + 1]
      let other = this.#members[leftChild]
      if (other === undefined) break
      const isRight = right !== undefined && this.#weightOf(right) > this.#weightOf(other)
      if (isRight) other = right
      if (this.#weightOf(other) <= weight) break
      this.#put(other, place)
      place = isRight ? leftChild + 1 : leftChild
    }
    this.#put(member, place)
  }
}

/** An item of a {@link FairQueue}. */
export class Waiter<A> {
  readonly owner: string
  readonly item: A
  /** Internal; null once the item has left the queue. */
  line: Line<A> | null = null
  before: Waiter<A> | null = null
  after: Waiter<A> | null = null

  constructor(owner: string, item: A) {
    this.owner = owner
    this.item = item
  }
}

/** The items of one owner, oldest first. */
class Line<A> {
  size = 0
  first: Waiter<A> | null = null
  last: Waiter<A> | null = null

  add(waiter: Waiter<A>): void {
    waiter.line = this
    waiter.before = this.last
    if (this.last === null) this.first = waiter
    else this.last.after = waiter
    this.last = waiter
    this.size++
  }

  remove(waiter: Waiter<A>): void {
    const { after, before } = waiter
    if (before === null) this.first = after
    else before.after = after
    if (after === null) this.last = before
    else after.before = before
    waiter.line = null
    this.size--
  }
}

/** A bounded queue whose owners take turns. It iterates in order of arrival. */
export class FairQueue<A> implements Iterable<Waiter<A>> {
  readonly #maxSize: number
  readonly #lines = new Map<string, Line<A>>()
  /** Lines of owners that are not paused; the first one is next. */
  readonly #turns = new Set<Line<A>>()
  readonly #longest = new Heap<Line<A>>(({ size }) => size)
  readonly #waiters = new Set<Waiter<A>>()

  constructor(maxSize: number) {
    this.#maxSize = maxSize
  }

  get size(): number {
    return this.#waiters.size
  }

  get owners(): number {
    return this.#lines.size
  }

  sizeOf(owner: string): number {
    return this.#lines.get(owner)?.size ?? 0
  }

  firstOf(owner: string): Waiter<A> | null {
    return this.#lines.get(owner)?.first ?? null
  }

  [Symbol.iterator](): Iterator<Waiter<A>> {
    return this.#waiters.values()
  }

  /**
   * Adds an item. In a full queue, the newest item of the owner with the most items is removed and returned as
   * `displaced`, if that owner has at least two more than `owner`. Null when the queue is full and no item can be
   * displaced.
   */
  add(owner: string, item: A): { readonly waiter: Waiter<A>; readonly displaced: Waiter<A> | null } | null {
    let displaced: Waiter<A> | null = null
    if (this.size >= this.#maxSize) {
      const longest = this.#longest.top
      if (longest === undefined || longest.size < this.sizeOf(owner) + 2) return null
      displaced = longest.last
      if (displaced !== null) this.delete(displaced)
    }
    const waiter = new Waiter(owner, item)
    let line = this.#lines.get(owner)
    if (line === undefined) {
      line = new Line<A>()
      this.#lines.set(owner, line)
      this.#turns.add(line)
    }
    line.add(waiter)
    this.#longest.update(line)
    this.#waiters.add(waiter)
    return { waiter, displaced }
  }

  /** The first item of the next owner. */
  get next(): Waiter<A> | null {
    for (const { first } of this.#turns) return first
    return null
  }

  /** Removes and returns {@link next}. Its owner's next turn comes after those of all others. */
  shift(): Waiter<A> | null {
    const waiter = this.next
    const line = waiter?.line ?? null
    if (waiter === null || line === null) return null
    this.#turns.delete(line)
    this.#turns.add(line)
    this.delete(waiter)
    return waiter
  }

  /** False when the item has already left the queue. */
  delete(waiter: Waiter<A>): boolean {
    const { line, owner } = waiter
    if (line === null) return false
    line.remove(waiter)
    this.#waiters.delete(waiter)
    if (line.size > 0) this.#longest.update(line)
    else {
      this.#longest.remove(line)
      this.#lines.delete(owner)
      this.#turns.delete(line)
    }
    return true
  }

  /** Skips the owner until it is resumed, or has no items left. */
  pause(owner: string): void {
    const line = this.#lines.get(owner)
    if (line !== undefined) this.#turns.delete(line)
  }

  /** Ends a pause. The owner's next turn comes after those of all others. */
  resume(owner: string): void {
    const line = this.#lines.get(owner)
    if (line !== undefined) this.#turns.add(line)
  }
}
