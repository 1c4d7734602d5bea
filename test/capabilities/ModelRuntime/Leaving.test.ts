/** Requests to providers that end early: interruption, deadlines and connections. */
import { expect, layer } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { ModelRuntime } from "../../../src/capabilities/ModelRuntime.ts"
import { collect, environment, failing, requestOf, runtimeOf, Stub, suites, textOf } from "./Harness.ts"

for (const [name, make] of suites) {
  layer(Layer.provideMerge(runtimeOf(make), environment), { excludeTestServices: true })(
    `${name}, leaving`,
    (it) => {
      const stub = Effect.tap(Stub, (found) => Effect.sync(found.reset))

      it.effect("interruption aborts the provider's request", () =>
        Effect.gen(function* () {
          const { script, request } = yield* stub
          const runtime = yield* ModelRuntime
          script.push({ text: "one two three four", breaks: "hang" })
          const begun = yield* Deferred.make<void>()
          const fiber = yield* Effect.fork(
            Stream.runForEach(runtime.reply(requestOf()), () => Deferred.succeed(begun, undefined))
          )
          yield* Deferred.await(begun)
          yield* Fiber.interrupt(fiber)
          const { over } = yield* Effect.promise(() => request(0))
          expect(yield* Effect.promise(() => over)).toBe(true)
        })
      )

      it.effect("interruption before the first byte aborts the provider's request", () =>
        Effect.gen(function* () {
          const { script, request } = yield* stub
          script.push({ silent: "hang" })
          const fiber = yield* Effect.fork(collect())
          const { over } = yield* Effect.promise(() => request(0))
          yield* Fiber.interrupt(fiber)
          expect(yield* Effect.promise(() => over)).toBe(true)
        })
      )

      it.effect("a finished answer leaves its connection for the next", () =>
        Effect.gen(function* () {
          const { request, requests } = yield* stub
          for (let count = 0; count < 6; count++) {
            yield* collect()
            const { over } = yield* Effect.promise(() => request(count))
            yield* Effect.promise(() => over)
            // The driver looks at a connection once more before it counts as idle, and has to be given its turns.
            for (let turn = 0; turn < 20; turn++) yield* Effect.sleep("1 millis")
          }
          expect(requests.some((sent) => sent.aborted())).toBe(false)
          // The pool may open a second one for a request that comes before the first connection is quite idle.
          expect(new Set(requests.map(({ port }) => port)).size).toBeLessThanOrEqual(2)
        })
      )
    }
  )

  const hasty = runtimeOf(make, { responseTimeout: "150 millis", idleTimeout: "150 millis" })
  layer(Layer.provideMerge(hasty, environment), { excludeTestServices: true })(`${name}, deadlines`, (it) => {
    it.effect("no first byte in time is a failure, and aborts the request", () =>
      Effect.gen(function* () {
        const { script, request } = yield* Stub
        script.push({ silent: "hang" })
        expect((yield* failing()).error).toMatchObject({ reason: "TimedOut", retryable: false })
        const { over } = yield* Effect.promise(() => request(0))
        expect(yield* Effect.promise(() => over)).toBe(true)
      })
    )

    it.effect("silence in the middle is a failure after the text that came", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        script.push({ text: "one two three four", breaks: "hang" })
        const { parts, error } = yield* failing()
        expect(textOf(parts)).toBe("one two")
        expect(error).toMatchObject({ reason: "TimedOut", retryable: false })
      })
    )

    it.effect("an answer may take longer than either deadline as long as it goes on", () =>
      Effect.gen(function* () {
        const { script } = yield* Stub
        script.push({ text: "a b c d e f g h", gap: 40 })
        expect(textOf(yield* collect())).toBe("a b c d e f g h")
      })
    )
  })
}
