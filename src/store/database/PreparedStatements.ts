/**
 * Statements that run so often that each connection keeps them prepared: the database takes longer to plan a statement
 * of a turn than to run it.
 */

/** Runs after which a statement is prepared. */
const minRuns = 8
/** Maximum number of prepared statements. Each takes memory of the server, for every connection of the pool. */
const maxPrepared = 256
/** Maximum number of counted statements, because statements with changing texts would fill the memory. */
const maxCounted = 2_000

/** SQLSTATEs: the plan is missing, exists already, or does not fit the tables any more. Nothing was run. */
const unusableStates = new Set(["26000", "42P05", "0A000"])

export class PreparedStatements {
  readonly #counts = new Map<string, number>()
  readonly #names = new Map<string, string>()
  /** Part of the names, so that new names differ from those that connections still know. */
  #generation = 0
  #enabled: boolean

  /** `enabled`: false if a pooler may give each statement another connection. */
  constructor(enabled: boolean) {
    this.#enabled = enabled
  }

  /** Whether connections keep statements prepared. */
  get isEnabled(): boolean {
    return this.#enabled
  }

  /** The name under which `text` is prepared; undefined if it is not. */
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

  /** True when a statement failed only because it was prepared. It can then be run again, unprepared. */
  forgetIfUnusable(error: Error): boolean {
    const code = "code" in error ? error.code : undefined
    if (typeof code !== "string" || !unusableStates.has(code)) return false
    this.#names.clear()
    this.#generation += 1
    // Unless the tables have changed, a pooler gave the statement another connection, and will do so again.
    if (code !== "0A000") this.#enabled = false
    return true
  }
}
