import { describe, expect, it } from "vitest"
import { Repeater } from "../../src/ui/widget/Repeater.ts"

/** Looks that end when told to. */
const held = () => {
  const looks: Array<{ readonly settled: boolean; readonly end: () => void }> = []
  const repeater = new Repeater(
    (settled) => new Promise<void>((resolve) => looks.push({ settled, end: () => resolve() }))
  )
  const end = async () => {
    looks.at(-1)?.end()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { looks, repeater, end }
}

describe("Looks of the widget at its conversation", () => {
  it("follow each other one at a time, and news in the midst of one is looked for once more", async () => {
    const { end, looks, repeater } = held()
    const first = repeater.ask()
    await Promise.resolve()
    const settled = repeater.ask(true)
    const third = repeater.ask()
    await end()
    expect(looks.map((look) => look.settled)).toEqual([false, true])
    // A person's reply, told while the settled look runs.
    const fourth = repeater.ask()
    await end()
    expect(looks.map((look) => look.settled)).toEqual([false, true, false])
    await end()
    await Promise.all([first, settled, third, fourth])
    const later = repeater.ask()
    await Promise.resolve()
    await end()
    await later
    expect(looks).toHaveLength(4)
  })
})
