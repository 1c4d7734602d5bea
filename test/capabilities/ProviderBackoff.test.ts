import { expect } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ProviderBackoff } from "../../src/capabilities/ProviderBackoff.ts"
import { layerSql } from "../../src/capabilities/ProviderBackoff/Sql.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

/** A process of its own, as far as pauses are concerned. */
const process = Effect.map(Layer.build(Layer.fresh(layerSql)), Context.get(ProviderBackoff))

const left = (pauses: Context.Tag.Service<typeof ProviderBackoff>, provider: string) =>
  Effect.map(pauses.left(provider), Duration.toSeconds)

eachEngineLive("Pauses of providers", (it) => {
  it.scoped("that one process was asked for are kept by every process, and by each provider alone", () =>
    Effect.gen(function* () {
      yield* reset
      const one = yield* process
      const other = yield* process
      expect(yield* left(other, "https://one.example")).toBe(0)
      yield* one.begin("https://one.example", Duration.seconds(60))
      for (const pauses of [one, other]) {
        const seconds = yield* left(pauses, "https://one.example")
        expect(seconds).toBeGreaterThan(50)
        expect(seconds).toBeLessThanOrEqual(60)
      }
      expect(yield* left(other, "https://two.example")).toBe(0)
    })
  )

  it.scoped("are not shortened by a shorter one, and are lengthened by a longer one", () =>
    Effect.gen(function* () {
      yield* reset
      const one = yield* process
      const other = yield* process
      yield* one.begin("p", Duration.seconds(60))
      yield* other.begin("p", Duration.seconds(5))
      expect(yield* left(one, "p")).toBeGreaterThan(50)
      yield* other.begin("p", Duration.seconds(600))
      expect(yield* left(one, "p")).toBeGreaterThan(500)
    })
  )

  it.scoped("end by the database's clock", () =>
    Effect.gen(function* () {
      yield* reset
      const one = yield* process
      yield* one.begin("p", Duration.millis(30))
      yield* Effect.sleep("20 millis").pipe(
        Effect.zipRight(left(one, "p")),
        Effect.repeat({ until: (seconds) => seconds === 0 }),
        Effect.timeout("10 seconds")
      )
    })
  )
})
