import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import {
  expireOlderPages,
  nextPageCursor,
  readPage,
  type ThreadPage,
  threadPageSize
} from "../../src/ui/dashboard/api/conversations/ThreadPage.ts"

type Message = ThreadPage["messages"][number]
type Entry = ThreadPage["entries"][number]

const messageOf = (position: number, feedback: Message["feedback"] = null) =>
  ({ id: `msg_${position}`, position, content: `Message ${position}`, feedback }) as Message

const messagesOf = (count: number) => Array.from({ length: count }, (_, position) => messageOf(position))

const noteOf = (position: number) => ({ id: `note_${position}`, position, kind: "note" }) as Entry

/** A thread of a service with `count` messages, as the dashboard has read all of it. */
const threadOf = async (count: number) => {
  const stored = { messages: messagesOf(count), entries: new Array<Entry>() }
  const asked: Array<string> = []
  let pages: ReadonlyArray<ThreadPage> = []

  /** Answers as the route does. */
  const answer = (before: string | null) => {
    asked.push(before ?? "newest")
    const end = before === null ? Infinity : stored.messages.findIndex(({ id }) => id === before)
    const until = stored.messages.slice(0, end)
    const messages = until.slice(-threadPageSize)
    const hasMore = until.length > messages.length
    const [first, last] = [messages[0]?.position ?? 0, messages.at(-1)?.position ?? 0]
    const entries = stored.entries.filter(
      ({ position }) => (!hasMore || position >= first) && (before === null || position <= last)
    )
    const conversation = { id: "cnv_1" } as ThreadPage["conversation"]
    return Promise.resolve({ conversation, messages, entries, hasMore })
  }

  /** Reads as many pages as are shown, from the newest back. */
  const poll = async (count = pages.length) => {
    const read: Array<ThreadPage> = []
    for (let before: string | null = null; read.length < count;) {
      const from = before
      const page = await readPage(pages, from, () => answer(from))
      read.push(page)
      before = nextPageCursor(page)
      if (before === null) break
    }
    pages = read
  }

  await poll(Infinity)
  asked.splice(0)
  const shown = () => pages.toReversed()
  return {
    asked,
    stored,
    poll,
    age: () => {
      pages = expireOlderPages(pages)
    },
    messages: () => shown().flatMap((page) => page.messages),
    entries: () => shown().flatMap((page) => page.entries)
  }
}

describe("The thread of a conversation in the dashboard", () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })

  afterEach(() => {
    vi.useRealTimers()
  })

  it("reads only the newest messages at a poll, and shows each message and event once", async () => {
    const { asked, entries, messages, poll, stored } = await threadOf(220)
    await poll()
    stored.entries = [noteOf(175)]
    stored.messages = messagesOf(223)
    await poll()
    expect(messages()).toEqual(stored.messages)
    expect(entries()).toEqual(stored.entries)
    // The newest page moves past the event.
    stored.messages = messagesOf(226)
    await poll()
    expect(messages()).toEqual(stored.messages)
    expect(entries()).toEqual(stored.entries)
    expect(asked).toEqual(["newest", "newest", "newest"])
  })

  it("reads the messages in between if more arrived than a page has", async () => {
    const { messages, poll, stored } = await threadOf(120)
    stored.messages = messagesOf(300)
    await poll()
    // As many pages as before, without a gap.
    expect(messages()).toEqual(stored.messages.slice(-150))
  })

  it("shows a rating of an older message after a minute, and the removal of an older note at once", async () => {
    const { age, entries, messages, poll, stored } = await threadOf(220)
    stored.entries = [noteOf(10)]
    stored.messages = stored.messages.with(5, messageOf(5, { rating: 1 } as Message["feedback"]))
    vi.advanceTimersByTime(60_000)
    await poll()
    expect(messages()).toEqual(stored.messages)
    expect(entries()).toEqual(stored.entries)
    stored.entries = []
    age()
    await poll()
    expect(entries()).toEqual([])
  })
})
