import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as MetricState from "effect/MetricState"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/TestClock"
import { FairLimiter, type Limits, LimitReached, type Permit } from "../../src/concurrency/FairLimiter.ts"

const limiterOf = (limits: Omit<Limits, "name">) => new FairLimiter({ name: "test", ...limits })

/** A limiter, and who was granted, refused and revoked, in this order. */
const recorded = (limits: Omit<Limits, "name">) => {
  const limiter = limiterOf(limits)
  const told: Array<string> = []
  const ask = (owner: string, name = owner, amount = 1) =>
    limiter.request(owner, {
      amount,
      onSettled: (granted) => told.push(`${name} ${granted ? "granted" : "refused"}`)
    })
  const askRevocable = (owner: string, name = owner, amount = 1) =>
    limiter.request(owner, { amount, onRevoked: () => told.push(`${name} revoked`) })
  return { ask, askRevocable, limiter, told }
}

/** The metrics of a limit, by name. */
const metricsOf = (limit: string) =>
  Object.fromEntries(
    Metric.unsafeSnapshot().flatMap(({ metricKey, metricState }) => {
      const of = metricKey.tags.find(({ key }) => key === "limit")?.value
      if (of !== limit) return []
      if (MetricState.isGaugeState(metricState)) return [[metricKey.name, metricState.value] as const]
      return MetricState.isCounterState(metricState) ? [[metricKey.name, metricState.count] as const] : []
    })
  )

const isForgotten = (limiter: FairLimiter) => {
  const { spoke_limit_owners: owners, spoke_limit_waiting: waiting } = metricsOf("test")
  expect([limiter.held, limiter.waiting, owners, waiting]).toEqual([0, 0, 0, 0])
}

describe("Permits", () => {
  it("are granted while there are some, and given back once however often it is said", () => {
    const limiter = limiterOf({ permits: 2 })
    const [one, two] = [limiter.tryAcquire("a"), limiter.tryAcquire("b")]
    expect(limiter.tryAcquire("c")).toBe(null)
    one?.release()
    one?.release()
    expect(limiter.held).toBe(1)
    expect(limiter.tryAcquire("c")).not.toBe(null)
    expect(limiter.tryAcquire("d")).toBe(null)
    two?.release()
  })

  it("are held by one owner up to its cap, whoever else is there", () => {
    const limiter = limiterOf({ permits: 4, maxPermitsPerOwner: 3 })
    for (let times = 0; times < 3; times++) expect(limiter.tryAcquire("a")).not.toBe(null)
    expect(limiter.tryAcquire("a")).toBe(null)
    expect(limiter.tryAcquire("b")).not.toBe(null)
    expect(limiter.tryAcquire("b")).toBe(null)
  })

  it("count for more than one where an amount is asked for, and never for more than an owner may hold", () => {
    const limiter = limiterOf({ permits: 10, maxPermitsPerOwner: 6 })
    const large = limiter.tryAcquire("a", { amount: 100 })
    expect(large?.amount).toBe(6)
    expect(limiter.tryAcquire("b", { amount: 5 })).toBe(null)
    const small = limiter.tryAcquire("b", { amount: 4 })
    expect(limiter.held).toBe(10)
    large?.release()
    small?.release()
    isForgotten(limiter)
  })

  it("grow and shrink: what is not there changes nothing", () => {
    const { ask, limiter, told } = recorded({ permits: 10, maxWaiting: 1 })
    const permit = limiter.request("a", { amount: 4 })
    expect(permit.resize(10)).toBe(true)
    expect(permit.resize(11)).toBe(false)
    expect(limiter.held).toBe(10)
    ask("b", "b", 3)
    expect(permit.resize(8)).toBe(true)
    expect(told).toEqual([])
    expect(permit.resize(7)).toBe(true)
    expect(told).toEqual(["b granted"])
    permit.release()
    expect(permit.resize(1)).toBe(false)
    expect(limiter.held).toBe(3)
  })
})

describe("Those who wait", () => {
  it("are refused at once where nobody waits", () => {
    const { ask, limiter, told } = recorded({ permits: 1 })
    ask("a")
    expect(ask("b").state).toBe("refused")
    expect(told).toEqual([])
    expect(limiter.waiting).toBe(0)
  })

  it("are served owner by owner in turns, and in order of arrival within an owner", () => {
    const { ask, told } = recorded({ permits: 1, maxWaiting: 100 })
    let held: Permit = ask("z")
    const asked = ["a1", "a2", "a3", "a4", "b1", "b2", "c1"].map((name) => ask(name.charAt(0), name))
    for (const _ of asked) {
      held.release()
      held = asked.find(({ state }) => state === "granted") ?? held
    }
    expect(told.map((line) => line.split(" ")[0])).toEqual(["a1", "b1", "c1", "a2", "b2", "a3", "a4"])
  })

  it("are not overtaken by a newcomer, and an owner at its cap holds nobody up", () => {
    const { ask, told } = recorded({ permits: 4, maxPermitsPerOwner: 2, maxWaiting: 10 })
    const first = ask("a")
    ask("a")
    ask("a", "a waiting")
    expect(ask("b").state).toBe("granted")
    expect(ask("b").state).toBe("granted")
    expect(ask("c", "c waiting").state).toBe("waiting")
    first.release()
    // The owner whose cap ends now comes after those who were waiting for a permit.
    expect(told).toEqual(["c waiting granted"])
  })

  it("keep their turn while what they want is larger than what is free", () => {
    const { ask, limiter, told } = recorded({ permits: 4, maxWaiting: 10 })
    const held = [ask("a"), ask("a"), ask("a"), ask("a")]
    ask("b", "large", 3)
    ask("c", "small")
    held[0]?.release()
    held[1]?.release()
    expect(told).toEqual([])
    expect(limiter.tryAcquire("d")).toBe(null)
    held[2]?.release()
    expect(told).toEqual(["large granted"])
    held[3]?.release()
    expect(told).toEqual(["large granted", "small granted"])
  })

  it("give way, the newest of the owner with the most, when the line is full and somebody with fewer comes", () => {
    const { ask, limiter, told } = recorded({ permits: 1, maxWaiting: 4 })
    ask("z")
    const asked = ["a1", "a2", "a3", "a4"].map((name) => ask("a", name))
    const more = (owner: string, name: string) => {
      const permit = ask(owner, name)
      asked.push(permit)
      return permit.state
    }
    expect(more("a", "a5")).toBe("refused")
    expect(more("b", "b1")).toBe("waiting")
    expect(told).toEqual(["a4 refused"])
    expect(more("b", "b2")).toBe("waiting")
    expect(told).toEqual(["a4 refused", "a3 refused"])
    expect(more("b", "b3")).toBe("refused")
    expect(more("c", "c1")).toBe("waiting")
    const waiting = asked.filter(({ state }) => state === "waiting")
    expect(waiting.filter(({ owner }) => owner !== "c").length).toBe(3)
    expect(waiting.filter(({ owner }) => owner === "c").length).toBe(1)
    expect(limiter.waiting).toBe(4)
  })

  it("leave the line when they give up, wherever they stand in it", () => {
    const { ask, limiter, told } = recorded({ permits: 1, maxWaiting: 10 })
    const held = ask("z")
    const [first, middle, last] = [ask("a", "1"), ask("a", "2"), ask("a", "3")]
    const other = ask("b")
    middle.release()
    first.release()
    other.release()
    expect(limiter.waiting).toBe(1)
    held.release()
    expect(told).toEqual(["3 granted"])
    last.release()
    isForgotten(limiter)
  })

  it("may use the limiter when they are told", () => {
    const limiter = limiterOf({ permits: 1, maxWaiting: 10_000 })
    const held = limiter.request("z")
    let done = 0
    for (let place = 0; place < 10_000; place++) {
      const permit: Permit = limiter.request("a", {
        onSettled: () => {
          done++
          permit.release()
        }
      })
    }
    held.release()
    expect(done).toBe(10_000)
    isForgotten(limiter)
  })
})

describe("Revocable permits", () => {
  it("may be all there are while nobody else wants them, and are taken back from the owner with the most, oldest first", () => {
    const { askRevocable, told } = recorded({ permits: 4 })
    for (const name of ["a1", "a2", "a3", "a4"]) askRevocable("a", name)
    expect(askRevocable("a", "a5").state).toBe("refused")
    expect(askRevocable("b", "b1").state).toBe("granted")
    expect(askRevocable("b", "b2").state).toBe("granted")
    expect(told).toEqual(["a1 revoked", "a2 revoked"])
    // As many as the other has.
    expect(askRevocable("b", "b3").state).toBe("refused")
    expect(askRevocable("c", "c1").state).toBe("granted")
    expect(told).toHaveLength(3)
  })

  it("are left alone while they are in use", () => {
    const { askRevocable, limiter, told } = recorded({ permits: 2 })
    const [one, two] = [askRevocable("a", "a1"), askRevocable("a", "a2")]
    one.setInUse(true)
    two.setInUse(true)
    expect(limiter.tryAcquire("b")).toBe(null)
    two.setInUse(false)
    one.setInUse(false)
    expect(limiter.tryAcquire("b")).not.toBe(null)
    expect(told).toEqual(["a2 revoked"])
    // What was taken back need not be given back.
    two.release()
    expect(limiter.heldBy("a")).toBe(1)
  })

  it("go to those who wait as soon as they are not in use any more", () => {
    const { ask, askRevocable, told } = recorded({ permits: 2, maxWaiting: 1 })
    const [one, two] = [askRevocable("a", "a1"), askRevocable("a", "a2")]
    one.setInUse(true)
    two.setInUse(true)
    ask("b")
    one.setInUse(false)
    expect(told).toEqual(["a1 revoked", "b granted"])
  })

  it("of the same owner make room for each other only when asked to", () => {
    const { askRevocable, limiter, told } = recorded({ permits: 2 })
    askRevocable("a", "a1")
    askRevocable("a", "a2")
    expect(askRevocable("a", "a3").state).toBe("refused")
    expect(limiter.revokeOldestOf("a")).toBe(true)
    expect(limiter.revokeOldestOf("b")).toBe(false)
    expect(askRevocable("a", "a3").state).toBe("granted")
    expect(told).toEqual(["a1 revoked"])
  })

  it("of one owner are shared by its parts, and taken back from the part with the most", () => {
    const { limiter, told } = recorded({ permits: 6 })
    const ask = (owner: string, part: string, name: string) =>
      limiter.request(owner, { part, onRevoked: () => told.push(name) }).state
    for (const name of ["h1", "h2", "h3", "h4"]) expect(ask("a", "hostile", name)).toBe("granted")
    for (const name of ["v1", "v2"]) expect(ask("a", "visitor", name)).toBe("granted")
    expect(ask("a", "hostile", "h5")).toBe("refused")
    // Another part of the same owner, then another owner.
    expect(ask("a", "new", "n1")).toBe("granted")
    expect(told).toEqual(["h1"])
    expect(ask("b", "other", "o1")).toBe("granted")
    expect(told).toEqual(["h1", "h2"])
    expect([limiter.heldBy("a"), limiter.heldBy("b")]).toEqual([5, 1])
  })

  it("weigh what they hold: who holds many bytes gives way, who holds few does not", () => {
    const { askRevocable, limiter, told } = recorded({ permits: 1_000 })
    askRevocable("heavy", "heavy", 900)
    askRevocable("light", "light", 90)
    expect(askRevocable("new", "new", 50).state).toBe("granted")
    expect(told).toEqual(["heavy revoked"])
    expect(limiter.held).toBe(140)
  })
})

type Action =
  | {
      readonly what: "ask"
      readonly owner: string
      readonly amount: number
      readonly how: "try" | "wait" | "revocable"
    }
  | { readonly what: "release" | "use" | "unuse" | "revoke"; readonly which: number; readonly amount?: never }
  | { readonly what: "resize"; readonly which: number; readonly amount: number }

const owner = FastCheck.constantFrom("a", "b", "c", "d", "e")
const which = FastCheck.nat(1_000)
const action: FastCheck.Arbitrary<Action> = FastCheck.oneof(
  {
    weight: 4,
    arbitrary: FastCheck.record({
      what: FastCheck.constant("ask" as const),
      owner,
      amount: FastCheck.integer({ min: 1, max: 4 }),
      how: FastCheck.constantFrom("try" as const, "wait" as const, "revocable" as const)
    })
  },
  {
    weight: 4,
    arbitrary: FastCheck.record({
      what: FastCheck.constantFrom("release" as const, "use" as const, "unuse" as const, "revoke" as const),
      which
    })
  },
  {
    weight: 1,
    arbitrary: FastCheck.record({
      what: FastCheck.constant("resize" as const),
      which,
      amount: FastCheck.integer({ min: 1, max: 5 })
    })
  }
)

describe("Whatever is asked in whatever order", () => {
  const owners = ["a", "b", "c", "d", "e"]
  const limits = FastCheck.record({
    permits: FastCheck.integer({ min: 1, max: 8 }),
    maxPermitsPerOwner: FastCheck.integer({ min: 1, max: 8 }),
    maxWaiting: FastCheck.integer({ min: 0, max: 6 })
  })

  it("no bound is passed, nobody waits for what is free, and nothing is kept of those who have gone", () => {
    FastCheck.assert(
      FastCheck.property(limits, FastCheck.array(action, { maxLength: 120 }), (given, actions) => {
        const limiter = limiterOf(given)
        const cap = Math.min(given.permits, given.maxPermitsPerOwner)
        const all: Array<Permit> = []
        const settled = new Map<number, boolean>()
        const pick = (place: number) => all[place % Math.max(1, all.length)]
        for (const one of actions) {
          if (one.what === "ask") {
            const place = all.length
            const onSettled = (granted: boolean) => {
              expect(settled.has(place)).toBe(false)
              settled.set(place, granted)
            }
            all.push(
              limiter.request(one.owner, {
                amount: one.amount,
                ...(one.how === "wait" && { onSettled }),
                ...(one.how === "revocable" && { onRevoked: () => {} })
              })
            )
          } else if (one.what === "release") pick(one.which)?.release()
          else if (one.what === "use") pick(one.which)?.setInUse(true)
          else if (one.what === "unuse") pick(one.which)?.setInUse(false)
          else if (one.what === "revoke") limiter.revokeOldestOf(pick(one.which)?.owner ?? "a")
          else if (one.what === "resize") pick(one.which)?.resize(one.amount)

          const granted = all.filter(({ state }) => state === "granted")
          const waiting = all.filter(({ state }) => state === "waiting")
          expect(limiter.held).toBe(granted.reduce((sum, { amount }) => sum + amount, 0))
          expect(limiter.held).toBeLessThanOrEqual(given.permits)
          expect(limiter.waiting).toBe(waiting.length)
          expect(limiter.waiting).toBeLessThanOrEqual(given.maxWaiting)
          for (const name of owners) {
            const mine = granted.filter((permit) => permit.owner === name)
            expect(limiter.heldBy(name)).toBe(mine.reduce((sum, { amount }) => sum + amount, 0))
            expect(limiter.heldBy(name)).toBeLessThanOrEqual(cap)
            // First come, first served, within an owner.
            const line = waiting.filter((permit) => permit.owner === name)
            const [first] = line
            const oldest = first === undefined ? -1 : all.indexOf(first)
            for (const [place, ok] of settled) {
              if (ok && all[place]?.owner === name && oldest >= 0) expect(place).toBeLessThan(oldest)
            }
          }
          // Some owner's first waiter is kept by the cap, or by too few free permits for whose turn it is.
          const free = given.permits - limiter.held
          const firsts = owners.flatMap((name) => waiting.find((permit) => permit.owner === name) ?? [])
          const able = firsts.filter((permit) => limiter.heldBy(permit.owner) + permit.amount <= cap)
          expect(able.length === 0 || able.some(({ amount }) => amount > free)).toBe(true)
        }
        for (const permit of all) permit.release()
        isForgotten(limiter)
      }),
      { numRuns: 300 }
    )
  })

  it("an owner with one waiter waits for one grant of each other owner at most, however many they wait with", () => {
    FastCheck.assert(
      FastCheck.property(
        FastCheck.array(FastCheck.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 8 }),
        FastCheck.integer({ min: 1, max: 3 }),
        (crowds, permits) => {
          const limiter = limiterOf({ permits, maxWaiting: 10_000 })
          const held = Array.from({ length: permits }, () => limiter.request("z"))
          const order: Array<string> = []
          const running: Array<Permit> = [...held]
          const ask = (name: string) => {
            const permit: Permit = limiter.request(name, {
              onSettled: () => {
                order.push(name)
                running.push(permit)
              }
            })
          }
          for (const [place, count] of crowds.entries())
            for (let times = 0; times < count; times++) ask(`crowd ${place}`)
          ask("alone")
          while (running.length > 0) running.shift()?.release()
          expect(order.indexOf("alone")).toBeLessThanOrEqual(crowds.length)
          isForgotten(limiter)
        }
      ),
      { numRuns: 200 }
    )
  })
})

describe("The Effect interface", () => {
  it.effect("runs one after the other, the owners in turns", () =>
    Effect.gen(function* () {
      const limiter = limiterOf({ permits: 1, maxWaiting: 10 })
      const order: Array<string> = []
      const work = (name: string) =>
        Effect.zipRight(
          Effect.yieldNow(),
          Effect.sync(() => order.push(name))
        ).pipe(limiter.withPermit(name.charAt(0)))
      yield* Effect.all(["a1", "a2", "a3", "b1"].map(work), { concurrency: "unbounded", discard: true })
      expect(order).toEqual(["a1", "b1", "a2", "a3"])
      isForgotten(limiter)
    })
  )

  it.effect("gives the permit back however the effect ends", () =>
    Effect.gen(function* () {
      const limiter = limiterOf({ permits: 1 })
      const with1 = limiter.withPermit("a")
      expect(yield* Effect.exit(with1(Effect.fail("no")))).toEqual(Exit.fail("no"))
      yield* Effect.exit(with1(Effect.die("broken")))
      const fiber = yield* Effect.fork(with1(Effect.never))
      yield* Effect.yieldNow()
      expect(limiter.held).toBe(1)
      yield* Fiber.interrupt(fiber)
      isForgotten(limiter)
    })
  )

  it.effect("fails when there is no place to wait, and when a waiter has to give way", () =>
    Effect.gen(function* () {
      const limiter = limiterOf({ permits: 1, maxWaiting: 2 })
      const forever = Effect.never
      const held = yield* Effect.fork(limiter.withPermit("z")(forever))
      const waiting = yield* Effect.forEach(["a", "a"], (name) =>
        Effect.fork(Effect.exit(limiter.withPermit(name)(forever)))
      )
      yield* Effect.yieldNow()
      const refused = Exit.fail(new LimitReached({ limit: "test" }))
      expect(yield* Effect.exit(limiter.withPermit("a")(forever))).toEqual(refused)
      const other = yield* Effect.fork(limiter.withPermit("b")(Effect.succeed("served")))
      yield* Effect.yieldNow()
      expect(yield* Fiber.join(waiting[1]!)).toEqual(refused)
      yield* Fiber.interrupt(waiting[0]!)
      yield* Fiber.interrupt(held)
      expect(yield* Fiber.join(other)).toBe("served")
      isForgotten(limiter)
    })
  )

  it.effect("leaves the line when it is interrupted, also in the moment in which its turn comes", () =>
    Effect.gen(function* () {
      const limiter = limiterOf({ permits: 1, maxWaiting: 10 })
      for (let steps = 0; steps < 20; steps++) {
        const gate = yield* Deferred.make<void>()
        const held = yield* Effect.fork(limiter.withPermit("z")(Deferred.await(gate)))
        yield* Effect.yieldNow()
        const waiting = yield* Effect.fork(limiter.withPermit("a")(Effect.never))
        yield* Effect.yieldNow()
        yield* Deferred.succeed(gate, undefined)
        for (let step = 0; step < steps; step++) yield* Effect.yieldNow()
        yield* Fiber.interrupt(waiting)
        yield* Fiber.join(held)
        isForgotten(limiter)
      }
    })
  )

  it.effect("holds a permit for a scope, which ends its waiting, too", () =>
    Effect.gen(function* () {
      const limiter = limiterOf({ permits: 1, maxWaiting: 1 })
      const scope = yield* Scope.make()
      yield* Scope.extend(limiter.acquire("a"), scope)
      const waiting = yield* Effect.fork(Effect.scoped(limiter.acquire("b")))
      yield* Effect.yieldNow()
      expect(limiter.waiting).toBe(1)
      yield* Fiber.interrupt(waiting)
      expect([limiter.waiting, limiter.held]).toEqual([0, 1])
      yield* Scope.close(scope, Exit.void)
      isForgotten(limiter)
    })
  )

  it.effect("waits no longer than it may", () =>
    Effect.gen(function* () {
      const limiter = limiterOf({ permits: 1, maxWaiting: 1, maxWait: "10 seconds" })
      const held = yield* Effect.fork(limiter.withPermit("a")(Effect.never))
      const waiting = yield* Effect.fork(Effect.exit(limiter.withPermit("b")(Effect.never)))
      yield* TestClock.adjust("9 seconds")
      expect(limiter.waiting).toBe(1)
      yield* TestClock.adjust("1 second")
      expect(yield* Fiber.join(waiting)).toEqual(Exit.fail(new LimitReached({ limit: "test" })))
      expect(limiter.waiting).toBe(0)
      // What is held is not ended by it.
      yield* TestClock.adjust("1 minute")
      expect(limiter.held).toBe(1)
      yield* Fiber.interrupt(held)
      isForgotten(limiter)
    })
  )

  it.scoped("tells when a revocable permit is taken back", () =>
    Effect.gen(function* () {
      const limiter = limiterOf({ permits: 2 })
      const first = yield* limiter.acquireRevocable("a")
      const second = yield* limiter.acquireRevocable("a")
      yield* limiter.acquireRevocable("b")
      yield* first
      expect(yield* Effect.timeoutOption(second, 0)).toEqual(Option.none())
      expect(yield* Effect.flip(limiter.acquireRevocable("a"))).toEqual(new LimitReached({ limit: "test" }))
    })
  )
})

it.effect("Metrics tell what is held, by how many, who waits, and how many were refused", () =>
  Effect.gen(function* () {
    const limiter = new FairLimiter({ name: "told", permits: 2, maxWaiting: 1 })
    const held = limiter.request("a")
    limiter.request("b")
    limiter.request("b", { onSettled: () => {} })
    limiter.request("b", { onSettled: () => {} })
    expect(metricsOf("told")).toEqual({
      spoke_limit_permits: 2,
      spoke_limit_held: 2,
      spoke_limit_owners: 2,
      spoke_limit_waiting: 1,
      spoke_limit_refused_total: 1,
      spoke_limit_revoked_total: 0
    })
    held.release()
  })
)
