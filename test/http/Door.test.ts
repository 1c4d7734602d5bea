import { describe, expect, it } from "vitest"
import { Door, interval } from "../../src/http/Door.ts"

/** A door, a clock that is moved by hand, and what became of everybody. */
const setting = ({ wait = 10_000, room = 1_000 } = {}) => {
  let time = 0
  let active = 0
  const door = new Door(
    () => time,
    () => active,
    { wait, room }
  )
  const entered: Array<number> = []
  const refused: Array<number> = []
  const over = new Set<number>()
  let count = 0
  const arrive = (times = 1) => {
    for (; times > 0; times--) {
      const name = ++count
      door.arrive({
        enter: () => entered.push(name),
        refuse: () => refused.push(name),
        over: () => over.has(name)
      })
    }
  }
  /** The next look comes in time, or `late` milliseconds after it; the thread was at work for `share` of it. */
  const look = (late = 0, share = 0) => {
    time += interval + late
    active += (interval + late) * share
    door.look()
  }
  /** Everybody inside is answered. */
  const answer = () => {
    for (const name of entered) over.add(name)
  }
  const pass = (millis: number) => {
    time += millis
  }
  return { answer, arrive, door, entered, look, over, pass, refused }
}

describe("a door", () => {
  it("lets everybody in while the process keeps up, however many are unanswered: 128 at once, 128 after each answer of the database", () => {
    const { arrive, door, entered, look } = setting()
    const answered = () => {
      door.asked()
      door.answered()
      look()
    }
    arrive(500)
    expect(entered).toHaveLength(128)
    look(50)
    expect(entered).toHaveLength(128)
    for (let answers = 0; answers < 4; answers++) answered()
    arrive(500)
    for (let answers = 0; answers < 4; answers++) answered()
    expect(entered).toEqual(Array.from({ length: 1_000 }, (_, place) => place + 1))
    expect(door.waiting).toBe(0)
  })

  it("lets one in for each that is answered while the thread has no rest, and one more every tenth of a second", () => {
    const { arrive, door, entered, look, over } = setting({ room: 2_000 })
    arrive(128)
    for (let looks = 0; looks < 10; looks++) look(0, 1)
    arrive(1_000)
    const before = entered.length
    for (let looks = 0; looks < 50; looks++) {
      over.add(looks + 1)
      look(0, 1)
    }
    // A second, in which fifty were answered.
    expect(entered.length - before).toBeGreaterThanOrEqual(49)
    expect(entered.length - before).toBeLessThanOrEqual(61)
    for (let looks = 0; looks < 40; looks++) {
      door.asked()
      door.answered()
      look(0, 0.5)
    }
    expect(door.waiting).toBe(0)
  })

  it("waits for the last connection of a crowd before it lets in more than sixteen, a quarter of a second at most", () => {
    const { arrive, door, entered, look } = setting()
    door.gather()
    arrive(50)
    look()
    expect(entered).toHaveLength(16)
    door.gathered()
    expect(entered).toHaveLength(50)
    door.gather()
    arrive(30)
    for (let looks = 0; looks < 20; looks++) {
      door.gather()
      look()
    }
    expect(door.waiting).toBe(0)
  })

  it("makes newcomers wait while the thread is late, and lets them in in the order in which they came", () => {
    const { answer, arrive, door, entered, look } = setting()
    arrive(100)
    look(400)
    arrive(50)
    expect(entered).toHaveLength(100)
    expect(door.waiting).toBe(50)
    door.asked()
    door.answered()
    for (let looks = 0; looks < 10; looks++) look()
    expect(door.waiting).toBe(0)
    expect(entered).toEqual(Array.from({ length: 150 }, (_, place) => place + 1))
    answer()
    look()
    expect(door.busy).toBe(false)
  })

  it("sees a thread that is late before the next look, which is late as well", () => {
    const { arrive, door, pass } = setting()
    arrive(16)
    pass(interval + 101)
    arrive(1)
    expect(door.waiting).toBe(1)
  })

  it("keeps sixteen at work however late everything is", () => {
    const { arrive, entered, look, over } = setting()
    arrive(40)
    look(5_000)
    arrive(40)
    expect(entered).toHaveLength(40)
    for (let name = 1; name <= 30; name++) over.add(name)
    look(5_000)
    expect(entered).toHaveLength(46)
  })

  it("lets somebody in now and then when those inside are unanswered for other reasons", () => {
    const { arrive, entered, look } = setting({ wait: 60_000 })
    arrive(20)
    for (let looks = 0; looks < 20; looks++) {
      look(200)
      arrive(1)
    }
    expect(entered.length).toBeGreaterThan(25)
  })

  it("makes newcomers wait while the database has not answered, and lets them in when it has", () => {
    const { arrive, door, entered, look } = setting()
    arrive(20)
    door.asked()
    for (let looks = 0; looks < 15; looks++) look()
    arrive(30)
    expect(door.waiting).toBe(30)
    door.answered()
    door.asked()
    door.answered()
    look()
    expect(entered).toHaveLength(50)
  })

  it("refuses at once when there is no room to wait, and keeps those who wait", () => {
    const { arrive, door, look, refused } = setting({ room: 10 })
    arrive(16)
    look(1_000)
    arrive(30)
    expect(door.waiting).toBe(10)
    expect(refused).toHaveLength(20)
  })

  it("refuses at once whoever is sure to wait too long", () => {
    const { arrive, door, look, refused } = setting({ wait: 10_000 })
    arrive(16)
    look(1_000)
    arrive(20)
    door.asked()
    for (let looks = 0; looks < 4; looks++) look(1_000)
    expect(refused).toEqual([])
    arrive(1)
    expect(refused).toEqual([37])
  })

  it("makes nobody wait longer than the limit", () => {
    const { arrive, door, look, refused } = setting({ wait: 1_000 })
    arrive(16)
    door.asked()
    look(400)
    arrive(100)
    for (let looks = 0; looks < 60; looks++) look()
    expect(door.waiting).toBe(0)
    expect(refused.length).toBeGreaterThan(50)
  })

  it("forgets those who left while they waited", () => {
    const { arrive, door, entered, look, over } = setting()
    arrive(16)
    look(1_000)
    arrive(3)
    over.add(18)
    for (let looks = 0; looks < 10; looks++) look()
    expect(entered).not.toContain(18)
    expect(door.waiting).toBe(0)
    expect(entered).toHaveLength(18)
  })
})
