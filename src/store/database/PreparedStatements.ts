/**
 * Statements that are run so often that each connection keeps them prepared: to plan one of a turn's takes the database
 * longer than to run it.
 */

/** Runs after which a statement is kept. */
const minRuns = 8
/** Statements that are kept; each costs every connection of the pool some of the server's memory. */
const maxPrepared = 256
/** Statements that are counted; those with changing texts must not fill the memory. */
const maxCounted = 2_000

/** The plan is not there, is there already, or does not fit the tables any more: nothing was run. */
const unusable = new Set(["26000", "42P05", "0A000"])

export class PreparedStatements {
  readonly #counts = new Map<string, number>()
  readonly #names = new Map<string, string>()
  /** Told apart from names that connections still know. */
  #generation = 0
  #enabled: boolean

  /** `enabled`: false where connections do not stay with us between statements. */
  constructor(enabled: boolean) {
    this.#enabled = enabled
  }

  /** Whether connections keep statements for us. */
  get isEnabled(): boolean {
    return this.#enabled
  }

  /** The name under which `text` is kept; undefined when it is not. */
  nameOf(text: string): string | undefined {
    if (!this.#enabled) return undefined
    const known = this.#names.get(text)
    if (known !== undefined || this.#names.size >= maxPrepared) return known
    const count = (this.#counts.get(text) ?? 0) + 1
    if (count < minRuns) {
      if (this.#counts.size >= maxCounted) this.#counts.clear()
      this.#counts.set(text, count)
      return undefined
    }
    this.#counts.delete(text)
    const name = `spoke_${this.#generation}_${this.#names.size}`
    this.#names.set(text, name)
    return name
  }

  /** True when a prepared statement failed as such: the same one, unprepared, may be run in its place. */
  failed(error: Error): boolean {
    const code = "code" in error ? error.code : undefined
    if (typeof code !== "string" || !unusable.has(code)) return false
    this.#names.clear()
    this.#generation += 1
    // A pooler gives each statement another connection: only tables that have changed are worth another try.
    if (code !== "0A000") this.#enabled = false
    return true
  }
}
