/** An answer that is cut at any of its bytes, in every interface: told once, billed once, and else the documented failure. */
import { describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { type ModelPart, ModelRuntime } from "../../../src/capabilities/ModelRuntime.ts"
import { priced } from "../../../src/capabilities/ModelRuntime/prices/Priced.ts"
import { routed } from "../../../src/capabilities/ModelRuntime/Routed.ts"
import { StreamingPost, StreamingPostError } from "../../../src/capabilities/StreamingPost.ts"
import * as ModelStep from "../../../src/usecases/chat/ModelStep.ts"
import { interfaces } from "../../servers/ModelStubWire.ts"
import { requestOf, suites, weather } from "./Harness.ts"

const text = "Grüße, 世界 👋!"
const reply = {
  text,
  calls: [{ name: "weather", arguments: '{"city":"Tromsø"}' }],
  usage: { input: 11, output: 4 }
}

/** What the provider sends, and whether the connection breaks after it; `posts` counts its requests. */
interface Wire {
  bytes: Uint8Array
  breaks: boolean
  posts: number
}

const provider = (make: (typeof suites)[number][1], wire: Wire) => {
  const exchange = Layer.succeed(StreamingPost, {
    post: () =>
      Effect.sync(() => {
        wire.posts += 1
        let isRead = wire.bytes.length === 0
        return {
          status: 200,
          headers: { "content-type": "text/event-stream" },
          read: Effect.suspend(() => {
            if (!isRead) {
              isRead = true
              return Effect.succeed([wire.bytes])
            }
            return wire.breaks
              ? Effect.fail(new StreamingPostError({ reason: "Broken", code: "ECONNRESET" }))
              : Effect.succeed(null)
          }),
          noTokensLeft: Effect.void
        }
      })
  })
  const options = { apiKey: Redacted.make("sk"), baseUrl: "http://provider.test/v1", defaultModel: "m" }
  return Effect.map(Layer.build(Layer.provide(make(options), exchange)), (context) =>
    priced(
      "p",
      options.baseUrl,
      [{ model: "p/m", input: 1, cachedInput: 1, output: 2 }],
      Context.get(context, ModelRuntime)
    )
  )
}

describe("An answer that is cut at any of its bytes", () => {
  for (const [name, make, path] of suites) {
    for (const breaks of [false, true]) {
      it.scoped(
        `of ${name} that ${breaks ? "breaks" : "ends"} there is told once, billed once, or has failed`,
        () =>
          Effect.gen(function* () {
            const { begin, end, middle } = interfaces[path].frames(reply)
            const whole = new TextEncoder().encode([...begin, ...middle, ...end].join(""))
            const wire: Wire = { bytes: whole, breaks, posts: 0 }
            const spareWire: Wire = { bytes: whole, breaks: false, posts: 0 }
            const one = yield* provider(make, wire)
            const providers = new Map([
              ["p", one],
              ["spare", yield* provider(make, spareWire)]
            ])
            let done = 0
            // A connection that breaks before the first byte is asked again, which is another promise.
            for (let cut = breaks ? 1 : 0; cut <= whole.length; cut++) {
              wire.bytes = whole.subarray(0, cut)
              wire.posts = 0
              const said: Array<string> = []
              const outcome = yield* Effect.either(
                ModelStep.run(
                  routed({ providers, base: "p", defaultModel: "m", fallbacks: ["spare/m"] }, one),
                  requestOf({ tools: [weather] }),
                  {
                    onDelta: (delta) => Effect.sync(() => void said.push(delta)),
                    onReasoning: () => Effect.void,
                    onProblem: () => undefined,
                    onAnswering: () => undefined
                  },
                  true
                )
              )
              expect([cut, wire.posts, spareWire.posts]).toEqual([cut, 1, 0])
              expect(text.startsWith(said.join(""))).toBe(true)
              if (Either.isLeft(outcome)) {
                expect([cut, outcome.left._tag, done]).toEqual([cut, "TURN_FAILED", 0])
                continue
              }
              done += 1
              const { bill, calls, text: told } = outcome.right
              expect([cut, told, said.join(""), calls.map(({ input }) => input)]).toEqual([
                cut,
                text,
                text,
                [{ city: "Tromsø" }]
              ])
              // Without the last frame an OpenAI-compatible answer is whole, and what it used is not known.
              if (bill?.cost !== null)
                expect(bill).toMatchObject({ model: "p/m", cost: 11 * 1_000 + 4 * 2_000 })
            }
            expect(done).toBeGreaterThan(0)
          })
      )
    }
  }

  it.scoped("has one finish and nothing after it", () =>
    Effect.gen(function* () {
      for (const [, make, path] of suites) {
        const { begin, end, middle } = interfaces[path].frames(reply)
        // A server that repeats its end is not paid twice.
        const bytes = new TextEncoder().encode([...begin, ...middle, ...end, ...end].join(""))
        const runtime = yield* provider(make, { bytes, breaks: false, posts: 0 })
        const parts: Array<ModelPart> = []
        yield* Stream.runForEach(runtime.reply(requestOf()), (part) =>
          Effect.sync(() => void parts.push(part))
        )
        expect(parts.filter(({ _tag }) => _tag === "Finish")).toHaveLength(1)
        expect(parts.at(-1)?._tag).toBe("Finish")
      }
    })
  )
})
