import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../../../src/domain/ChatTurn.ts"
import { TurnFailed } from "../../../src/domain/Errors.ts"
import { Parts } from "../../../src/usecases/chat/Parts.ts"

const delta = (text: string): TurnPart => ({ _tag: "TextDelta", delta: text })
const failed = new TurnFailed({ message: "Over." })

/** So many parts before a reader is waited for. */
const backlog = 16_384

/** Adds one by one, with a breath after those that `breaths` names. */
const written = (parts: Parts, texts: ReadonlyArray<string>, breaths: ReadonlySet<number>) =>
  Effect.gen(function* () {
    for (const [place, text] of texts.entries()) {
      yield* parts.add(delta(text))
      if (breaths.has(place)) yield* Effect.yieldNow()
    }
    parts.end(Exit.void)
  })

const plan = FastCheck.record({
  texts: FastCheck.array(FastCheck.string(), { maxLength: 40 }),
  breaths: FastCheck.uniqueArray(FastCheck.nat(40)),
  pauses: FastCheck.uniqueArray(FastCheck.nat(40))
})

describe("The parts of a turn", () => {
  it.effect.prop(
    "are told in order, each once, however writer and reader take turns",
    [plan],
    ([{ breaths, pauses, texts }]) =>
      Effect.gen(function* () {
        const parts = new Parts()
        const seen: Array<TurnPart> = []
        let told = 0
        const reader = yield* Effect.fork(
          parts.tell((come) => {
            seen.push(...come)
            return pauses.includes(told++) ? Effect.yieldNow() : Effect.void
          })
        )
        yield* written(parts, texts, new Set(breaths))
        yield* Fiber.join(reader)
        expect(seen).toEqual(texts.map(delta))
      })
  )

  it.effect.prop("come out of the stream as they are told", [plan], ([{ breaths, texts }]) =>
    Effect.gen(function* () {
      const parts = new Parts()
      const reader = yield* Effect.fork(Stream.runCollect(parts.stream))
      yield* written(parts, texts, new Set(breaths))
      expect(Chunk.toReadonlyArray(yield* Fiber.join(reader))).toEqual(texts.map(delta))
    })
  )

  it.effect("that come within a moment are told together", () =>
    Effect.gen(function* () {
      const parts = new Parts()
      const sizes: Array<number> = []
      const reader = yield* Effect.fork(
        parts.tell((come) => {
          sizes.push([...come].length)
          return Effect.void
        })
      )
      yield* Effect.yieldNow()
      for (const text of ["a", "b", "c"]) yield* parts.add(delta(text))
      parts.end(Exit.void)
      yield* Fiber.join(reader)
      expect(sizes).toEqual([3])
    })
  )

  it.effect("are all told before the failure that ended the turn", () =>
    Effect.gen(function* () {
      const parts = new Parts()
      yield* parts.add(delta("a"))
      parts.end(Exit.fail(failed))
      const seen: Array<TurnPart> = []
      const exit = yield* Effect.exit(
        parts.tell((come) => {
          seen.push(...come)
          return Effect.void
        })
      )
      expect(seen).toEqual([delta("a")])
      expect(exit).toEqual(Exit.fail(failed))
      const other = new Parts()
      other.end(Exit.fail(failed))
      expect(yield* Effect.exit(Stream.runDrain(other.stream))).toEqual(Exit.fail(failed))
    })
  )

  it.effect("make the turn wait for a reader who is far behind, and no longer once he has caught up", () =>
    Effect.gen(function* () {
      const parts = new Parts()
      for (let place = 0; place < backlog; place++) expect(parts.add(delta("a"))).toBe(Effect.void)
      const writer = yield* Effect.fork(parts.add(delta("b")))
      yield* Effect.yieldNow()
      expect(writer.unsafePoll()).toBeNull()
      const reading = yield* Deferred.make<void>()
      const reader = yield* Effect.fork(parts.tell(() => Deferred.await(reading)))
      yield* Fiber.join(writer)
      yield* Fiber.interrupt(reader)
    })
  )

  it.effect("are dropped when nobody reads on, and nobody waits for room", () =>
    Effect.gen(function* () {
      const parts = new Parts()
      for (let place = 0; place < backlog; place++) yield* parts.add(delta("a"))
      const writer = yield* Effect.fork(parts.add(delta("b")))
      yield* Effect.yieldNow()
      yield* parts.shutdown
      yield* Fiber.join(writer)
      expect(parts.add(delta("c"))).toBe(Effect.void)
      expect(Chunk.toReadonlyArray(yield* Stream.runCollect(parts.stream))).toEqual([])
    })
  )

  it.effect("whose reader breaks are its defect, not the turn's", () =>
    Effect.gen(function* () {
      const parts = new Parts()
      const reader = yield* Effect.fork(
        parts.tell(() => {
          throw new Error("broken")
        })
      )
      yield* Effect.yieldNow()
      yield* parts.add(delta("a"))
      expect(Exit.isFailure(yield* Fiber.await(reader))).toBe(true)
      expect(parts.add(delta("b"))).toBe(Effect.void)
    })
  )
})
