/** The contract of {@link ArtifactStore}, run on every backend. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { ArtifactStore, type ArtifactStoreError, refOf } from "../../src/capabilities/ArtifactStore.ts"
import { ArtifactRef } from "../../src/domain/knowledge/Source.ts"

const hello = new TextEncoder().encode("hello")
const helloRef = ArtifactRef.make("sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")

/** Runs the suite; each test builds the layer anew. */
export const artifactStoreSuite = (name: string, layer: Layer.Layer<ArtifactStore, ArtifactStoreError>) => {
  const test = (
    title: string,
    body: (store: ArtifactStore["Type"]) => Effect.Effect<void, ArtifactStoreError>
  ) => it.live(title, () => Effect.flatMap(ArtifactStore, body).pipe(Effect.provide(layer)))

  describe(`artifacts (${name})`, () => {
    test("are addressed by the SHA-256 of their bytes", (store) =>
      Effect.gen(function* () {
        expect(yield* store.put(hello)).toBe(helloRef)
        expect(Option.getOrThrow(yield* store.get(helloRef))).toEqual(hello)
        yield* store.remove(helloRef)
      }))

    test("come back byte for byte, the empty one too", (store) =>
      Effect.promise(() =>
        FastCheck.assert(
          FastCheck.asyncProperty(FastCheck.uint8Array({ maxLength: 2_000 }), (bytes) =>
            Effect.runPromise(
              Effect.gen(function* () {
                const ref = yield* store.put(bytes)
                expect([...Option.getOrThrow(yield* store.get(ref))]).toEqual([...bytes])
                yield* store.remove(ref)
                expect(Option.isNone(yield* store.get(ref))).toBe(true)
              })
            )
          ),
          { numRuns: 25, examples: [[new Uint8Array(0)]] }
        )
      ))

    test("may be large", (store) =>
      Effect.gen(function* () {
        const bytes = new Uint8Array(8 * 1_024 * 1_024).map((_, at) => at % 251)
        const ref = yield* store.put(bytes)
        expect(Buffer.compare(Option.getOrThrow(yield* store.get(ref)), bytes)).toBe(0)
        yield* store.remove(ref)
      }))

    test("that are stored again change nothing", (store) =>
      Effect.gen(function* () {
        expect(yield* store.put(hello)).toBe(yield* store.put(hello))
        expect(Option.getOrThrow(yield* store.get(helloRef))).toEqual(hello)
        yield* store.remove(helloRef)
        expect(Option.isNone(yield* store.get(helloRef))).toBe(true)
      }))

    test("may be stored many at a time, the same and different ones", (store) =>
      Effect.gen(function* () {
        const all = Array.from({ length: 40 }, (_, at) => new TextEncoder().encode(`artifact ${at % 10}`))
        const refs = yield* Effect.forEach(all, store.put, { concurrency: "unbounded" })
        expect(new Set(refs).size).toBe(10)
        const back = yield* Effect.forEach(refs, store.get, { concurrency: "unbounded" })
        expect(back.map((bytes) => new TextDecoder().decode(Option.getOrThrow(bytes)))).toEqual(
          all.map((bytes) => new TextDecoder().decode(bytes))
        )
        yield* Effect.forEach(refs, store.remove, { concurrency: "unbounded" })
      }))

    test("may come as a stream, and are kept only when they are stored", (store) =>
      Effect.gen(function* () {
        const piece = new Uint8Array(64 * 1_024).map((_, at) => at % 253)
        const whole = Buffer.concat(Array.from({ length: 80 }, () => piece))
        const stream = Stream.range(1, 80).pipe(Stream.map(() => piece))
        const staged = yield* Effect.scoped(
          Effect.tap(store.stage(stream), ({ ref, store: keep }) =>
            Effect.gen(function* () {
              expect(Option.isNone(yield* store.get(ref))).toBe(true)
              yield* keep
            })
          )
        )
        expect([staged.ref, staged.size]).toEqual([refOf(whole), whole.length])
        expect(Buffer.compare(Option.getOrThrow(yield* store.get(staged.ref)), whole)).toBe(0)
        // The same bytes again, beside those that are there.
        yield* Effect.scoped(Effect.flatMap(store.stage(stream), ({ store: keep }) => keep))
        expect(Option.isSome(yield* store.get(staged.ref))).toBe(true)
        yield* store.remove(staged.ref)
        yield* Effect.scoped(store.stage(stream))
        expect(Option.isNone(yield* store.get(staged.ref))).toBe(true)
      }))

    test("of a stream that breaks off are not kept, and its failure is told", (store) =>
      Effect.gen(function* () {
        const broken = Stream.concat(Stream.make(hello), Stream.fail("cut off" as const))
        const outcome = yield* Effect.either(Effect.scoped(store.stage(broken)))
        expect(outcome).toEqual(Either.left("cut off"))
        expect(Option.isNone(yield* store.get(helloRef))).toBe(true)
        // The empty one is one too.
        const none = yield* Effect.scoped(Effect.tap(store.stage(Stream.empty), ({ store: keep }) => keep))
        expect(Option.getOrThrow(yield* store.get(none.ref)).length).toBe(0)
        yield* store.remove(none.ref)
      }))

    test("that are not there are none, and removing them succeeds", (store) =>
      Effect.gen(function* () {
        const missing = ArtifactRef.make(`sha256:${"0".repeat(64)}`)
        expect(Option.isNone(yield* store.get(missing))).toBe(true)
        yield* store.remove(missing)
      }))

    test("do not change when the caller goes on with its own bytes", (store) =>
      Effect.gen(function* () {
        const bytes = Uint8Array.from(hello)
        const ref = yield* store.put(bytes)
        bytes.fill(0)
        Option.getOrThrow(yield* store.get(ref)).fill(0)
        expect(Option.getOrThrow(yield* store.get(ref))).toEqual(hello)
        yield* store.remove(ref)
      }))
  })
}
