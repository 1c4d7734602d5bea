import { it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import { describe, expect } from "vitest"
import type { TurnPart } from "../../../src/domain/chat/ChatTurn.ts"
import { TurnFailed } from "../../../src/domain/Errors.ts"
import * as Resume from "../../../src/http/Resume.ts"
import * as Sse from "../../../src/http/Sse.ts"
import { chunksOf, citation, event, type Parts, result, textDelta, types } from "./UiStream.ts"

describe("the stream of a turn", () => {
  const text = (stream: Parts, full = true) => Stream.mkString(Stream.decodeText(Sse.body(stream, full)))

  it.effect("sends a heartbeat at least every 15 seconds while nothing happens", () =>
    Effect.gen(function* () {
      const seen = yield* Sse.body(Stream.never, true).pipe(
        Stream.decodeText(),
        Stream.take(4),
        Stream.runCollect,
        Effect.fork
      )
      yield* TestClock.adjust("45 seconds")
      const frames = Chunk.toReadonlyArray(yield* Fiber.join(seen))
      expect(frames.filter((frame) => frame === ": keep-alive\n\n")).toHaveLength(3)
    })
  )

  it.effect("sends no heartbeat after its end, however late it is read", () =>
    Effect.gen(function* () {
      const pull = yield* Stream.toPull(Sse.body(Stream.make(textDelta("Hi")), true))
      const first = yield* pull
      yield* TestClock.adjust("5 minutes")
      const rest = yield* Stream.runCollect(Stream.fromPull(Effect.succeed(pull)))
      const text = new TextDecoder().decode(Buffer.concat([...first, ...rest]))
      expect([text.endsWith("data: [DONE]\n\n"), text.includes("keep-alive")]).toEqual([true, false])
    }).pipe(Effect.scoped)
  )

  it.effect(
    "sends heartbeats as visible parts on request, which the real client does not add to the message",
    () =>
      Effect.gen(function* () {
        const asking = Sse.wantsHeartbeatParts({ "x-spoke-heartbeat": "data" })
        expect([
          asking,
          Sse.wantsHeartbeatParts({}),
          Sse.wantsHeartbeatParts({ "x-spoke-heartbeat": "no" })
        ]).toEqual([true, false, false])
        const slow = Stream.concat(
          Stream.drain(Stream.fromEffect(Effect.sleep("30 seconds"))),
          Stream.make(textDelta("Hello"), { _tag: "Done", result } as const)
        )
        const whole = (beats: boolean) =>
          Effect.gen(function* () {
            const read = yield* Effect.fork(Stream.mkString(Stream.decodeText(Sse.body(slow, true, beats))))
            yield* TestClock.adjust("30 seconds")
            return yield* Fiber.join(read)
          })
        const beating = yield* whole(true)
        const chunks = yield* Effect.promise(() => chunksOf(beating))
        expect(chunks.filter(({ type }) => type === "data-heartbeat")).toEqual([
          { type: "data-heartbeat", data: {}, transient: true },
          { type: "data-heartbeat", data: {}, transient: true }
        ])
        const quiet = yield* whole(false)
        expect(beating.replaceAll(/data: \{"type":"data-heartbeat".*\n\n/gu, "")).toBe(quiet)
        // A client that lost the stream need not have counted them.
        const resumed = yield* Resume.skip(Stream.encodeText(Stream.make(beating)), 3).pipe(
          Stream.decodeText(),
          Stream.mkString
        )
        expect(resumed.match(/"text-(?:start|delta|end)"/gu)).toEqual(['"text-delta"', '"text-end"'])
      })
  )

  it.effect("joins deltas that wait at the same time", () =>
    Effect.gen(function* () {
      const deltas = Array.from({ length: 500 }, (_, place) => textDelta(`${place} `))
      const all = yield* text(Stream.fromIterable([...deltas, { _tag: "Done", result } as const]))
      expect(all.match(/"text-delta"/g)).toHaveLength(1)
      expect(all).toContain(deltas.map((part) => (part._tag === "TextDelta" ? part.delta : "")).join(""))
    })
  )

  const unicode = FastCheck.string({ unit: "binary" })
  const anyPart = FastCheck.oneof(
    FastCheck.record({ _tag: FastCheck.constant("TextDelta" as const), delta: unicode }),
    FastCheck.record({ _tag: FastCheck.constant("ReasoningDelta" as const), delta: unicode }),
    FastCheck.constantFrom<TurnPart>({ _tag: "StepStart" }, { _tag: "StepEnd" }, { _tag: "RunEvent", event }),
    FastCheck.record({
      _tag: FastCheck.constant("Citation" as const),
      citation: FastCheck.constantFrom(
        ...["https://example.test/", "artifact:x", "javascript:x"].map(citation)
      )
    }),
    FastCheck.record({
      _tag: FastCheck.constant("ToolCall" as const),
      id: FastCheck.constantFrom("a", "b"),
      name: unicode,
      input: FastCheck.oneof(FastCheck.jsonValue(), FastCheck.constant(undefined))
    })
  )

  it.effect.prop(
    "is accepted by the real client for any turn",
    [
      FastCheck.array(anyPart, { maxLength: 30 }),
      FastCheck.constantFrom("done", "fail", "stop"),
      FastCheck.boolean()
    ],
    ([random, ending, full]) =>
      Effect.gen(function* () {
        const last: Parts =
          ending === "done"
            ? Stream.make({ _tag: "Done", result } as const)
            : ending === "fail"
              ? Stream.fail(new TurnFailed({ message: "x" }))
              : Stream.empty
        const chunked = Stream.rechunk(Stream.fromIterable<TurnPart>(random), 3)
        const chunks = yield* Effect.flatMap(text(Stream.concat(chunked, last), full), (all) =>
          Effect.promise(() => chunksOf(all))
        )
        expect(types(chunks).filter((type) => type === "error" || type === "data-done")).toEqual([
          ending === "done" ? "data-done" : "error"
        ])
        const open = new Set<unknown>()
        for (const { type, id } of chunks) {
          if (type === "text-start" || type === "reasoning-start") open.add(id)
          if (/^(?:text|reasoning)-(?:delta|end)$/u.test(type)) expect(open.has(id)).toBe(true)
          if (type === "text-end" || type === "reasoning-end") open.delete(id)
          if (type === "finish-step") expect(open.size).toBe(0)
        }
        const said = chunks.flatMap(({ type, delta }) => (type === "text-delta" ? [delta] : [])).join("")
        expect(said).toBe(random.flatMap((part) => (part._tag === "TextDelta" ? [part.delta] : [])).join(""))
        const thought = chunks.flatMap(({ type, delta }) => (type === "reasoning-delta" ? [delta] : []))
        expect(thought.join("")).toBe(
          random.flatMap((part) => (part._tag === "ReasoningDelta" ? [part.delta] : [])).join("")
        )
        // Who counts frames to resume counts the same whether what was thought came along or not.
        const silent = Stream.filter(chunked, (part) => part._tag !== "ReasoningDelta")
        const without = yield* text(Stream.concat(Stream.rechunk(silent, 3), last), full)
        const counted = yield* Effect.promise(() => chunksOf(without))
        const rest = chunks.filter(({ type }) => !type.startsWith("reasoning-"))
        const unjoined = (all: typeof chunks) => all.filter(({ type }) => type !== "text-delta")
        expect(unjoined(rest)).toEqual(unjoined(counted))
      })
  )
})
