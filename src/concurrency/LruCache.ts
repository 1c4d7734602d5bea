/** A map that evicts the least recently used entries. */
export class LruCache<V> {
  readonly #entries = new Map<string, V>()

  /** The value, which becomes the most recently used. */
  get(key: string): V | undefined {
    const value = this.#entries.get(key)
    if (value !== undefined) this.set(key, value)
    return value
  }

  set(key: string, value: V): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  /** Evicts all but the `maxEntries` most recently used entries. */
  trim(maxEntries: number): void {
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= maxEntries) return
      this.#entries.delete(key)
    }
  }

  /** The sum of the costs of all values. */
  totalCost(cost: (value: V) => number): number {
    let sum = 0
    for (const value of this.#entries.values()) sum += cost(value)
    return sum
  }

  /** Evicts the least recently used entries until the total cost is at most `limit`. The last one always stays. */
  trimToCost(limit: number, cost: (value: V) => number): void {
    let sum = 0
    let last = true
    for (const [key, value] of Array.from(this.#entries).reverse()) {
      sum += cost(value)
      if (sum > limit && !last) this.#entries.delete(key)
      last = false
    }
  }
}
