/** How a turn learns from long texts, and what its checker is shown. */
import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Claim } from "../../../../src/capabilities/GroundingChecker.ts"
import { inSlices } from "../../../../src/concurrency/InSlices.ts"
import { MaskingInput } from "../../../../src/domain/agents/Masking.ts"
import * as MaskedTurn from "../../../../src/usecases/chat/masking/MaskedTurn.ts"
import { Masking } from "../../../../src/usecases/chat/masking/Masking.ts"
import * as Prompt from "../../../../src/usecases/chat/Prompt.ts"
import { request } from "../TurnHarness.ts"

const address = "canary.person@mail.example"

/** A clock by which each step takes as long as a slice, so that there is a pause after each. */
const slowClock = () => {
  let nanos = 0n
  return Object.assign(Clock.make(), { currentTimeNanos: Effect.sync(() => (nanos += 5_000_000n)) })
}

describe("Masking in a turn", () => {
  it.effect("does not block other turns while it reads a long history or a long context", () =>
    Effect.gen(function* () {
      const long = "1 ".repeat(8_000)
      const masking = new Masking(Schema.decodeUnknownSync(MaskingInput)({}))
      let others = 0
      let other: NodeJS.Immediate
      const count = () => {
        others++
        other = setImmediate(count)
      }
      other = setImmediate(count)
      const history = [{ role: "user" as const, content: long.repeat(4) }]
      yield* MaskedTurn.learn({ masking, request: request() }, history)
      const afterHistory = others
      yield* MaskedTurn.learn({ masking, request: request({ message: long, context: { long } }) }, [])
      clearImmediate(other)
      expect(afterHistory).toBeGreaterThan(10)
      expect(others).toBeGreaterThan(afterHistory + 5)
    }).pipe(Effect.withClock(slowClock()))
  )

  it.live("does not block other turns while the prompt of a long history is masked", () =>
    Effect.gen(function* () {
      const masking = new Masking(Schema.decodeUnknownSync(MaskingInput)({}))
      let others = 0
      let other = setImmediate(function count() {
        others++
        other = setImmediate(count)
      })
      const content = `Write to ${address}, or call 555 123 4567, within 14 days. `.repeat(400)
      const { content: messages } = yield* inSlices(
        Prompt.render({
          instructions: "",
          style: { length: "default", tone: "default" },
          grounding: null,
          passages: [],
          context: undefined,
          history: Array.from({ length: 20 }, () => ({ role: "user" as const, content })),
          message: "And now?",
          masking,
          contextWindow: 1_000_000,
          now: DateTime.unsafeMake(0),
          runId: "run_1"
        })
      )
      clearImmediate(other)
      expect(JSON.stringify(messages)).not.toContain(address)
      expect(messages).toHaveLength(22)
      expect(others).toBeGreaterThanOrEqual(10)
    })
  )

  it.effect("shows a checker each passage once, with the placeholders of the statements", () =>
    Effect.gen(function* () {
      for (const sources of [false, true]) {
        const masking = new Masking(Schema.decodeUnknownSync(MaskingInput)({ sources }))
        masking.mask(address)
        const passages = [1, 2].map((index) => ({ index, title: "Who", text: `${address}. ${index}` }))
        const claims = [1, 2, 3].map(() => ({ text: `An ${address}-Adresse`, passages }))
        const seen: Array<Claim> = []
        const span = { index: 1, text: "[email-1]" }
        const { verdicts } = yield* MaskedTurn.checker(
          { masking },
          {
            name: "test",
            check: (given) =>
              Effect.sync(() => {
                seen.push(...given)
                const verdict = { supported: "yes" as const, spans: [span], reasons: [] }
                return { verdicts: given.map(() => verdict), inputTokens: 0, outputTokens: 0 }
              })
          }
        ).check(claims)
        expect(new Set(seen.flatMap((claim) => claim.passages)).size).toBe(2)
        expect(seen[2]).toEqual({
          text: "An [email-1]-Adresse",
          passages: [1, 2].map((index) => ({ index, title: "Who", text: `[email-1]. ${index}` }))
        })
        expect(verdicts[2]?.spans).toEqual([{ index: 1, text: address }])
      }
    })
  )
})
