import { describe, expect, it } from "vitest"
import { readTrace, tracePageSize } from "../../src/ui/dashboard/api/conversations/TracePages.ts"

type Page = Awaited<ReturnType<typeof readTrace>>

/** A run of `count` events, and the cursors with which its pages are read. */
const runOf = (count: number) => {
  const asked: Array<string | null> = []
  const read = async (cursor: string | null) => {
    asked.push(cursor)
    const start = Number(cursor ?? 0)
    const end = Math.min(start + tracePageSize, count)
    const events = Array.from({ length: end - start }, (_, place) => ({ sequence: start + place + 1 }))
    return { id: "run_1", events, hasMore: end < count, nextCursor: String(end) } as unknown as Page
  }
  return { asked, read }
}

describe("The trace of a run", () => {
  it("has the events of all pages, in order", async () => {
    const { asked, read } = runOf(260)
    const { events, hasMore } = await readTrace(read)
    expect(events.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: 260 }, (_, place) => place + 1)
    )
    expect([asked, hasMore]).toEqual([[null, "100", "200"], false])
  })

  it("is read with one request if it has one page, and with a limited number otherwise", async () => {
    const short = runOf(100)
    await readTrace(short.read)
    expect(short.asked).toEqual([null])
    const endless = runOf(Infinity)
    const { events } = await readTrace(endless.read)
    expect([endless.asked.length, events.length]).toEqual([10, 1_000])
  })
})
