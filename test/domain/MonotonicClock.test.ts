/** Durations do not change when the machine's clock is set back or forward by hours. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect, it as plain } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { layerScrypt } from "../../src/capabilities/Credentials/Scrypt.ts"
import { KeyStore } from "../../src/capabilities/KeyStore.ts"
import { layerSql } from "../../src/capabilities/KeyStore/Sql.ts"
import { RateLimiter } from "../../src/capabilities/RateLimiter.ts"
import { layerMemory } from "../../src/capabilities/RateLimiter/Memory.ts"
import { monotonicMillis } from "../../src/domain/MonotonicClock.ts"
import { AgentStore } from "../../src/store/agents/Agents.ts"
import { ApiKeyStore } from "../../src/store/accounts/ApiKeys.ts"
import { Keys } from "../../src/usecases/accounts/Keys.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const hours = 3 * 3_600_000

/** The machine's clock, and what sets it by so many milliseconds. */
const settable = () => {
  const real = Clock.make()
  let by = 0
  const unsafeCurrentTimeMillis = () => real.unsafeCurrentTimeMillis() + by
  const clock: Clock.Clock = {
    [Clock.ClockTypeId]: Clock.ClockTypeId,
    unsafeCurrentTimeMillis,
    unsafeCurrentTimeNanos: () => real.unsafeCurrentTimeNanos(),
    currentTimeNanos: real.currentTimeNanos,
    currentTimeMillis: Effect.sync(unsafeCurrentTimeMillis),
    sleep: (duration) => real.sleep(duration)
  }
  const set = (millis: number) =>
    Effect.sync(() => {
      by = millis
    })
  return { clock, set }
}

plain.live("A clock that nobody sets goes on evenly when the machine's is set", () => {
  const { clock, set } = settable()
  return Effect.gen(function* () {
    const before = yield* monotonicMillis
    yield* set(-hours)
    yield* Effect.sleep("30 millis")
    const passed = (yield* monotonicMillis) - before
    expect(passed).toBeGreaterThanOrEqual(29)
    yield* set(hours)
    expect((yield* monotonicMillis) - before).toBeLessThan(hours / 2)
  }).pipe(Effect.withClock(clock))
})

plain.live.each([-hours, hours])("A rate limit counts its window, the clock set by %i ms", (by) => {
  const { clock, set } = settable()
  return Effect.gen(function* () {
    const { take } = Context.get(yield* Layer.build(layerMemory), RateLimiter)
    // Parts of a window are the limiter's own: it is over after one and a part.
    const limit = { requests: 1, window: 1 }
    expect((yield* take("key", limit)).granted).toBe(true)
    yield* set(by)
    expect((yield* take("key", limit)).granted).toBe(false)
    yield* Effect.sleep("1500 millis")
    expect((yield* take("key", limit)).granted).toBe(true)
  }).pipe(Effect.scoped, Effect.withClock(clock))
})

eachEngineLive("A key that is remembered", (it) => {
  it.scoped("is looked up again within a second, though the clock was set back by hours", () => {
    const { clock, set } = settable()
    return Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const scope = yield* Fixtures.agent()
      const base = layerSql.pipe(Layer.provideMerge(layerScrypt({ log2N: 10, r: 8, p: 1 })))
      const built = yield* Layer.build(
        Layer.provideMerge(
          Keys.Default,
          Layer.merge(base, Layer.mergeAll(AgentStore.Default, ApiKeyStore.Default))
        )
      )
      const keyStore = Context.get(built, KeyStore)
      const made = Context.get(built, Keys).create(scope, scope.agentId, {
        name: "Shop",
        permissions: ["chat"]
      })
      const { key, secret } = yield* made
      expect(Option.isSome(yield* keyStore.find(secret))).toBe(true)
      yield* set(-hours)
      // By another process, which sent no signal.
      yield* sql`update api_keys set status = 'REVOKED' where id = ${key.id}`
      yield* Effect.sleep("1 second")
      expect(Option.isNone(yield* keyStore.find(secret))).toBe(true)
    }).pipe(Effect.withClock(clock))
  })
})
