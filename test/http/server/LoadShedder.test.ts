import { describe, expect, it } from "vitest"
import { LoadShedder, checkIntervalMillis as interval } from "../../../src/http/server/LoadShedder.ts"

/** A load shedder, a clock that is moved by hand, and what became of every request. */
const setting = ({ wait = 10_000, room = 1_000 } = {}) => {
  let time = 0
  let active = 0
  const shedder = new LoadShedder(
    () => time,
    () => active,
    { maxWait: wait, maxWaiting: room }
  )
  const entered: Array<number> = []
  const refused: Array<number> = []
  const over = new Set<number>()
  let count = 0
  const arrive = (times = 1, owner = "one") => {
    for (; times > 0; times--) {
      const name = ++count
      shedder.submit({
        owner,
        begin: () => entered.push(name),
        refuse: () => refused.push(name),
        isDone: () => over.has(name)
      })
    }
  }
  /** The next look comes in time, or `late` milliseconds after it; the thread was at work for `share` of it. */
  const look = (late = 0, share = 0) => {
    time += interval + late
    active += (interval + late) * share
    shedder.check()
  }
  /** Everybody inside is answered. */
  const answer = () => {
    for (const name of entered) over.add(name)
  }
  const pass = (millis: number) => {
    time += millis
  }
  return { answer, arrive, shedder, entered, look, over, pass, refused }
}

describe("A load shedder", () => {
  it("begins every request while the process keeps up, with any number unanswered: 128 at once, 128 after each answer of the database", () => {
    const { arrive, shedder, entered, look } = setting()
    const answered = () => {
      shedder.probeStarted()
      shedder.probeEnded()
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
    expect(shedder.waiting).toBe(0)
  })

  it("begins four requests for each five that are answered while the thread is fully busy, and all once it has time", () => {
    const { arrive, shedder, entered, look, over } = setting({ room: 2_000 })
    arrive(128)
    for (let looks = 0; looks < 10; looks++) look(0, 1)
    arrive(1_000)
    const before = entered.length
    for (let looks = 0; looks < 50; looks++) {
      over.add(looks + 1)
      look(0, 1)
    }
    // A second, in which fifty were answered.
    expect(entered.length - before).toBe(40)
    for (let looks = 0; looks < 40; looks++) {
      shedder.probeStarted()
      shedder.probeEnded()
      look(0, 0.5)
    }
    expect(shedder.waiting).toBe(0)
  })

  it("begins the first request of an owner at once, for sixteen owners, regardless of other owners' requests", () => {
    const { arrive, shedder, entered, look } = setting()
    arrive(500, "many")
    look(400, 1)
    const waiting = shedder.waiting
    expect(waiting).toBe(371)
    for (let owner = 1; owner <= 20; owner++) arrive(1, `single ${owner}`)
    expect(entered.slice(129)).toEqual(Array.from({ length: 15 }, (_, place) => 501 + place))
    arrive(1, "single 1")
    expect(shedder.waiting).toBe(waiting + 6)
  })

  it("waits for the last of many new connections before it begins more than sixteen requests, at most a quarter of a second", () => {
    const { arrive, shedder, entered, look } = setting()
    shedder.connectionArrived()
    arrive(50)
    look()
    expect(entered).toHaveLength(16)
    shedder.connectionsPaused()
    expect(entered).toHaveLength(50)
    shedder.connectionArrived()
    arrive(30)
    for (let looks = 0; looks < 20; looks++) {
      shedder.connectionArrived()
      look()
    }
    expect(shedder.waiting).toBe(0)
  })

  it("makes new requests wait while the thread is late, and begins them in the order in which they came", () => {
    const { answer, arrive, shedder, entered, look } = setting()
    arrive(100)
    look(400)
    arrive(50)
    expect(entered).toHaveLength(100)
    expect(shedder.waiting).toBe(50)
    shedder.probeStarted()
    shedder.probeEnded()
    for (let looks = 0; looks < 10; looks++) look()
    expect(shedder.waiting).toBe(0)
    expect(entered).toEqual(Array.from({ length: 150 }, (_, place) => place + 1))
    answer()
    look()
    expect(shedder.needsChecks).toBe(false)
  })

  it("detects a late thread before the next measurement, which is late as well", () => {
    const { arrive, shedder, pass } = setting()
    arrive(16)
    pass(interval + 101)
    arrive(1)
    expect(shedder.waiting).toBe(1)
  })

  it("keeps sixteen in progress at any lateness", () => {
    const { arrive, entered, look, over } = setting()
    arrive(40)
    look(5_000)
    arrive(40)
    expect(entered).toHaveLength(40)
    for (let name = 1; name <= 30; name++) over.add(name)
    look(5_000)
    expect(entered).toHaveLength(46)
  })

  it("begins a request now and then when those in progress are unanswered for other reasons", () => {
    const { arrive, entered, look } = setting({ wait: 60_000 })
    arrive(20)
    for (let looks = 0; looks < 20; looks++) {
      look(200)
      arrive(1)
    }
    expect(entered.length).toBeGreaterThan(25)
  })

  it("makes new requests wait while the database has not answered, and begins them when it has", () => {
    const { arrive, shedder, entered, look } = setting()
    arrive(20)
    shedder.probeStarted()
    for (let looks = 0; looks < 15; looks++) look()
    arrive(30)
    expect(shedder.waiting).toBe(30)
    shedder.probeEnded()
    shedder.probeStarted()
    shedder.probeEnded()
    look()
    expect(entered).toHaveLength(50)
  })

  it("refuses at once when there is no place to wait, and keeps those that wait", () => {
    const { arrive, shedder, look, refused } = setting({ room: 10 })
    arrive(16)
    look(1_000)
    arrive(30)
    expect(shedder.waiting).toBe(10)
    expect(refused).toHaveLength(20)
  })

  it("refuses at once requests that would certainly wait too long", () => {
    const { arrive, shedder, look, refused } = setting({ wait: 10_000 })
    arrive(16)
    look(1_000)
    arrive(20)
    shedder.probeStarted()
    for (let looks = 0; looks < 4; looks++) look(1_000)
    expect(refused).toEqual([])
    arrive(1)
    expect(refused).toEqual([37])
  })

  it("lets no request wait longer than the limit", () => {
    const { arrive, shedder, look, refused } = setting({ wait: 1_000 })
    arrive(16)
    shedder.probeStarted()
    look(400)
    arrive(100)
    for (let looks = 0; looks < 60; looks++) look()
    expect(shedder.waiting).toBe(0)
    expect(refused.length).toBeGreaterThan(50)
  })

  it("forgets requests whose clients disconnected while they waited", () => {
    const { arrive, shedder, entered, look, over } = setting()
    arrive(16)
    look(1_000)
    arrive(3)
    over.add(18)
    for (let looks = 0; looks < 10; looks++) look()
    expect(entered).not.toContain(18)
    expect(shedder.waiting).toBe(0)
    expect(entered).toHaveLength(18)
  })

  it("serves owners in turns: one request does not wait behind another owner's thousand", () => {
    const { arrive, shedder, entered, look } = setting({ wait: 60_000 })
    arrive(16, "busy")
    look(1_000)
    arrive(900, "busy")
    arrive(1, "alone")
    arrive(2, "two")
    const [alone, two] = [917, [918, 919]]
    for (let looks = 0; entered.length < 24; looks++) {
      shedder.probeStarted()
      look(101)
    }
    expect(entered.indexOf(alone)).toBeLessThanOrEqual(18)
    for (const name of two) expect(entered.indexOf(name)).toBeLessThanOrEqual(22)
  })

  it("gives the last waiting places to owners with fewer requests, and refuses the newest request of the owner with the most", () => {
    const { arrive, shedder, look, refused } = setting({ room: 10, wait: 60_000 })
    arrive(16, "busy")
    arrive(1, "other")
    look(1_000)
    arrive(10, "busy")
    arrive(3, "other")
    expect(refused).toEqual([27, 26, 25])
    arrive(1, "busy")
    expect(refused.at(-1)).toBe(31)
    expect(shedder.waiting).toBe(10)
  })

  it("does not refuse an owner with few requests because another one's would wait too long", () => {
    const { arrive, shedder, look, refused } = setting({ wait: 10_000 })
    arrive(16, "busy")
    look(1_000)
    arrive(20, "busy")
    shedder.probeStarted()
    for (let looks = 0; looks < 4; looks++) look(1_000)
    arrive(1, "busy")
    expect(refused).toEqual([37])
    arrive(1, "other")
    expect(refused).toEqual([37])
  })

  it("refuses all that wait when nothing will be begun any more", () => {
    const { arrive, shedder, look, refused } = setting()
    arrive(16)
    look(1_000)
    arrive(5)
    shedder.refuseAll()
    expect(refused).toEqual([17, 18, 19, 20, 21])
    expect(shedder.waiting).toBe(0)
  })
})
