import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { TurnPart } from "../../../src/domain/chat/ChatTurn.ts"
import { streamWithRest, PartBuffer } from "../../../src/usecases/chat/PartBuffer.ts"

const delta = (text: string): TurnPart => ({ _tag: "TextDelta", delta: text })
const textOf = (parts: Iterable<TurnPart>) =>
  Array.from(parts, (part) => (part._tag === "TextDelta" ? part.delta : "")).join("")

describe("The buffer of a running turn's parts", () => {
  it.effect(
    "stores text in blocks, so that a follower copies one block per piece and not the whole text",
    () =>
      Effect.gen(function* () {
        const buffer = new PartBuffer()
        const words = Array.from({ length: 20_000 }, (_, at) => `word ${at} `)
        for (const word of words) buffer.append(delta(word))
        buffer.close(Exit.void)
        const told = Chunk.toReadonlyArray(yield* Stream.runCollect(buffer.stream))
        expect(textOf(told)).toBe(words.join(""))
        expect(Math.max(...told.map((part) => textOf([part]).length))).toBeLessThan(5_000)
        expect(told.length).toBeLessThan(100)
      })
  )

  it.effect("continues where a follower stopped, with any parts in between", () =>
    Effect.gen(function* () {
      const buffer = new PartBuffer()
      buffer.append(delta("a".repeat(4_000)))
      const follower = yield* Effect.fork(Stream.runCollect(buffer.stream))
      for (let at = 0; at < 300; at++) {
        buffer.append(delta(String(at).padStart(100, ".")))
        if (at % 50 === 0) buffer.append({ _tag: "StepEnd" })
        if (at % 7 === 0) yield* Effect.yieldNow()
      }
      buffer.close(Exit.void)
      const followed = yield* Fiber.join(follower)
      const late = yield* Stream.runCollect(buffer.stream)
      expect(textOf(followed)).toBe(textOf(late))
      expect(textOf(followed).length).toBe(4_000 + 30_000)
    })
  )

  it.effect("ends with the result also if the follower has read more parts than the stored turn has", () =>
    Effect.gen(function* () {
      const buffer = new PartBuffer()
      const progress: TurnPart = { _tag: "ToolProgress", id: "call_1", text: "working" }
      const done: TurnPart = {
        _tag: "Done",
        result: { reply: "All done.", citations: [], media: [] }
      }
      const stored: ReadonlyArray<TurnPart> = [
        { _tag: "StepStart" },
        delta("All done."),
        { _tag: "StepEnd" },
        done
      ]
      for (const part of [
        { _tag: "StepStart" },
        progress,
        { _tag: "StepEnd" },
        { _tag: "StepStart" }
      ] as const) {
        buffer.append(part)
      }
      buffer.append(delta("All "))
      const reader = yield* Effect.fork(
        Stream.runCollect(streamWithRest(buffer, Stream.fromIterable(stored)))
      )
      while ((yield* Fiber.status(reader))._tag !== "Suspended") yield* Effect.yieldNow()
      for (let at = 0; at < 5_000; at++) buffer.append(progress)
      buffer.close(Exit.void)
      const told = Chunk.toReadonlyArray(yield* Fiber.join(reader))
      expect(told.slice(-4)).toEqual([delta("All "), delta("done."), { _tag: "StepEnd" }, done])
    })
  )
})
