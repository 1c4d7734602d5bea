import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../../../src/domain/chat/ChatTurn.ts"
import { TurnFailed } from "../../../src/domain/Errors.ts"
import * as TurnParts from "../../../src/usecases/chat/TurnParts.ts"

const delta = (text: string): TurnPart => ({ _tag: "TextDelta", delta: text })
const failed = new TurnFailed({ message: "Over." })
const collected = (parts: TurnParts.TurnParts) =>
  Effect.map(Stream.runCollect(parts.stream), Chunk.toReadonlyArray)

/** As many texts as may be unread, and one more. */
const tooMany = Array.from({ length: TurnParts.maxUnreadParts + 1 }, () => delta("a"))

describe("The parts of a turn", () => {
  it.effect.prop(
    "are read in order, each once, for any interleaving of writer and reader",
    {
      texts: FastCheck.array(FastCheck.string(), { maxLength: 40 }),
      breaths: FastCheck.uniqueArray(FastCheck.nat(40))
    },
    ({ breaths, texts }) =>
      Effect.gen(function* () {
        const parts = yield* TurnParts.make
        const reader = yield* Effect.fork(collected(parts))
        for (const [place, text] of texts.entries()) {
          yield* place % 2 === 0 ? parts.add(delta(text)) : parts.addAndWait([delta(text)])
          if (breaths.includes(place)) yield* Effect.yieldNow()
        }
        yield* parts.end(Exit.void)
        expect(yield* Fiber.join(reader)).toEqual(texts.map(delta))
      })
  )

  it.effect("that arrive together are one chunk", () =>
    Effect.gen(function* () {
      const parts = yield* TurnParts.make
      yield* parts.addAndWait(["a", "b", "c"].map(delta))
      yield* parts.end(Exit.void)
      const chunks = yield* Stream.runCollect(Stream.chunks(parts.stream))
      expect(Chunk.toReadonlyArray(chunks).map(Chunk.size)).toEqual([3])
    })
  )

  it.effect("are all read before the failure that ended the turn", () =>
    Effect.gen(function* () {
      const parts = yield* TurnParts.make
      yield* parts.add(delta("a"))
      yield* parts.end(Exit.fail(failed))
      const seen: Array<TurnPart> = []
      const read = Stream.runForEach(parts.stream, (part) => Effect.sync(() => void seen.push(part)))
      expect([yield* Effect.exit(read), seen]).toEqual([Exit.fail(failed), [delta("a")]])
    })
  )

  it.effect("apply backpressure to text while a reader is far behind", () =>
    Effect.gen(function* () {
      const parts = yield* TurnParts.make
      const writer = yield* Effect.fork(parts.addAndWait(tooMany))
      yield* Effect.yieldNow()
      expect(writer.unsafePoll()).toBeNull()
      yield* Stream.runDrain(Stream.take(parts.stream, 1))
      expect(yield* Fiber.join(writer)).toBeUndefined()
    })
  )

  it.effect("never delay an event or the end", () =>
    Effect.gen(function* () {
      const parts = yield* TurnParts.make
      const writer = yield* Effect.fork(parts.addAndWait(tooMany))
      yield* Effect.yieldNow()
      yield* parts.add({ _tag: "StepEnd" })
      yield* parts.end(Exit.void)
      expect((yield* collected(parts)).at(-1)).toEqual({ _tag: "StepEnd" })
      yield* Fiber.join(writer)
    })
  )

  it.effect("are dropped once the reader has left, without waiting", () =>
    Effect.gen(function* () {
      const parts = yield* TurnParts.make
      const writer = yield* Effect.fork(parts.addAndWait(tooMany))
      yield* Effect.yieldNow()
      yield* parts.shutdown
      yield* Fiber.join(writer)
      yield* parts.addAndWait(tooMany)
      expect(yield* collected(parts)).toEqual([])
    })
  )
})
