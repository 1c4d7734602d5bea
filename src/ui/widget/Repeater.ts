/** Runs one poll at a time. Requests during a poll are combined into one more poll. */
export class Repeater {
  private wish: { readonly settled: boolean } | null = null
  private running: Promise<void> | null = null
  private readonly look: (settled: boolean) => Promise<void>

  /** `look` polls. Its argument is true if any of the combined requests had `settled`. It must not fail. */
  constructor(look: (settled: boolean) => Promise<void>) {
    this.look = look
  }

  /** Resolves after a poll that began after this call has ended. */
  ask(settled = false): Promise<void> {
    this.wish = { settled: settled || this.wish?.settled === true }
    this.running ??= this.run()
    return this.running
  }

  private async run(): Promise<void> {
    // A microtask later, so that `running` is set before the first look may end.
    await Promise.resolve()
    while (this.wish !== null) {
      const { settled } = this.wish
      this.wish = null
      await this.look(settled)
    }
    this.running = null
  }
}
