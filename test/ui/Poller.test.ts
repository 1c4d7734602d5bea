import { describe, expect, it } from "vitest"
import { Poller } from "../../src/ui/widget/Poller.ts"

/** A poller whose polls end when the test ends them. */
const makePoller = () => {
  const polls: Array<{ readonly replaceLive: boolean; readonly end: () => void }> = []
  const poller = new Poller(
    (replaceLive) => new Promise<void>((resolve) => polls.push({ replaceLive, end: () => resolve() }))
  )
  const end = async () => {
    polls.at(-1)?.end()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { polls, poller, end }
}

describe("The polls of the widget", () => {
  it("run one at a time, and requests during a poll are combined into one more poll", async () => {
    const { end, polls, poller } = makePoller()
    const first = poller.request()
    await Promise.resolve()
    const replaceLive = poller.request(true)
    const third = poller.request()
    await end()
    expect(polls.map((poll) => poll.replaceLive)).toEqual([false, true])
    // Requested while the poll that replaces the live messages runs.
    const fourth = poller.request()
    await end()
    expect(polls.map((poll) => poll.replaceLive)).toEqual([false, true, false])
    await end()
    await Promise.all([first, replaceLive, third, fourth])
    const later = poller.request()
    await Promise.resolve()
    await end()
    await later
    expect(polls).toHaveLength(4)
  })
})
