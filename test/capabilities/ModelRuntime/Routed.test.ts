/** Several providers as one runtime: who is asked, and who is asked instead. */
import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import {
  ModelError,
  type ModelPart,
  type ModelRuntimeService
} from "../../../src/capabilities/ModelRuntime.ts"
import { routed } from "../../../src/capabilities/ModelRuntime/Routed.ts"
import { requestOf } from "./Harness.ts"

const finish: ModelPart = { _tag: "Finish", reason: "stop", inputTokens: 1, outputTokens: 1 }

const error = (fields: Partial<ConstructorParameters<typeof ModelError>[0]> = {}) =>
  new ModelError({ reason: "Unreachable", message: "down", retryable: true, ...fields })

/** Providers that are asked for what `failures` says, else answer with their names. */
const world = (fallbacks: ReadonlyArray<string> = []) => {
  const asked: Array<string> = []
  const failures = new Map<string, Stream.Stream<ModelPart, ModelError>>()
  const provider = (name: string, contextWindow: number): ModelRuntimeService => ({
    defaultModel: "none",
    contextWindow,
    readsPassages: false,
    acceptsImages: true,
    readable: (model) => (model === "blind" ? [] : ["image/png"]),
    reply: ({ model }) =>
      Stream.suspend(() => {
        asked.push(`${name}:${model}`)
        // The first bytes of an answer may have no part.
        const said = Stream.make<ModelPart[]>({ _tag: "TextDelta", delta: name }, finish)
        return failures.get(name) ?? Stream.concat(Stream.fromChunk(Chunk.empty()), said)
      })
  })
  const one = provider("one", 8_000)
  const providers = new Map([
    ["one", one],
    ["two", provider("two", 4_000)]
  ])
  const runtime = routed({ providers, base: "one", defaultModel: "small", fallbacks }, one)
  const reply = (model: string | null) =>
    Effect.map(Effect.either(Stream.runCollect(runtime.reply(requestOf({ model })))), (answer) =>
      Either.match(answer, {
        onLeft: ({ reason }) => reason,
        onRight: (parts) =>
          Chunk.toReadonlyArray(parts).flatMap((part) => (part._tag === "TextDelta" ? [part.delta] : []))[0]
      })
    )
  return { asked, failures, reply, runtime }
}

describe("Several providers", () => {
  it.effect("are named by models; what names none is the first one's, slashes and all", () =>
    Effect.gen(function* () {
      const { asked, reply, runtime } = world()
      for (const model of [null, "two/big", "one/big", "meta/llama", "two/a/b"]) yield* reply(model)
      expect(asked).toEqual(["one:small", "two:big", "one:big", "one:meta/llama", "two:a/b"])
      expect([runtime.contextWindow, runtime.readable("two/blind"), runtime.readable(null)]).toEqual([
        4_000,
        [],
        ["image/png"]
      ])
    })
  )

  it.effect("stand in for each other where nothing was said yet", () =>
    Effect.gen(function* () {
      for (const failure of [
        error(),
        error({ reason: "RateLimited" }),
        error({ reason: "Rejected", problem: "quota_spent", retryable: false })
      ]) {
        const { asked, failures, reply } = world(["two/big"])
        // The first bytes of an answer may have no part.
        const answer = Stream.paginateChunkEffect(true, (isFirst) =>
          isFirst
            ? Effect.succeed([Chunk.empty<ModelPart>(), Option.some(false)] as const)
            : Effect.fail(failure)
        )
        failures.set("one", answer)
        expect(yield* reply(null)).toBe("two")
        expect(asked).toEqual(["one:small", "two:big"])
      }
    })
  )

  it.effect("say which model answers, before its answer, where it is not the one that was asked for", () =>
    Effect.gen(function* () {
      const { failures, runtime } = world(["two/big"])
      const parts = Effect.map(
        Stream.runCollect(runtime.reply(requestOf({ model: null }))),
        Chunk.toReadonlyArray
      )
      expect((yield* parts).map(({ _tag }) => _tag)).toEqual(["TextDelta", "Finish"])
      failures.set("one", Stream.fail(error()))
      expect(yield* parts).toEqual([
        { _tag: "Answering", model: "two/big" },
        { _tag: "TextDelta", delta: "two" },
        finish
      ])
      // It is left alone now, and not asked first.
      failures.delete("one")
      expect((yield* parts)[0]).toEqual({ _tag: "Answering", model: "two/big" })
    })
  )

  it.effect(
    "never stand in after the first part, nor where the other may be at work, nor for a refused request",
    () =>
      Effect.gen(function* () {
        const begun = Stream.concat(
          Stream.make<ModelPart[]>({ _tag: "TextDelta", delta: "Hal" }),
          Stream.fail(error({ reason: "Truncated" }))
        )
        const late = Stream.concat(
          Stream.make<ModelPart[]>({ _tag: "TextDelta", delta: "" }),
          Stream.fail(error())
        )
        const failing = (fields: Parameters<typeof error>[0]) => Stream.fail(error(fields))
        for (const failure of [
          begun,
          late,
          failing({ reason: "TimedOut" }),
          failing({ reason: "Rejected" })
        ]) {
          const { asked, failures, reply } = world(["two/big"])
          failures.set("one", failure)
          yield* reply(null)
          expect(asked).toEqual(["one:small"])
        }
      })
  )

  it.effect("are left alone for a while once they failed, and asked all the same when all of them did", () =>
    Effect.gen(function* () {
      const { asked, failures, reply } = world(["two/big"])
      failures.set("one", Stream.fail(error()))
      yield* reply(null)
      failures.delete("one")
      expect(yield* reply(null)).toBe("two")
      expect(asked).toEqual(["one:small", "two:big", "two:big"])
      failures.set("two", Stream.fail(error()))
      expect(yield* reply(null)).toBe("one")
      expect(yield* reply("two/other")).toBe("Unreachable")
    })
  )

  it.effect("fail with the last one's failure", () =>
    Effect.gen(function* () {
      const { failures, reply } = world(["two/big"])
      failures.set("one", Stream.fail(error()))
      failures.set("two", Stream.fail(error({ reason: "RateLimited" })))
      expect(yield* reply(null)).toBe("RateLimited")
    })
  )
})
