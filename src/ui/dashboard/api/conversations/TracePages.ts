/** A run's trace, which the service returns in pages of events. */
import type { RunTrace } from "../../../../domain/chat/AgentRun.ts"

type Page = typeof RunTrace.Encoded

/** Events of one page. */
export const tracePageSize = 100

/** A bound. The steps of a turn are limited: a run has at most about 300 events. */
const maxPages = 10

/** The trace with the events of all pages. `read` returns the page after the cursor. */
export const wholeTrace = async (read: (cursor: string | null) => Promise<Page>): Promise<Page> => {
  let trace = await read(null)
  for (let pages = 1; trace.hasMore && pages < maxPages; pages++) {
    const next = await read(trace.nextCursor)
    trace = { ...next, events: [...trace.events, ...next.events] }
  }
  return trace
}
