import { expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import { Embedder, OtherEmbedders } from "../../../src/capabilities/Embedder.ts"
import { layerOthers, modelOf } from "../../../src/capabilities/Embedder/Others.ts"
import { makeHashing } from "../../HashingEmbedder.ts"

const counting = Effect.gen(function* () {
  const made = yield* Ref.make(0)
  const gone = yield* Ref.make(0)
  const others = layerOthers((profile) =>
    profile === "unknown"
      ? Option.none()
      : Option.some(
          Layer.scoped(
            Embedder,
            Effect.acquireRelease(
              Ref.update(made, (count) => count + 1).pipe(
                Effect.zipRight(Effect.yieldNow()),
                Effect.as(Embedder.of({ ...makeHashing(), profile }))
              ),
              () => Ref.update(gone, (count) => count + 1)
            )
          )
        )
  )
  return { made, gone, others }
})

it.effect(
  "Embedders of other models are made when first asked for, once each, and closed with the layer",
  () =>
    Effect.gen(function* () {
      const { gone, made, others } = yield* counting
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { of } = Context.get(yield* Layer.build(others), OtherEmbedders)
          expect(yield* Ref.get(made)).toBe(0)
          const found = yield* Effect.all(
            Array.from({ length: 5 }, () => of("old/64")),
            { concurrency: "unbounded" }
          )
          expect(found.map(Option.map(({ profile }) => profile))).toEqual(
            Array(5).fill(Option.some("old/64"))
          )
          expect(yield* Ref.get(made)).toBe(1)
          yield* of("older/64")
          expect([yield* Ref.get(made), yield* Ref.get(gone)]).toEqual([2, 0])
        })
      )
      expect(yield* Ref.get(gone)).toBe(2)
    })
)

it.effect("There is none of a model that the configuration does not know", () =>
  Effect.gen(function* () {
    const { made, others } = yield* counting
    const { of } = Context.get(yield* Layer.build(others), OtherEmbedders)
    expect(yield* of("unknown")).toEqual(Option.none())
    expect(yield* Ref.get(made)).toBe(0)
  }).pipe(Effect.scoped)
)

it("A profile names a provider's model and its dimensions", () => {
  expect(modelOf("text-embedding-3-small/1536")).toEqual(
    Option.some({ model: "text-embedding-3-small", dimensions: 1536 })
  )
  expect(modelOf("vendor/model/256")).toEqual(Option.some({ model: "vendor/model", dimensions: 256 }))
  for (const other of ["", "model", "model/", "/64", "model/many"]) {
    expect(modelOf(other)).toEqual(Option.none())
  }
})

it.effect("One is made also when the first caller is interrupted meanwhile", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const mayEnd = yield* Deferred.make<void>()
      const others = layerOthers((profile) =>
        Option.some(
          Layer.effect(
            Embedder,
            Deferred.succeed(begun, undefined).pipe(
              Effect.zipRight(Deferred.await(mayEnd)),
              Effect.as(Embedder.of({ ...makeHashing(), profile }))
            )
          )
        )
      )
      const { of } = Context.get(yield* Layer.build(others), OtherEmbedders)
      const first = yield* Effect.fork(of("old/64"))
      yield* Deferred.await(begun)
      yield* Fiber.interruptFork(first)
      yield* Effect.yieldNow()
      yield* Deferred.succeed(mayEnd, undefined)
      yield* Fiber.await(first)
      expect(Option.map(yield* of("old/64"), ({ profile }) => profile)).toEqual(Option.some("old/64"))
    })
  )
)
