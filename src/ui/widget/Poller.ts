/** Runs one poll at a time. Requests during a poll are combined into one more poll. */
export class Poller {
  private requested: { readonly replaceLive: boolean } | null = null
  private running: Promise<void> | null = null
  private readonly poll: (replaceLive: boolean) => Promise<void>

  /** `replaceLive` is true if it was so in any of the combined requests. `poll` must not reject. */
  constructor(poll: (replaceLive: boolean) => Promise<void>) {
    this.poll = poll
  }

  /** Resolves at the end of a poll that began after this call. */
  request(replaceLive = false): Promise<void> {
    this.requested = { replaceLive: replaceLive || this.requested?.replaceLive === true }
    this.running ??= this.run()
    return this.running
  }

  private async run(): Promise<void> {
    // One microtask later, so that `running` is set before the first poll can end.
    await Promise.resolve()
    while (this.requested !== null) {
      const { replaceLive } = this.requested
      this.requested = null
      await this.poll(replaceLive)
    }
    this.running = null
  }
}
