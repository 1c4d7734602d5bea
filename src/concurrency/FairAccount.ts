import { Heap } from "./FairQueue.ts"

/** What the account knows of a permit. */
interface Holding {
  readonly part: string
  readonly amount: number
}

interface Part<A> {
  permits: number
  held: number
  /** Those that may be taken back, oldest first. */
  readonly revocable: Set<A>
}

/** What one owner holds, by its parts. */
export class FairAccount<A extends Holding> {
  held = 0
  #permits = 0
  readonly #parts = new Map<string, Part<A>>()
  /** Parts with permits that may be taken back; the one that holds most is on top. */
  readonly #heaviest = new Heap<Part<A>>(({ held }) => held)

  get isEmpty(): boolean {
    return this.#permits === 0
  }

  heldBy(part: string): number {
    return this.#parts.get(part)?.held ?? 0
  }

  /** Number of permits of the largest part among those with revocable permits; 0 without one. */
  get heaviestPart(): number {
    return this.#heaviest.top?.held ?? 0
  }

  /** The permit to take back first: the oldest one of the part that holds most. */
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

  /** The permit holds so many more, or fewer. */
  grow(permit: A, more: number): void {
    const part = this.#partOf(permit.part)
    part.held += more
    this.held += more
    this.#rank(part)
  }

  /** A permit that may be taken back is the newest of its part. */
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
