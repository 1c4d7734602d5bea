/** The search tool alone: what it takes, and how long it may take. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import type { JsonObject } from "../../../../src/domain/Text.ts"
import * as SearchTool from "../../../../src/usecases/chat/tools/SearchTool.ts"

const none = { declarations: [], call: () => Effect.die("no other tool") } as never
const turnOf = (admission: object) => ({ admission, opening: { runId: "run_1" }, masking: null }) as never

const called = (search: Parameters<typeof SearchTool.addTo>[2], input: JsonObject | null) =>
  SearchTool.addTo(turnOf({ maxSearches: 1 }), none, search).call("search_sources", input, () => Effect.void)

it.effect("A search that takes longer than ten seconds is ended, and the model is informed", () =>
  Effect.gen(function* () {
    const fiber = yield* Effect.fork(Effect.exit(called(() => Effect.never, { query: "seats" })))
    yield* TestClock.adjust("9 seconds")
    expect(yield* Fiber.poll(fiber)).toMatchObject({ _tag: "None" })
    yield* TestClock.adjust("2 seconds")
    expect(String(yield* Fiber.join(fiber))).toContain("the search took too long")
  })
)

it.effect("A query has to be a text of at most a thousand characters", () =>
  Effect.gen(function* () {
    for (const input of [null, {}, { query: 1 }, { query: " " }, { query: "x".repeat(1_001) }]) {
      const exit = yield* Effect.exit(called(() => Effect.die("searched"), input))
      expect(Exit.isFailure(exit)).toBe(true)
      expect(String(exit)).toContain("query:")
    }
    expect(yield* called(() => Effect.succeed([]), { query: " seats " })).toBe("Nothing further was found.")
  })
)

it("It is offered if the agent has sources and allows searches, and the runtime supports tools", () => {
  const model = { readsPassages: false }
  expect(SearchTool.isOffered(turnOf({ hasSources: true, maxSearches: 2 }), model)).toBe(true)
  expect(SearchTool.isOffered(turnOf({ hasSources: false, maxSearches: 2 }), model)).toBe(false)
  expect(SearchTool.isOffered(turnOf({ hasSources: true, maxSearches: 0 }), model)).toBe(false)
  expect(SearchTool.isOffered(turnOf({ hasSources: true, maxSearches: 2 }), { readsPassages: true })).toBe(
    false
  )
})
