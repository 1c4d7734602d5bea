/** Reads the trace of a run, which the service returns in pages of events. */
import type { RunTrace } from "../../../../domain/chat/AgentRun.ts"

type Page = typeof RunTrace.Encoded

/** Events of one page. */
export const tracePageSize = 100

/** A run has at most about 300 events, because the steps of a turn are limited. */
const maxPages = 10

/** Returns the trace with the events of all pages. `read` returns the page after the cursor. */
export const readTrace = async (read: (cursor: string | null) => Promise<Page>): Promise<Page> => {
  let trace = await read(null)
  for (let pages = 1; trace.hasMore && pages < maxPages; pages++) {
    const next = await read(trace.nextCursor)
    trace = { ...next, events: [...trace.events, ...next.events] }
  }
  return trace
}
