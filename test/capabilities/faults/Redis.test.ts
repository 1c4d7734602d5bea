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

/** A server that gives every command the same answer. */
const answering = (answer: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const server = Net.createServer((client) => {
        client.on("error", () => {})
        client.on(
          "data",
          (data) => void client.write(answer.repeat(data.toString().match(/^\*/gmu)?.length ?? 0))
        )
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const address = server.address()
      if (address === null || typeof address === "string") throw new Error("The server has no port.")
      return { url: `redis://127.0.0.1:${address.port}`, close: () => void server.close() }
    }),
    ({ close }) => Effect.sync(close)
  )

/** The reasons that are reported while the process connects. */
const reportedAt = (url: string) =>
  Effect.gen(function* () {
    const reasons: Array<string> = []
    yield* connect(Redacted.make(url), (reason) => Effect.sync(() => void reasons.push(reason)))
    yield* Effect.yieldNow()
    return reasons
  }).pipe(Effect.scoped)

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

  const answers: ReadonlyArray<readonly [answer: string, reason: string]> = [
    [
      "-LOADING Redis is loading the dataset in memory\r\n",
      "is loading its data (LOADING): it accepts commands when that has ended"
    ],
    ["$11\r\nloading:1\r\n\r\n", "accepts connections but no commands yet: it may be loading its data"],
    [
      "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
      "is a replica without its master (MASTERDOWN): REDIS_URL has to name the master"
    ],
    ["-READONLY You can't write.\r\n", "is a replica (READONLY): REDIS_URL has to name the master"],
    ["-OOM command not allowed\r\n", "is full (OOM): raise its maxmemory"],
    ["-NOAUTH Authentication required.\r\n", "refuses the user or the password of REDIS_URL"],
    ["-ERR of redis.internal\r\n", "does not answer at REDIS_URL"]
  ]
  for (const [answer, reason] of answers) {
    it.scopedLive(
      `that answers ${JSON.stringify(answer)} is reported once: it ${reason}`,
      () =>
        Effect.gen(function* () {
          const { url } = yield* answering(answer)
          expect(yield* reportedAt(url)).toEqual([reason])
        }),
      30_000
    )
  }

  it.scopedLive(
    "with too many connections is reported with that reason",
    () =>
      Effect.gen(function* () {
        const { port, url } = yield* server
        const admin = yield* Effect.acquireRelease(
          Effect.sync(() => new Redis({ port, host: "127.0.0.1" })),
          (opened) => Effect.sync(() => opened.disconnect())
        )
        yield* Effect.promise(() => admin.config("SET", "maxclients", "1"))
        expect(yield* reportedAt(url)).toEqual([
          "has too many connections (max number of clients reached): raise its maxclients"
        ])
      }),
    30_000
  )

  const refusals: ReadonlyArray<
    readonly [what: string, said: string, refuse: ReadonlyArray<string>, accept: ReadonlyArray<string>]
  > = [
    ["is full", "OOM", ["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]],
    ["became a replica", "READONLY", ["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]],
    [
      "refuses the command",
      "NOPERM",
      ["ACL", "SETUSER", "default", "-set", "-eval"],
      ["ACL", "SETUSER", "default", "+set", "+eval"]
    ]
  ]
  for (const [what, said, refuse, accept] of refusals) {
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
            Effect.flip(one.limiter.take("during", limit)),
            Effect.flip(one.dedupe.claim("during", "1 minute"))
          ])
          expect(refused.map(({ _tag }) => _tag)).toEqual(["RateLimiterError", "DedupeStoreError"])
          expect(refused[0].message).toContain(said)
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
