/** Who is typing, in both directions: the team in the widget, and the visitor at the team's. */
import type { Client } from "./Client.ts"

/** How long the team is shown as typing after each report of it, in milliseconds. */
const shownMs = 6_000
/** Least time between two reports that the visitor is typing, in milliseconds. */
const reportIntervalMs = 3_000

export class Typing {
  private readonly client
  private readonly onChange
  private reportedAt = 0
  private hiding: ReturnType<typeof setTimeout> | undefined

  /** `onChange` is told whether somebody of the team is typing. */
  constructor(client: Pick<Client, "typing">, onChange: (isTyping: boolean) => void) {
    this.client = client
    this.onChange = onChange
  }

  /** Reports that the visitor is typing, at most once an interval. */
  report(sessionId: string): void {
    const now = Date.now()
    if (now - this.reportedAt < reportIntervalMs) return
    this.reportedAt = now
    // A lost report does no harm.
    this.client.typing(sessionId).catch(() => undefined)
  }

  /** Somebody of the team is typing: shown until no report came for a while. */
  show(): void {
    clearTimeout(this.hiding)
    this.onChange(true)
    this.hiding = setTimeout(() => this.onChange(false), shownMs)
  }

  end(): void {
    clearTimeout(this.hiding)
  }
}
