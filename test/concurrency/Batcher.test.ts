import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Batcher from "../../src/concurrency/Batcher.ts"

/** A batcher that records its batches. The first batch waits for `first`, one with item 99 for `later`, and item 13 fails. */
const recorded = (maxBatchSize: number, answer: (item: number) => number | undefined = (item) => item * 10) =>
  Effect.gen(function* () {
    const runs: Array<ReadonlyArray<number>> = []
    const ended: Array<string> = []
    const first = yield* Deferred.make<void>()
    const begun = yield* Deferred.make<void>()
    const later = yield* Deferred.make<void>()
    const ask = yield* Batcher.makeBatcher(maxBatchSize, (items: ReadonlyArray<number>) =>
      Effect.gen(function* () {
        runs.push(items)
        if (items.includes(13)) return yield* Effect.fail("unlucky" as const)
        if (runs.length === 1) yield* Deferred.await(first)
        else {
          yield* Deferred.succeed(begun, undefined)
          if (items.includes(99)) yield* Deferred.await(later)
        }
        return items.flatMap((item) => answer(item) ?? [])
      }).pipe(Effect.onExit((exit) => Effect.sync(() => ended.push(exit._tag))))
    )
    return { ask, begun, ended, first, later, runs }
  })

it.scopedLive("A lone request runs at once; requests that arrive meanwhile share a batch", () =>
  Effect.gen(function* () {
    const { ask, first, runs } = yield* recorded(16)
    const one = yield* Effect.fork(ask(1))
    yield* Effect.yieldNow()
    expect(runs).toEqual([[1]])
    const others = yield* Effect.forkAll([2, 3, 4].map(ask))
    expect(yield* Fiber.join(others)).toEqual([20, 30, 40])
    expect(runs).toEqual([[1], [2, 3, 4]])
    yield* Deferred.succeed(first, undefined)
    expect(yield* Fiber.join(one)).toBe(10)
    expect(yield* ask(5)).toBe(50)
    expect(runs.at(-1)).toEqual([5])
  })
)

it.scopedLive("A batch has at most maxBatchSize items", () =>
  Effect.gen(function* () {
    const { ask, first, runs } = yield* recorded(2)
    const one = yield* Effect.fork(ask(1))
    yield* Effect.yieldNow()
    const all = Effect.all([2, 3, 4, 5, 6].map(ask), { concurrency: "unbounded" })
    expect(yield* all).toEqual([20, 30, 40, 50, 60])
    expect(runs).toEqual([[1], [2, 3], [4, 5], [6]])
    yield* Deferred.succeed(first, undefined)
    yield* Fiber.join(one)
  })
)

it.scopedLive("A failure reaches every request of its batch, and no other", () =>
  Effect.gen(function* () {
    const { ask, first } = yield* recorded(16)
    const one = yield* Effect.fork(ask(1))
    yield* Effect.yieldNow()
    const exits = Effect.all([Effect.exit(ask(12)), Effect.exit(ask(13))], { concurrency: "unbounded" })
    expect(yield* exits).toEqual([Exit.fail("unlucky"), Exit.fail("unlucky")])
    expect(yield* ask(14)).toBe(140)
    yield* Deferred.succeed(first, undefined)
    expect(yield* Fiber.join(one)).toBe(10)
    expect(yield* Effect.exit(ask(13))).toEqual(Exit.fail("unlucky"))
  })
)

it.scopedLive("An interrupted caller leaves its batch running for the others", () =>
  Effect.gen(function* () {
    const { ask, begun, ended, first, later, runs } = yield* recorded(16)
    const one = yield* Effect.fork(ask(1))
    yield* Effect.yieldNow()
    const early = yield* Effect.fork(ask(7))
    const [stays, goes] = [yield* Effect.fork(ask(99)), yield* Effect.fork(ask(98))]
    yield* Effect.yieldNow()
    yield* Fiber.interrupt(early)
    yield* Deferred.await(begun)
    expect(runs.at(-1)).toEqual([99, 98])
    yield* Fiber.interrupt(goes)
    yield* Deferred.succeed(later, undefined)
    expect(yield* Fiber.join(stays)).toBe(990)
    yield* Fiber.interrupt(one)
    expect(ended).toEqual(["Success", "Failure"])
    expect(yield* Deferred.isDone(first)).toBe(false)
  })
)

it.scopedLive("A batch is interrupted when its last caller is", () =>
  Effect.gen(function* () {
    const started = yield* Deferred.make<void>()
    const interrupted = yield* Deferred.make<void>()
    const ask = yield* Batcher.makeBatcher(16, (items: ReadonlyArray<number>) =>
      Effect.zipRight(
        items.length > 1 ? Deferred.succeed(started, undefined) : Effect.void,
        Effect.onInterrupt(Effect.never, () =>
          items.length > 1 ? Deferred.succeed(interrupted, undefined) : Effect.void
        )
      )
    )
    const fibers = yield* Effect.all([1, 2, 3].map((item) => Effect.fork(ask(item))))
    yield* Deferred.await(started)
    yield* Fiber.interruptAll(fibers)
    yield* Deferred.await(interrupted)
  })
)

it.scopedLive("A request without an answer fails instead of waiting", () =>
  Effect.gen(function* () {
    const { ask, first } = yield* recorded(16, (item) => (item === 3 ? undefined : item))
    const one = yield* Effect.fork(ask(1))
    yield* Effect.yieldNow()
    const exits = yield* Effect.all([Effect.exit(ask(2)), Effect.exit(ask(3))], { concurrency: "unbounded" })
    expect(exits.map(({ _tag }) => _tag)).toEqual(["Success", "Failure"])
    yield* Deferred.succeed(first, undefined)
    expect(yield* Fiber.join(one)).toBe(1)
  })
)
