import { layer, type Vitest } from "@effect/vitest"
import * as PgClient from "@effect/sql-pg/PgClient"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import { expect } from "vitest"
import { Realtime, type Signal } from "../../src/capabilities/Realtime.ts"
import * as Memory from "../../src/capabilities/Realtime/Memory.ts"
import * as Postgres from "../../src/capabilities/Realtime/Postgres.ts"
import { ConversationId, RunId } from "../../src/domain/Ids.ts"
import * as RedisBackends from "../../src/app/RedisBackends.ts"
import * as InRedis from "../../src/capabilities/Realtime/Redis.ts"
import * as Redacted from "effect/Redacted"
import { redisUrl, startRedis, withRedis } from "../servers/RedisServer.ts"
import { eachEngineLive } from "../TestDatabase.ts"
import { restoreIt } from "../setup.ts"

const connectRedis = (url: Redacted.Redacted) => Effect.orDie(RedisBackends.connect(url))

const one = ConversationId.make("cnv_1")
const other = ConversationId.make("cnv_2")
const changed = (conversationId: ConversationId, run: string | null = null): Signal => ({
  _tag: "Changed",
  conversationId,
  runId: run === null ? null : RunId.make(run)
})

type Service = Context.Tag.Service<Realtime>

/** A process of its own, as far as signals are concerned. */
const process = <R>(backend: Layer.Layer<Realtime, never, R>) =>
  Effect.map(Layer.build(Layer.fresh(backend)), (built) => Context.get(built, Realtime))

/** Everything up to `last`; what a listener says when it begins is not counted. */
const upTo = (queue: Queue.Dequeue<Signal>, last: Signal) =>
  Effect.gen(function* () {
    const heard: Array<Signal> = []
    for (;;) {
      const signal = yield* Queue.take(queue)
      if (signal._tag !== "Changed" || signal.runId !== null) heard.push(signal)
      if (JSON.stringify(signal) === JSON.stringify(last)) return heard
    }
  }).pipe(Effect.timeout("20 seconds"))

/** Publishes until `to` has heard: from then on the two processes are connected. */
const connect = (from: Service, to: Service) =>
  Effect.gen(function* () {
    const conversation = ConversationId.make("cnv_connect")
    const queue = yield* to.subscribe(conversation)
    const signal = changed(conversation, "run_connect")
    const heard = upTo(queue, signal)
    const ask = from.publish(signal).pipe(Effect.repeat(Schedule.spaced("50 millis")))
    yield* Effect.raceFirst(Effect.zipRight(ask, Effect.never), heard)
  }).pipe(Effect.scoped)

/** What every backend promises to the subscribers of one process. */
const suite = <R>(it: Vitest.MethodsNonLive<R, true>, backend: Layer.Layer<Realtime, never, R>) => {
  it.scoped("tells every subscriber of the conversation, in order, and nobody else", () =>
    Effect.gen(function* () {
      const realtime = yield* process(backend)
      const first = yield* realtime.subscribe(one)
      const second = yield* realtime.subscribe(one)
      const stranger = yield* realtime.subscribe(other)
      const told: ReadonlyArray<Signal> = [
        { _tag: "Typing", conversationId: one },
        changed(one, "run_1"),
        changed(one, "run_2")
      ]
      for (const signal of told) yield* realtime.publish(signal)
      yield* realtime.publish(changed(other, "run_3"))
      expect(yield* upTo(first, changed(one, "run_2"))).toEqual(told)
      expect(yield* upTo(second, changed(one, "run_2"))).toEqual(told)
      expect(yield* upTo(stranger, changed(other, "run_3"))).toEqual([changed(other, "run_3")])
    })
  )

  it.scoped("never waits for a slow reader, who loses the oldest signals", () =>
    Effect.gen(function* () {
      const realtime = yield* process(backend)
      const slow = yield* realtime.subscribe(one)
      for (let run = 1; run <= 10_000; run++) yield* realtime.publish(changed(one, `run_${run}`))
      const left = Chunk.toReadonlyArray(yield* Queue.takeAll(slow))
      expect(left.length).toBeLessThanOrEqual(64)
      expect(left).toContainEqual(changed(one, "run_10000"))
      expect(left).not.toContainEqual(changed(one, "run_1"))
    })
  )

  it.scoped("forgets a subscriber whose scope has closed", () =>
    Effect.gen(function* () {
      const realtime = yield* process(backend)
      const gone = yield* Effect.scoped(realtime.subscribe(one))
      yield* realtime.publish(changed(one))
      expect(yield* Queue.isShutdown(gone)).toBe(true)
    })
  )
}

layer(Layer.empty, { excludeTestServices: true })("Realtime in memory", (it) => {
  suite(it, Memory.layerMemory)
  restoreIt()
})

/** What every backend promises between processes. */
const shared = <R>(it: Vitest.MethodsNonLive<R, true>, backend: Layer.Layer<Realtime, never, R>) => {
  it.scoped("reaches the subscribers of every process once, its own at once", () =>
    Effect.gen(function* () {
      const here = yield* process(backend)
      const there = yield* process(backend)
      yield* connect(here, there)
      yield* connect(there, here)
      const mine = yield* here.subscribe(one)
      const theirs = yield* there.subscribe(one)
      const told = Array.from({ length: 40 }, (_, run) => changed(one, `run_${run}`))
      for (const signal of told) yield* here.publish(signal)
      expect(Chunk.toReadonlyArray(yield* Queue.takeAll(mine))).toEqual(told)
      expect(yield* upTo(theirs, changed(one, "run_39"))).toEqual(told)
      yield* there.publish(changed(one, "run_last"))
      expect(yield* upTo(mine, changed(one, "run_last"))).toEqual([changed(one, "run_last")])
    })
  )

  it.scoped("has everybody look at the database when it begins to listen", () =>
    Effect.gen(function* () {
      const realtime = yield* process(backend)
      const mine = yield* realtime.subscribe(one)
      expect(yield* Queue.take(mine).pipe(Effect.timeout("20 seconds"))).toEqual(changed(one))
    })
  )
}

eachEngineLive("Realtime by LISTEN and NOTIFY", (it) => {
  suite(it, Postgres.layerPostgres)
  shared(it, Postgres.layerPostgres)

  it.scoped("ignores what others write into its channel", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const realtime = yield* process(Postgres.layerPostgres)
      const mine = yield* realtime.subscribe(one)
      // What others write into the channel is none of ours.
      yield* sql`select pg_notify('spoke_realtime', '{"from":"x","signal":{"_tag":"Nonsense"}}')`
      yield* sql`select pg_notify('spoke_realtime', 'no json')`
      yield* realtime.publish(changed(one, "run_1"))
      expect(yield* upTo(mine, changed(one, "run_1"))).toEqual([changed(one, "run_1")])
    })
  )
})

withRedis("Realtime by Redis", () =>
  layer(Layer.empty, { excludeTestServices: true })("Realtime by Redis", (it) => {
    const overRedis = Layer.unwrapScoped(
      Effect.map(Effect.flatMap(redisUrl, connectRedis), (redis) => InRedis.layerRedis(redis))
    )
    suite(it, overRedis)
    shared(it, overRedis)

    it.scoped("ignores what others write into its channel", () =>
      Effect.gen(function* () {
        const realtime = yield* process(overRedis)
        const redis = yield* Effect.flatMap(redisUrl, connectRedis)
        const mine = yield* realtime.subscribe(one)
        yield* Effect.promise(() => redis.publish("{spoke}:realtime", "no json"))
        yield* realtime.publish(changed(one, "run_1"))
        expect(yield* upTo(mine, changed(one, "run_1"))).toEqual([changed(one, "run_1")])
      })
    )

    it.scoped("has everybody look at the database when Redis was away", () =>
      Effect.gen(function* () {
        const server = yield* Effect.promise(() => startRedis())
        const redis = yield* connectRedis(Redacted.make(server.url))
        const realtime = yield* process(InRedis.layerRedis(redis))
        const mine = yield* realtime.subscribe(one)
        expect(yield* Queue.take(mine).pipe(Effect.timeout("20 seconds"))).toEqual(changed(one))
        yield* Effect.promise(server.stop)
        yield* realtime.publish(changed(one, "run_1"))
        expect(yield* Queue.take(mine)).toEqual(changed(one, "run_1"))
        yield* Effect.acquireRelease(
          Effect.promise(() => startRedis(server.port)),
          ({ stop }) => Effect.promise(stop)
        )
        expect(yield* Queue.take(mine).pipe(Effect.timeout("20 seconds"))).toEqual(changed(one))
      })
    )
    restoreIt()
  })
)
