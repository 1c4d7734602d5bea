/** Typing indicators: reports the visitor's typing to the team, and shows the team's typing to the visitor. */
import type { Client } from "./Client.ts"

/** How long the team is shown as typing after each report. */
const shownMs = 6_000
/** Minimum time between two reports of the visitor's typing. */
const reportIntervalMs = 3_000

export class Typing {
  private readonly client
  private readonly onChange
  private reportedAt = 0
  private hiding: ReturnType<typeof setTimeout> | undefined

  /** `onChange` gets true while somebody of the team is typing. */
  constructor(client: Pick<Client, "typing">, onChange: (isTyping: boolean) => void) {
    this.client = client
    this.onChange = onChange
  }

  /** Reports that the visitor is typing, at most once per interval. */
  report(sessionId: string): void {
    const now = Date.now()
    if (now - this.reportedAt < reportIntervalMs) return
    this.reportedAt = now
    // A lost report does no harm.
    this.client.typing(sessionId).catch(() => undefined)
  }

  /** Shows that the team is typing, until no report came for a while. */
  show(): void {
    clearTimeout(this.hiding)
    this.onChange(true)
    this.hiding = setTimeout(() => this.onChange(false), shownMs)
  }

  end(): void {
    clearTimeout(this.hiding)
  }
}
