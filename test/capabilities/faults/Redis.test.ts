/** Redis that refuses commands or falls silent: the service goes on with it by itself as soon as it can. */
import { expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import { Redis } from "ioredis"
import * as Net from "node:net"
import { backends, connect } from "../../../src/app/RedisBackends.ts"
import { DedupeStore } from "../../../src/capabilities/DedupeStore.ts"
import { RateLimiter } from "../../../src/capabilities/RateLimiter.ts"
import { Realtime } from "../../../src/capabilities/Realtime.ts"
import { ConversationId } from "../../../src/domain/Ids.ts"
import { startRedis, withRedis } from "../../servers/RedisServer.ts"

const typing = { _tag: "Typing", conversationId: ConversationId.make("cnv_1") } as const

/** A relay. `silence` keeps the present connections open without passing anything on, as a host without power does. */
const relayTo = (port: number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const sockets = new Set<Net.Socket>()
      let generation = 0
      const server = Net.createServer((client) => {
        const own = generation
        const upstream = Net.connect({ host: "127.0.0.1", port })
        for (const [from, to] of [
          [client, upstream],
          [upstream, client]
        ] as const) {
          sockets.add(from)
          from.on("error", () => {})
          from.on("data", (data) => void (own === generation && to.write(data)))
          from.on("close", () => void (own === generation && to.destroy()))
        }
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const address = server.address()
      if (address === null || typeof address === "string") throw new Error("The relay has no port.")
      return {
        url: `redis://127.0.0.1:${address.port}`,
        silence: Effect.sync(() => void generation++),
        close: () => {
          for (const socket of sockets) socket.destroy()
          server.close()
        }
      }
    }),
    ({ close }) => Effect.sync(close)
  )

const processOn = (url: string) =>
  Effect.gen(function* () {
    const redis = yield* connect(Redacted.make(url), () => Effect.void)
    const built = yield* Layer.build(backends(redis))
    return {
      dedupe: Context.get(built, DedupeStore),
      limiter: Context.get(built, RateLimiter),
      realtime: Context.get(built, Realtime)
    }
  })

const server = Effect.acquireRelease(
  Effect.promise(() => startRedis()),
  ({ stop }) => Effect.promise(stop)
)

const every = Schedule.spaced("100 millis")

type Process = Effect.Effect.Success<ReturnType<typeof processOn>>

/** Publishes at `from` until `to` hears of it. */
const hears = (from: Process, to: Process) =>
  Effect.gen(function* () {
    const heard = yield* to.realtime.subscribe(typing.conversationId)
    yield* Effect.raceFirst(
      Effect.zipRight(Effect.repeat(from.realtime.publish(typing), every), Effect.never),
      Effect.repeat(Queue.take(heard), { until: ({ _tag }) => _tag === "Typing" })
    )
  }).pipe(Effect.scoped)

withRedis("Redis", () => {
  it.scopedLive(
    "whose connections fell silent is reached by new ones within seconds",
    () =>
      Effect.gen(function* () {
        const { port, url } = yield* server
        const relay = yield* relayTo(port)
        const one = yield* processOn(relay.url)
        yield* one.dedupe.claim("before", "1 minute")
        yield* relay.silence
        const claimed = yield* one.dedupe.claim("after", "1 minute").pipe(
          // As callers do: the key may have been claimed although the answer was lost.
          Effect.tapError(() => Effect.ignore(one.dedupe.release("after"))),
          Effect.retry(every),
          Effect.timeoutOption("10 seconds")
        )
        expect(claimed).toMatchObject({ _tag: "Some", value: true })
        const direct = yield* processOn(url)
        expect(yield* direct.dedupe.claim("after", "1 minute")).toBe(false)
      }),
    60_000
  )

  it.scopedLive(
    "whose subscription fell silent is heard again within half a minute",
    () =>
      Effect.gen(function* () {
        const { port, url } = yield* server
        const relay = yield* relayTo(port)
        const one = yield* processOn(url)
        const two = yield* processOn(relay.url)
        yield* Effect.timeout(hears(one, two), "10 seconds")
        yield* relay.silence
        expect(yield* Effect.timeoutOption(hears(one, two), "30 seconds")).toMatchObject({ _tag: "Some" })
      }),
    90_000
  )

  const refusals: ReadonlyArray<
    readonly [what: string, refuse: ReadonlyArray<string>, accept: ReadonlyArray<string>]
  > = [
    ["is full", ["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]],
    ["became a replica", ["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]],
    [
      "refuses the command",
      ["ACL", "SETUSER", "default", "-set", "-eval"],
      ["ACL", "SETUSER", "default", "+set", "+eval"]
    ]
  ]
  for (const [what, refuse, accept] of refusals) {
    it.scopedLive(
      `that ${what} fails keys and counts, and answers again when it accepts them`,
      () =>
        Effect.gen(function* () {
          const { port, url } = yield* server
          const one = yield* processOn(url)
          const admin = yield* Effect.acquireRelease(
            Effect.sync(() => new Redis({ port, host: "127.0.0.1" })),
            (opened) => Effect.sync(() => opened.disconnect())
          )
          const call = ([name = "", ...args]: ReadonlyArray<string>) =>
            Effect.promise(() => admin.call(name, ...args))
          const limit = { requests: 5, window: 60 }
          expect(yield* one.dedupe.claim("before", "1 minute")).toBe(true)
          yield* call(refuse)
          const refused = yield* Effect.all([
            Effect.flip(one.dedupe.claim("during", "1 minute")),
            Effect.flip(one.limiter.take("during", limit))
          ])
          expect(refused.map(({ _tag }) => _tag)).toEqual(["DedupeStoreError", "RateLimiterError"])
          yield* call(accept)
          const claimed = one.dedupe.claim("after", "1 minute").pipe(Effect.retry(every))
          expect(yield* Effect.timeout(claimed, "10 seconds")).toBe(true)
          const taken = one.limiter.take("after", limit).pipe(Effect.retry(every))
          expect(yield* Effect.timeout(taken, "10 seconds")).toMatchObject({ granted: true })
        }),
      60_000
    )
  }
})
