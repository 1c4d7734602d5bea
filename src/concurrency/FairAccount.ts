import { Heap } from "./FairQueue.ts"

/** The data of a permit that the account needs. */
interface HeldPermit {
  readonly part: string
  readonly amount: number
}

interface Part<A> {
  permits: number
  held: number
  /** Revocable permits, oldest first. */
  readonly revocable: Set<A>
}

/** The permits of one owner, by part. */
export class FairAccount<A extends HeldPermit> {
  held = 0
  #permits = 0
  readonly #parts = new Map<string, Part<A>>()
  /** Parts with revocable permits; the one that holds most is on top. */
  readonly #heaviest = new Heap<Part<A>>(({ held }) => held)

  get isEmpty(): boolean {
    return this.#permits === 0
  }

  heldBy(part: string): number {
    return this.#parts.get(part)?.held ?? 0
  }

  /** Number of permits of the largest part among those with revocable permits; 0 if there is none. */
  get heaviestPart(): number {
    return this.#heaviest.top?.held ?? 0
  }

  /** The permit to revoke first: the oldest one of the part that holds most. */
  get oldest(): A | undefined {
    const [oldest] = this.#heaviest.top?.revocable ?? []
    return oldest
  }

  add(permit: A): void {
    const part = this.#partOf(permit.part)
    part.permits++
    this.#permits++
    this.grow(permit, permit.amount)
  }

  remove(permit: A): void {
    const part = this.#partOf(permit.part)
    part.permits--
    this.#permits--
    part.revocable.delete(permit)
    this.grow(permit, -permit.amount)
    if (part.permits === 0) this.#parts.delete(permit.part)
  }

  /** Adds `more` to the amount of the permit; it may be negative. */
  grow(permit: A, more: number): void {
    const part = this.#partOf(permit.part)
    part.held += more
    this.held += more
    this.#rank(part)
  }

  /** A permit that becomes revocable is the newest of its part. */
  setRevocable(permit: A, revocable: boolean): void {
    const part = this.#partOf(permit.part)
    part.revocable.delete(permit)
    if (revocable) part.revocable.add(permit)
    this.#rank(part)
  }

  #partOf(name: string): Part<A> {
    const known = this.#parts.get(name)
    if (known !== undefined) return known
    const part: Part<A> = { permits: 0, held: 0, revocable: new Set() }
    this.#parts.set(name, part)
    return part
  }

  #rank(part: Part<A>): void {
    if (part.revocable.size > 0) this.#heaviest.update(part)
    else this.#heaviest.remove(part)
  }
}
