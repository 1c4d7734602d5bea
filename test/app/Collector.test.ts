/** Telemetry while its collector fails, and the back-off afterwards. */
import { describe, expect, it } from "@effect/vitest"
import * as Otlp from "@effect/opentelemetry/Otlp"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/TestClock"
import { layer } from "../../src/app/telemetry/Collector.ts"

/** A collector that answers as told, or `"never"`; what it was sent, batch by batch. */
const world = () => {
  const state: { status: number | "never"; sent: Array<string>; taken: string } = {
    status: 200,
    sent: [],
    taken: ""
  }
  const inner = HttpClient.make((request) =>
    Effect.suspend(() => {
      const text = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : ""
      state.sent.push(text)
      if (state.status === 200) state.taken += text
      return state.status === "never"
        ? Effect.never
        : Effect.succeed(HttpClientResponse.fromWeb(request, new Response(null, { status: state.status })))
    })
  )
  const client = layer.pipe(Layer.provide(Layer.succeed(HttpClient.HttpClient, inner)))
  return { client, state }
}

const post = Effect.flatMap(HttpClient.HttpClient, (client) => client.post("http://collector/v1/traces"))

describe("A collector that fails", () => {
  it.effect(
    "loses nothing when it is away for a moment: a batch is sent again after one and after three seconds",
    () => {
      const { client, state } = world()
      return Effect.gen(function* () {
        state.status = 503
        const batch = yield* Effect.fork(post)
        yield* TestClock.adjust("1 second")
        expect(state.sent).toHaveLength(2)
        state.status = 200
        yield* TestClock.adjust("2 seconds")
        expect((yield* Fiber.join(batch)).status).toBe(200)
        expect(state.sent).toHaveLength(3)
      }).pipe(Effect.provide(client))
    }
  )

  it.effect(
    "is left alone for 2 seconds, then for longer, at most for 30, and gets the next batch then",
    () => {
      const { client, state } = world()
      /** Seconds until it is asked again. */
      const rest = Effect.gen(function* () {
        const before = state.sent.length
        for (let seconds = 0; ; seconds++) {
          const batch = yield* Effect.fork(post)
          yield* TestClock.adjust(0)
          if (state.sent.length > before) {
            yield* TestClock.adjust("3 seconds")
            yield* Fiber.join(batch)
            return seconds
          }
          yield* TestClock.adjust("1 second")
        }
      })
      return Effect.gen(function* () {
        state.status = 500
        expect(yield* Effect.replicateEffect(rest, 8)).toEqual([0, 2, 4, 8, 16, 30, 30, 30])
        state.status = 200
        expect(yield* rest).toBe(30)
        state.status = 500
        expect(yield* rest).toBe(0)
        expect(yield* rest).toBe(2)
      }).pipe(Effect.provide(client))
    }
  )

  it.effect(
    "is asked nothing again about a batch that it will never take, and gets the next one at once",
    () => {
      const { client, state } = world()
      return Effect.gen(function* () {
        state.status = 400
        yield* post
        yield* post
        expect(state.sent).toHaveLength(2)
      }).pipe(Effect.provide(client))
    }
  )

  it.effect("holds at most four batches when it does not answer", () => {
    const { client, state } = world()
    return Effect.gen(function* () {
      state.status = "never"
      const held = yield* Effect.forkAll(Array.from({ length: 4 }, () => post))
      yield* TestClock.adjust(0)
      expect((yield* post).status).toBe(204)
      expect(state.sent).toHaveLength(4)
      yield* Fiber.interrupt(held)
      state.status = 200
      expect((yield* post).status).toBe(200)
    }).pipe(Effect.provide(client))
  })

  it.effect("that was away for half a minute gets what happens after the next quarter", () => {
    const { client, state } = world()
    return Effect.gen(function* () {
      for (let second = 0; second < 90; second++) {
        state.status = second >= 5 && second < 35 ? 503 : 200
        yield* Effect.void.pipe(Effect.withSpan(`second ${second}`))
        yield* TestClock.adjust("1 second")
      }
      const seconds = Array.from({ length: 90 }, (_, second) => second)
      const missing = seconds.filter((second) => !state.taken.includes(`"second ${second}"`))
      expect(missing.filter((second) => second < 4 || (second > 50 && second < 88))).toEqual([])
      expect(missing.length).toBeLessThan(50)
    }).pipe(
      Effect.provide(
        Otlp.layerJson({
          baseUrl: "http://collector",
          resource: { serviceName: "tests", serviceVersion: "1" },
          tracerExportInterval: "2 seconds"
        }).pipe(Layer.provide(client))
      )
    )
  })
})
