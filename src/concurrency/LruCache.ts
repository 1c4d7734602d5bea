/** A map that evicts the least recently used entries. */
export class LruCache<V> {
  readonly #entries = new Map<string, V>()

  /** The value, which becomes the most recently used. */
  use(key: string): V | undefined {
    const value = this.#entries.get(key)
    if (value !== undefined) this.put(key, value)
    return value
  }

  put(key: string, value: V): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
  }

  drop(key: string): void {
    this.#entries.delete(key)
  }

  /** Keeps the `maxEntries` most recently used entries. */
  keep(maxEntries: number): void {
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= maxEntries) return
      this.#entries.delete(key)
    }
  }

  /** The sum of the costs of all values. */
  sum(cost: (value: V) => number): number {
    let sum = 0
    for (const value of this.#entries.values()) sum += cost(value)
    return sum
  }

  /** Keeps the most recently used entries whose total cost fits `limit`, and always the last one. */
  fit(limit: number, cost: (value: V) => number): void {
    let sum = 0
    let last = true
    for (const [key, value] of Array.from(this.#entries).reverse()) {
      sum += cost(value)
      if (sum > limit && !last) this.#entries.delete(key)
      last = false
    }
  }
}
