import { InfiniteQueryObserver, QueryClient } from "@tanstack/react-query"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { conversation, type Message } from "../../src/ui/dashboard/api/Conversations.ts"
import { type Entry, readThread } from "../../src/ui/dashboard/api/Inbox.ts"

const messageOf = (position: number, feedback: Message["feedback"] = null) =>
  ({ id: `msg_${position}`, position, content: `Message ${position}`, feedback, delivery: null }) as Message

const noteOf = (position: number) => ({ id: `note_${position}`, position, kind: "note" }) as Entry

/** A service with one conversation, which answers as the route does, and the requests for its messages. */
const service = () => {
  const stored = { messages: new Array<Message>(), entries: new Array<Entry>() }
  const asked: Array<string> = []
  vi.stubGlobal("fetch", (path: string) => {
    const query = new URL(path, "http://spoke.example").searchParams
    const [before, limit] = [query.get("before"), Number(query.get("limit"))]
    asked.push(before ?? "newest")
    const end = before === null ? Infinity : stored.messages.findIndex(({ id }) => id === before)
    const until = stored.messages.slice(0, end)
    const messages = until.slice(-limit)
    const hasMore = until.length > messages.length
    const [first, last] = [messages[0]?.position ?? 0, messages.at(-1)?.position ?? 0]
    const entries = stored.entries.filter(
      ({ position }) => (!hasMore || position >= first) && (before === null || position <= last)
    )
    const data = { conversation: { id: "cnv_1", unread: false }, messages, entries, hasMore }
    return Promise.resolve(new Response(JSON.stringify({ data })))
  })
  return { asked, stored }
}

/** Milliseconds between two polls while the socket is connected. */
const pollIntervalMs = 30_000

describe("The thread of a conversation in the dashboard", () => {
  let queries: QueryClient

  beforeEach(() => {
    vi.useFakeTimers()
    queries = new QueryClient()
    queries.mount()
  })

  afterEach(() => {
    queries.clear()
    queries.unmount()
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })

  /** The thread of `count` messages, all of which have been read. */
  const open = async (count: number) => {
    const { asked, stored } = service()
    stored.messages = Array.from({ length: count }, (_, position) => messageOf(position))
    const observer = new InfiniteQueryObserver(queries, conversation("cnv_1", true))
    const end = observer.subscribe(() => undefined)
    await vi.advanceTimersByTimeAsync(0)
    while (observer.getCurrentResult().hasNextPage) await observer.fetchNextPage()
    asked.splice(0)
    const shown = () => observer.getCurrentResult().data?.pages.toReversed() ?? []
    /** Outside of a browser no query polls by itself. */
    const poll = async () => {
      await vi.advanceTimersByTimeAsync(pollIntervalMs)
      await queries.refetchQueries({ queryKey: ["conversations", "one", "cnv_1"] })
    }
    return {
      asked,
      stored,
      end,
      poll,
      messages: () => shown().flatMap((page) => page.messages),
      entries: () => shown().flatMap((page) => page.entries)
    }
  }

  it("reads only the newest messages at a poll, and shows each message and event once", async () => {
    const { asked, end, entries, messages, poll, stored } = await open(220)
    await poll()
    expect(asked).toEqual(["newest"])
    stored.entries = [noteOf(175)]
    stored.messages = [...stored.messages, ...[220, 221, 222].map((position) => messageOf(position))]
    await queries.invalidateQueries({ queryKey: ["conversations"] })
    expect(asked).toEqual(["newest", "newest"])
    expect(messages()).toEqual(stored.messages)
    expect(entries()).toEqual(stored.entries)
    // The window of the newest page has moved over the event.
    stored.messages = [...stored.messages, ...[223, 224, 225].map((position) => messageOf(position))]
    await queries.invalidateQueries({ queryKey: ["conversations"] })
    expect(asked).toEqual(["newest", "newest", "newest"])
    expect(messages()).toEqual(stored.messages)
    expect(entries()).toEqual(stored.entries)
    end()
  })

  it("reads what lies between, after more messages than a page has", async () => {
    const { end, messages, stored } = await open(120)
    stored.messages = Array.from({ length: 300 }, (_, position) => messageOf(position))
    await queries.invalidateQueries({ queryKey: ["conversations"] })
    // As many pages as before, without a gap.
    expect(messages()).toEqual(stored.messages.slice(-150))
    end()
  })

  it("shows a rating of an older message after a while, and the removal of an older note at once", async () => {
    const { end, entries, messages, poll, stored } = await open(220)
    stored.entries = [noteOf(10)]
    stored.messages = stored.messages.with(
      5,
      messageOf(5, { rating: 1, comment: null } as Message["feedback"])
    )
    await poll()
    await poll()
    expect(messages()).toEqual(stored.messages)
    expect(entries()).toEqual(stored.entries)
    stored.entries = []
    await readThread(queries, "cnv_1")
    expect(entries()).toEqual([])
    end()
  })
})
