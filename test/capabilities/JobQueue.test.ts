import * as PgClient from "@effect/sql-pg/PgClient"
import { expect, it as plain } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Queue from "effect/Queue"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import {
  JobFailure,
  JobQueue,
  policies,
  type QueueJob,
  type QueuePolicy
} from "../../src/capabilities/JobQueue.ts"
import { layerTableWith } from "../../src/capabilities/JobQueue/Table.ts"
import { currentOwner, withOwner } from "../../src/concurrency/CurrentOwner.ts"
import { bundle, discard, run } from "../Children.ts"
import { eachEngineLive, reset, serverUrl } from "../TestDatabase.ts"

const policy: QueuePolicy = {
  attempts: 3,
  backoff: "100 millis",
  keepCompleted: 5,
  keepFailed: 3,
  // A busy machine must not end it: only the tests of its end have a short one.
  lease: "30 seconds",
  drain: "300 millis"
}

const everywhere = (given: QueuePolicy) => ({ policies: Record.map(policies, () => given) })
const quick = everywhere(policy)
const shortLease = everywhere({ ...policy, lease: "900 millis" })

type Options = Parameters<typeof layerTableWith>[0]

interface Row {
  readonly state: string
  readonly attempts: number
  readonly last_error: string | null
  readonly errors: ReadonlyArray<{ readonly attempt: number; readonly at: string; readonly message: string }>
  readonly run_at: Date
  readonly n: number
}

const rows = Effect.flatMap(
  PgClient.PgClient,
  (sql) => sql<Row>`
    select state, attempts, last_error, errors, run_at, (payload->>'n')::int as n from queue_jobs order by seq`
)

const until = <E, R>(condition: Effect.Effect<boolean, E, R>) =>
  condition.pipe(
    Effect.repeat({ until: (met) => met, schedule: Schedule.spaced("20 millis") }),
    Effect.timeoutFail({ duration: "10 seconds", onTimeout: () => "It did not come to pass." as const })
  )

const states = Effect.map(rows, (all) => all.map(({ state }) => state))
const allAre = (state: string) => until(Effect.map(states, (all) => all.every((each) => each === state)))

/** A handler that puts down what it is given. */
const recorder = Effect.map(Queue.unbounded<QueueJob>(), (seen) => ({
  seen,
  handler: (job: QueueJob) => Effect.asVoid(Queue.offer(seen, job)),
  next: Effect.timeoutFail(Queue.take(seen), {
    duration: "10 seconds",
    onTimeout: () => "No job came." as const
  }),
  all: Effect.map(Queue.takeAll(seen), Chunk.toReadonlyArray)
}))

const failures = {
  description: "Jobs that this process recorded as failed for good, by queue",
  incremental: true
} as const

const number = (job: QueueJob) => Number(job.payload["n"])

/** `work` in a scope that the test closes. */
const workIn = <R>(effect: Effect.Effect<void, never, R | Scope.Scope>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    yield* Scope.extend(effect, scope)
    return { stop: Scope.close(scope, Exit.void) }
  })

/** A queue of its own over the same tables, as another process would have it. */
const another = (options: Options = quick) =>
  Effect.map(Layer.build(Layer.fresh(layerTableWith(options))), Context.get(JobQueue))

const queueOf = (options: Options = quick) => Effect.zipRight(reset, another(options))

eachEngineLive("The job queue", (it, engine) => {
  it.scoped("hands a job over once, as it was put in", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf()
      const { all, handler, next } = yield* recorder
      yield* queue.work("ingestion", 2, handler)
      const payload = { n: 1, text: "ü", nested: { list: [1, null, true] } }
      const id = yield* queue.enqueue("ingestion", payload)
      expect(yield* next).toEqual({ id, queue: "ingestion", payload, attempt: 1, lastAttempt: false })
      yield* allAre("completed")
      expect(yield* all).toEqual([])
    })
  )

  it.scoped("keeps a job exactly when the caller's transaction commits, and wakes the worker then", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const queue = yield* queueOf()
      const { handler, next, seen } = yield* recorder
      yield* queue.work("ingestion", 2, handler)
      yield* queue
        .enqueue("ingestion", { n: 1 })
        .pipe(Effect.zipRight(Effect.fail("rolled back")), sql.withTransaction, Effect.ignore)
      yield* queue.enqueue("ingestion", { n: 2 }).pipe(sql.withTransaction)
      const [waited, job] = yield* Effect.timed(next)
      expect(number(job)).toBe(2)
      expect(Duration.toMillis(waited)).toBeLessThan(2_000)
      expect(yield* Queue.size(seen)).toBe(0)
      expect(yield* rows).toHaveLength(1)
    })
  )

  it.scoped("puts many jobs in together, in their order, each with its own options, or none of them", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const queue = yield* queueOf()
      expect(yield* queue.enqueueAll("ingestion", [])).toEqual([])
      yield* queue
        .enqueueAll("ingestion", [{ payload: { n: 0 } }, { payload: { n: 0 } }])
        .pipe(Effect.zipRight(Effect.fail("rolled back")), sql.withTransaction, Effect.ignore)
      const numbers = Array.from({ length: 50 }, (_, n) => n)
      const ids = yield* queue.enqueueAll(
        "ingestion",
        numbers.map((n) => ({
          payload: { n, text: "ü\\" },
          options: n === 49 ? { serialKey: "a", delay: "1 hour" } : { serialKey: n % 2 === 0 ? "a" : "b" }
        }))
      )
      expect(yield* sql`select id, serial_key from queue_jobs order by seq`).toEqual(
        numbers.map((n) => ({ id: ids[n], serial_key: n % 2 === 0 || n === 49 ? "a" : "b" }))
      )
      expect((yield* rows)[49]?.run_at.getTime()).toBeGreaterThan(Date.now() + 3_500_000)
      const { all, handler } = yield* recorder
      yield* queue.work("ingestion", 1, handler)
      yield* until(Effect.map(states, (each) => each.filter((state) => state === "waiting").length === 1))
      yield* until(Effect.map(states, (each) => !each.includes("active")))
      expect((yield* all).map(number)).toEqual(numbers.slice(0, 49))
    })
  )

  it.scoped(
    "takes the jobs of owners in turns: a backlog of ten thousand keeps another's one waiting for one job",
    () =>
      Effect.gen(function* () {
        const queue = yield* queueOf()
        const order: Array<string> = []
        const jobs = (owner: string, count: number) =>
          Array.from({ length: count }, (_, n) => ({ payload: { owner, n }, options: { owner } }))
        yield* queue.enqueueAll("ingestion", jobs("large", 10_000))
        yield* queue.enqueueAll("ingestion", jobs("small", 1))
        yield* queue.enqueueAll("ingestion", jobs("medium", 3))
        const allTaken = yield* Deferred.make<void>()
        yield* queue.work("ingestion", 1, ({ payload }) =>
          Effect.suspend(() => {
            if (order.length === 12)
              return Effect.zipRight(Deferred.succeed(allTaken, undefined), Effect.never)
            return Effect.sync(() => order.push(String(payload["owner"])))
          })
        )
        yield* Effect.timeout(Deferred.await(allTaken), "30 seconds")
        expect(order).toContain("small")
        expect(order.indexOf("small")).toBeLessThanOrEqual(2)
        // Each of the others' is followed by one of the backlog's at most.
        expect(order.slice(0, 7).filter((owner) => owner === "large").length).toBeLessThanOrEqual(4)
        expect(order.slice(7)).toEqual(["large", "large", "large", "large", "large"])
      })
  )

  it.scoped("leaves places of a worker to others when the jobs of one owner do not end", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf(everywhere({ ...policy, ownerShare: 1 / 2 }))
      const running: Array<string> = []
      const done = yield* Deferred.make<void>()
      const owned = (owner: string) => ({ payload: { owner }, options: { owner } })
      yield* queue.enqueueAll(
        "ingestion",
        Array.from({ length: 8 }, () => owned("slow"))
      )
      yield* queue.work("ingestion", 4, ({ payload }) =>
        Effect.suspend(() => {
          const owner = String(payload["owner"])
          running.push(owner)
          return owner === "slow" ? Effect.never : Effect.asVoid(Deferred.succeed(done, undefined))
        })
      )
      yield* until(Effect.sync(() => running.length === 2))
      yield* queue.enqueueAll("ingestion", [owned("other")])
      yield* Effect.timeout(Deferred.await(done), "10 seconds")
      expect(running).toEqual(["slow", "slow", "other"])
    })
  )

  it.scoped("leaves places to others when the jobs of many owners of one group do not end", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf(everywhere({ ...policy, ownerShare: 1 / 4, groupShare: 1 / 2 }))
      const running: Array<string> = []
      const done = yield* Deferred.make<void>()
      const owned = (owner: string) => ({ payload: { owner }, options: { owner } })
      yield* queue.enqueueAll(
        "ingestion",
        Array.from({ length: 24 }, (_, place) => owned(`slow/${place % 12}`))
      )
      yield* queue.work("ingestion", 8, ({ payload }) =>
        Effect.suspend(() => {
          const owner = String(payload["owner"])
          running.push(owner)
          return owner.startsWith("slow") ? Effect.never : Effect.asVoid(Deferred.succeed(done, undefined))
        })
      )
      yield* until(Effect.sync(() => running.length === 4))
      yield* queue.enqueueAll("ingestion", [owned("zoo/1")])
      yield* Effect.timeout(Deferred.await(done), "10 seconds")
      expect([new Set(running).size, running.length, running.at(-1)]).toEqual([5, 5, "zoo/1"])
    })
  )

  it.scoped("goes on to owners that a claim has not come to while the jobs that it found are running", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf(everywhere(policy))
      const done = yield* Deferred.make<void>()
      const later = { delay: "1 hour" } as const
      const waiting = Array.from({ length: 10 }, (_, place) => ({
        payload: {},
        options: { owner: `m${place}`, ...later }
      }))
      const owned = (owner: string) => ({ payload: { owner }, options: { owner } })
      yield* queue.enqueueAll("ingestion", [owned("a"), ...waiting, owned("z")])
      yield* queue.work("ingestion", 8, ({ payload }) =>
        payload["owner"] === "z" ? Effect.asVoid(Deferred.succeed(done, undefined)) : Effect.never
      )
      yield* Effect.timeout(Deferred.await(done), "2 seconds")
    })
  )

  it.scoped("runs a job for its owner: whom the enqueuing fiber works for, unless it says otherwise", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf()
      const owners = yield* Queue.unbounded<string>()
      yield* queue.work("ingestion", 1, () =>
        Effect.asVoid(Effect.flatMap(FiberRef.get(currentOwner), (owner) => Queue.offer(owners, owner)))
      )
      yield* queue.enqueue("ingestion", { n: 1 }).pipe(withOwner("ten_1"))
      expect(yield* Queue.take(owners)).toBe("ten_1")
      yield* queue.enqueue("ingestion", { n: 2 }, { owner: "ten_2" }).pipe(withOwner("ten_1"))
      expect(yield* Queue.take(owners)).toBe("ten_2")
    })
  )

  it.scoped("brings every job to a worker of another process at once, not by a look after five seconds", () =>
    Effect.gen(function* () {
      const here = yield* queueOf({})
      const there = yield* another({})
      const { handler, next } = yield* recorder
      yield* there.work("ingestion", 1, handler)
      yield* here.enqueue("ingestion", { n: 0 })
      yield* next
      for (let n = 1; n <= 10; n++) {
        yield* here.enqueue("ingestion", { n })
        const [waited, job] = yield* Effect.timed(next)
        expect(number(job)).toBe(n)
        expect(Duration.toMillis(waited)).toBeLessThan(1_000)
      }
      yield* here.enqueue("ingestion", { n: 11 }, { delay: "300 millis" })
      const [waited] = yield* Effect.timed(next)
      expect(Duration.toMillis(waited)).toBeLessThan(1_500)
    })
  )

  it.scoped("shares the jobs out among all processes", () =>
    Effect.gen(function* () {
      // Enough that a process that is woken late still finds some.
      const jobs = 200
      const kept = { policies: Record.map(policies, () => ({ ...policy, keepCompleted: jobs })) }
      const queues = [yield* queueOf(kept), yield* another(kept)] as const
      const [one, other] = [yield* recorder, yield* recorder] as const
      const slowly = (handler: (job: QueueJob) => Effect.Effect<void>) => (job: QueueJob) =>
        Effect.zipRight(handler(job), Effect.sleep("20 millis"))
      yield* queues[0].work("ingestion", 1, slowly(one.handler))
      yield* queues[1].work("ingestion", 1, slowly(other.handler))
      yield* queues[0].enqueueAll(
        "ingestion",
        Array.from({ length: jobs }, (_, n) => ({ payload: { n } }))
      )
      yield* allAre("completed")
      const [some, others] = [(yield* one.all).map(number), (yield* other.all).map(number)]
      expect([...some, ...others].sort((a, b) => a - b)).toEqual(Array.from({ length: jobs }, (_, n) => n))
      expect(some.length).toBeGreaterThan(10)
      expect(others.length).toBeGreaterThan(10)
    })
  )

  it.scoped("finds what was put in before there was a worker", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf()
      yield* queue.enqueue("embedding", { n: 1 })
      const { handler, next } = yield* recorder
      yield* queue.work("ingestion", 1, handler)
      yield* queue.work("embedding", 1, handler)
      expect((yield* next).queue).toBe("embedding")
    })
  )

  it.scoped("holds a delayed job until its time, and not much longer", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf()
      const { handler, next } = yield* recorder
      yield* queue.work("ingestion", 1, handler)
      yield* queue.enqueue("ingestion", { n: 1 }, { delay: "700 millis" })
      expect((yield* queue.counts).find(({ name }) => name === "ingestion")).toEqual({
        name: "ingestion",
        waiting: 0,
        active: 0,
        delayed: 1,
        completed: 0,
        failed: 0
      })
      const [waited] = yield* Effect.timed(next)
      expect(Duration.toMillis(waited)).toBeGreaterThan(500)
      expect(Duration.toMillis(waited)).toBeLessThan(3_000)
    })
  )

  it.scoped("runs at most as many jobs at once as it was told, and in the end all of them, each once", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf({
        policies: Record.map(policies, () => ({ ...policy, keepCompleted: 100 }))
      })
      const running = yield* Ref.make({ now: 0, peak: 0 })
      const seen = yield* Ref.make<ReadonlyArray<number>>([])
      const handler = (job: QueueJob) =>
        Ref.update(running, ({ now, peak }) => ({ now: now + 1, peak: Math.max(peak, now + 1) })).pipe(
          Effect.zipRight(Effect.sleep("20 millis")),
          Effect.zipRight(Ref.update(seen, (all) => [...all, number(job)])),
          Effect.zipRight(Ref.update(running, ({ now, peak }) => ({ now: now - 1, peak })))
        )
      yield* Effect.forEach(
        Array.from({ length: 40 }, (_, n) => n),
        (n) => queue.enqueue("ingestion", { n })
      )
      yield* queue.work("ingestion", 3, handler)
      yield* allAre("completed")
      expect((yield* Ref.get(running)).peak).toBe(3)
      expect([...(yield* Ref.get(seen))].sort((a, b) => a - b)).toEqual(
        Array.from({ length: 40 }, (_, n) => n)
      )
    })
  )

  it.scoped("tries again after the backoff, doubled each time, and keeps the error of every attempt", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf()
      const tries: Array<{ readonly at: number; readonly last: boolean }> = []
      yield* queue.work("ingestion", 1, (job) =>
        Effect.suspend(() => {
          tries.push({ at: Date.now(), last: job.lastAttempt })
          return new JobFailure({ message: `failure ${job.attempt}\u0000`, fatal: false })
        })
      )
      yield* queue.enqueue("ingestion", { n: 1 })
      yield* until(Effect.map(rows, ([row]) => row?.attempts === 1 && row.state === "waiting"))
      const [waiting] = yield* rows
      const delay = Number(waiting?.run_at) - Date.parse(waiting?.errors[0]?.at ?? "")
      expect(Math.abs(delay - 100)).toBeLessThan(5)
      yield* allAre("failed")
      const [row] = yield* rows
      expect(row).toMatchObject({ attempts: 3, last_error: "failure 3" })
      expect(row?.errors.map(({ attempt, message }) => ({ attempt, message }))).toEqual([
        { attempt: 1, message: "failure 1" },
        { attempt: 2, message: "failure 2" },
        { attempt: 3, message: "failure 3" }
      ])
      expect(tries.map(({ last }) => last)).toEqual([false, false, true])
      const [first, second, third] = tries.map(({ at }) => at)
      expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(100)
      expect((third ?? 0) - (second ?? 0)).toBeGreaterThanOrEqual(200)
    })
  )

  it.scoped("waits at least as long as a failure asks for", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf()
      yield* queue.work(
        "ingestion",
        1,
        () => new JobFailure({ message: "busy", fatal: false, retryAfter: Duration.minutes(5) })
      )
      yield* queue.enqueue("ingestion", { n: 1 })
      yield* until(Effect.map(rows, ([row]) => row?.attempts === 1 && row.state === "waiting"))
      const [row] = yield* rows
      expect(Math.abs(Number(row?.run_at) - Date.parse(row?.errors[0]?.at ?? "") - 300_000)).toBeLessThan(5)
    })
  )

  it.scoped("tries no more after a fatal failure", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf()
      yield* queue.work("ingestion", 1, () => new JobFailure({ message: "no such page", fatal: true }))
      yield* queue.enqueue("ingestion", { n: 1 })
      yield* allAre("failed")
      expect(yield* rows).toMatchObject([{ attempts: 1, last_error: "no such page" }])
    })
  )

  it.scoped("counts a broken handler as a failed attempt, and does not repeat what it said", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf()
      yield* queue.work("ingestion", 1, (job) => (job.attempt === 1 ? Effect.die("hunter2") : Effect.void))
      yield* queue.enqueue("ingestion", { n: 1 })
      yield* allAre("completed")
      const [row] = yield* rows
      expect(row?.attempts).toBe(2)
      expect(row?.errors[0]?.message).toBe("An unexpected error stopped the job.")
    })
  )

  it.scoped("keeps a job that takes longer than the lease, because its worker renews it", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf(shortLease)
      const { all, handler } = yield* recorder
      const slow = (job: QueueJob) => Effect.zipRight(handler(job), Effect.sleep("2500 millis"))
      yield* queue.work("ingestion", 1, slow)
      yield* (yield* another(shortLease)).work("ingestion", 1, slow)
      yield* queue.enqueue("ingestion", { n: 1 })
      yield* allAre("completed")
      expect(yield* all).toHaveLength(1)
    })
  )

  it.scoped("takes over what a dead worker held, and says so", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const queue = yield* queueOf()
      yield* queue.enqueue("ingestion", { n: 1 })
      yield* sql`update queue_jobs set state = 'active', attempts = 1, lease_token = 'gone', lease_until = now() - interval '1 second'`
      const { handler, next } = yield* recorder
      yield* queue.work("ingestion", 1, handler)
      expect(yield* next).toMatchObject({ attempt: 2, lastAttempt: false })
      yield* allAre("completed")
      expect((yield* rows)[0]?.errors).toMatchObject([{ attempt: 1, message: "worker died" }])
    })
  )

  it.scoped("fails a job whose last worker died, after telling who must know", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const queue = yield* queueOf()
      yield* queue.enqueue("ingestion", { n: 1 })
      yield* sql`update queue_jobs set state = 'active', attempts = 3, lease_token = 'gone', lease_until = now() - interval '1 second'`
      const { all, handler } = yield* recorder
      const told = yield* recorder
      yield* queue.work("ingestion", 1, handler, told.handler)
      yield* allAre("failed")
      expect(yield* told.all).toMatchObject([{ payload: { n: 1 }, attempt: 3, lastAttempt: true }])
      expect(yield* all).toEqual([])
      expect(yield* rows).toMatchObject([{ attempts: 3, last_error: "worker died" }])
    })
  )

  it.scoped("counts each job that fails for good, also those that the table no longer keeps", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const queue = yield* queueOf()
      const counted = Effect.map(
        Metric.value(
          Metric.tagged(Metric.counter("spoke_queue_failed_jobs_total", failures), "queue", "ingestion")
        ),
        ({ count }) => count
      )
      const before = yield* counted
      yield* queue.enqueue("ingestion", { n: 0 })
      yield* sql`update queue_jobs set state = 'active', attempts = 3, lease_token = 'gone', lease_until = now() - interval '1 second'`
      for (let n = 1; n <= 4; n++) yield* queue.enqueue("ingestion", { n })
      yield* queue.enqueue("ingestion", { n: 5 })
      yield* queue.work("ingestion", 1, (job) =>
        number(job) === 5
          ? Effect.void
          : Effect.fail(new JobFailure({ message: "No.", fatal: number(job) < 4 }))
      )
      yield* until(Effect.map(states, (all) => all.toSorted().join(" ") === "completed failed failed failed"))
      expect((yield* counted) - before).toBe(5)
    })
  )

  it.scoped("interrupts a handler whose lease was lost, and leaves the job to its new owner", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const queue = yield* queueOf(shortLease)
      const started = yield* Deferred.make<void>()
      const interrupted = yield* Deferred.make<void>()
      yield* queue.work("ingestion", 1, () =>
        Deferred.succeed(started, undefined).pipe(
          Effect.zipRight(Effect.never),
          Effect.onInterrupt(() => Deferred.succeed(interrupted, undefined))
        )
      )
      yield* queue.enqueue("ingestion", { n: 1 })
      yield* Deferred.await(started)
      yield* sql`update queue_jobs set lease_token = 'another', lease_until = now() + interval '1 minute'`
      yield* Effect.timeout(Deferred.await(interrupted), "3 seconds")
      expect(yield* rows).toMatchObject([{ state: "active", attempts: 1, last_error: null }])
      expect(yield* sql`select lease_token from queue_jobs`).toEqual([{ lease_token: "another" }])
    })
  )

  it.scoped(
    "runs jobs of one serial key one at a time and in order, also when the first must be tried again",
    () =>
      Effect.gen(function* () {
        const queue = yield* queueOf({
          policies: Record.map(policies, () => ({ ...policy, keepCompleted: 100 }))
        })
        const log: Array<string> = []
        const busy = new Map<string, number>()
        let peak = 0
        const handler = (job: QueueJob) => {
          const key = String(job.payload["key"])
          return Effect.gen(function* () {
            busy.set(key, (busy.get(key) ?? 0) + 1)
            peak = Math.max(peak, busy.get(key) ?? 0)
            yield* Effect.sleep("5 millis")
            if (number(job) === 0 && job.attempt === 1)
              return yield* new JobFailure({ message: "again", fatal: false })
            log.push(`${key}${number(job)}`)
          }).pipe(Effect.ensuring(Effect.sync(() => busy.set(key, (busy.get(key) ?? 0) - 1))))
        }
        for (let n = 0; n < 6; n++) {
          for (const key of ["a", "b", "c"]) yield* queue.enqueue("ingestion", { n, key }, { serialKey: key })
        }
        yield* queue.work("ingestion", 4, handler)
        yield* (yield* another()).work("ingestion", 4, handler)
        yield* allAre("completed")
        expect(peak).toBe(1)
        for (const key of ["a", "b", "c"]) {
          expect(log.filter((entry) => entry.startsWith(key))).toEqual(
            [0, 1, 2, 3, 4, 5].map((n) => `${key}${n}`)
          )
        }
      })
  )

  it.scoped("lets other keys and queues go on while one key is stuck", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf()
      const { handler, next } = yield* recorder
      const stuck = yield* Deferred.make<void>()
      yield* queue.work("ingestion", 3, (job) =>
        number(job) === 0
          ? Effect.zipRight(Deferred.succeed(stuck, undefined), Effect.sleep("1 second"))
          : handler(job)
      )
      yield* queue.enqueue("ingestion", { n: 0 }, { serialKey: "a" })
      yield* Deferred.await(stuck)
      yield* queue.enqueue("ingestion", { n: 1 }, { serialKey: "a" })
      yield* queue.enqueue("ingestion", { n: 2 }, { serialKey: "b" })
      expect(number(yield* next)).toBe(2)
      expect(number(yield* next)).toBe(1)
    })
  )

  it.scoped("takes no more jobs when it stops, and waits for the running one", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf(everywhere({ ...policy, drain: "10 seconds" }))
      const started = yield* Deferred.make<void>()
      const worker = yield* workIn(
        queue.work("ingestion", 1, () =>
          Effect.zipRight(Deferred.succeed(started, undefined), Effect.sleep("1500 millis"))
        )
      )
      yield* queue.enqueue("ingestion", { n: 1 })
      yield* Deferred.await(started)
      yield* queue.enqueue("ingestion", { n: 2 })
      yield* worker.stop
      expect(yield* states).toEqual(["completed", "waiting"])
    })
  )

  it.scoped("gives back what does not end in time when it stops, and the attempt is not lost", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf()
      const started = yield* Deferred.make<void>()
      const worker = yield* workIn(
        queue.work("ingestion", 1, () => Effect.zipRight(Deferred.succeed(started, undefined), Effect.never))
      )
      yield* queue.enqueue("ingestion", { n: 1 })
      yield* Deferred.await(started)
      const [took] = yield* Effect.timed(worker.stop)
      expect(Duration.toMillis(took)).toBeGreaterThanOrEqual(300)
      expect(Duration.toMillis(took)).toBeLessThan(3_000)
      expect(yield* rows).toMatchObject([{ state: "waiting", attempts: 0, last_error: null, errors: [] }])
      const { handler, next } = yield* recorder
      yield* queue.work("ingestion", 1, handler)
      expect((yield* next).attempt).toBe(1)
    })
  )

  it.scoped(
    "keeps the newest finished jobs, exactly as many as the policy says, with several workers at it",
    () =>
      Effect.gen(function* () {
        const queue = yield* queueOf()
        const handler = (job: QueueJob) =>
          number(job) % 2 === 0 ? Effect.void : new JobFailure({ message: "odd", fatal: true })
        yield* queue.work("ingestion", 2, handler)
        yield* (yield* another()).work("ingestion", 2, handler)
        yield* Effect.forEach(
          Array.from({ length: 30 }, (_, n) => n),
          (n) => queue.enqueue("ingestion", { n })
        )
        yield* until(
          Effect.map(queue.counts, (all) =>
            all.some(
              ({ active, completed, failed, waiting }) =>
                active + waiting === 0 && completed === 5 && failed === 3
            )
          )
        )
        const kept = yield* rows
        expect(kept.every(({ n }) => n >= 10)).toBe(true)
        expect(yield* queue.counts).toContainEqual({
          name: "ingestion",
          waiting: 0,
          active: 0,
          delayed: 0,
          completed: 5,
          failed: 3
        })
      })
  )

  it.scoped("names every queue in its counts", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf()
      yield* queue.enqueue("channel-inbound", { n: 1 })
      const counts = yield* queue.counts
      expect(counts.map(({ name }) => name)).toEqual(Object.keys(policies))
      expect(counts.find(({ name }) => name === "channel-inbound")?.waiting).toBe(1)
    })
  )

  it.scoped("shows the jobs of a queue page by page, by their state, and never a payload", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf()
      yield* queue.enqueueAll(
        "ingestion",
        Array.from({ length: 5 }, (_, n) => ({ payload: { n, secret: "hunter2" } }))
      )
      yield* queue.enqueue("ingestion", { n: 5 }, { delay: "1 hour" })
      yield* queue.enqueue("embedding", { n: 6 })
      const ids = yield* Effect.map(
        Effect.flatMap(
          PgClient.PgClient,
          (sql) => sql<{ id: string }>`select id from queue_jobs order by seq desc`
        ),
        (all) => all.slice(1).map(({ id }) => id)
      )
      const first = yield* queue.list("ingestion", { limit: 4 })
      const second = yield* queue.list("ingestion", { limit: 4, before: first.next ?? "" })
      expect([...first.jobs, ...second.jobs].map(({ id }) => id)).toEqual(ids)
      expect(second.next).toBe(null)
      expect(JSON.stringify([first, second])).not.toContain("hunter2")
      expect((yield* queue.list("ingestion", { state: "delayed", limit: 9 })).jobs).toMatchObject([
        { id: ids[0], state: "delayed", attempts: 0, lastError: null }
      ])
      expect((yield* queue.list("ingestion", { state: "waiting", limit: 9 })).jobs).toHaveLength(5)
      expect((yield* queue.list("ingestion", { state: "failed", limit: 9 })).jobs).toEqual([])
    })
  )

  it.scoped("runs a failed job again with all its attempts when it is retried, and no other", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf({ policies: { ...quick.policies, ingestion: { ...policy, attempts: 1 } } })
      const broken = yield* Ref.make(true)
      yield* queue.work("ingestion", 1, () =>
        Effect.flatMap(Ref.get(broken), (fails) =>
          fails ? new JobFailure({ message: "no route", fatal: true }) : Effect.void
        )
      )
      const id = yield* queue.enqueue("ingestion", { n: 1 })
      yield* allAre("failed")
      yield* Ref.set(broken, false)
      expect(yield* queue.retry("embedding", id)).toBe(null)
      expect(yield* queue.retry("ingestion", id)).toMatchObject({
        job: { id, attempts: 0, lastError: "no route" },
        retried: true
      })
      yield* allAre("completed")
      expect(yield* queue.retry("ingestion", id)).toMatchObject({
        job: { state: "completed", attempts: 1 },
        retried: false
      })
      expect((yield* rows)[0]?.errors).toMatchObject([{ attempt: 1, message: "no route" }])
    })
  )

  it.scoped("is quiet when there is nothing to do, also with a job put off", () =>
    Effect.gen(function* () {
      let statements = 0
      const tracer = yield* Effect.tracer
      const counting = Tracer.make({
        context: tracer.context,
        span: (...args) => {
          if (args[0] === "sql.execute") statements++
          return tracer.span(...args)
        }
      })
      const queue = yield* queueOf()
      yield* Effect.withTracer(
        Effect.gen(function* () {
          yield* queue.enqueue("ingestion", { n: 1 }, { delay: "1 hour" })
          yield* queue.work("ingestion", 1, () => Effect.void)
          yield* Effect.sleep("1500 millis")
        }),
        counting
      )
      expect(statements).toBeGreaterThan(1)
      expect(statements).toBeLessThan(14)
    })
  )

  it.scoped("says that it cannot be reached, without the cause", () =>
    Effect.gen(function* () {
      const sql = yield* PgClient.PgClient
      const queue = yield* queueOf()
      const error = yield* sql`alter table queue_jobs rename to queue_jobs_gone`.pipe(
        Effect.zipRight(Effect.flip(queue.enqueue("ingestion", { n: 1 }))),
        Effect.ensuring(Effect.ignore(sql`alter table queue_jobs_gone rename to queue_jobs`))
      )
      expect(error).toMatchObject({ _tag: "JobQueueError", message: "The job queue cannot be reached." })
    })
  )

  if (engine === "server") {
    it.scoped("lets no two claims of one serial key win, whatever each could see", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        const queue = yield* queueOf()
        yield* queue.enqueue("ingestion", { n: 0 }, { serialKey: "a" })
        yield* queue.enqueue("ingestion", { n: 1 }, { serialKey: "a" })
        const claimed = yield* Deferred.make<void>()
        const commit = yield* Deferred.make<void>()
        const other = yield* sql`
          update queue_jobs set state = 'active', lease_token = 'other', lease_until = now() + interval '1 minute'
          where payload->>'n' = '1'`.pipe(
          Effect.zipRight(Deferred.succeed(claimed, undefined)),
          Effect.zipRight(Deferred.await(commit)),
          sql.withTransaction,
          Effect.fork
        )
        yield* Deferred.await(claimed)
        const { handler, next, seen } = yield* recorder
        yield* queue.work("ingestion", 1, handler)
        yield* until(
          Effect.map(
            sql`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%queue_jobs%'`,
            (waiting) => waiting.length > 0
          )
        )
        yield* Deferred.succeed(commit, undefined)
        yield* Fiber.join(other)
        yield* Effect.sleep("500 millis")
        expect(yield* Queue.size(seen)).toBe(0)
        yield* sql`update queue_jobs set state = 'completed', finished_at = now() where payload->>'n' = '1'`
        expect(number(yield* next)).toBe(0)
      })
    )

    it.scoped(
      "loses no job to a worker that is killed",
      () =>
        Effect.gen(function* () {
          const queue = yield* queueOf()
          const worker = `
            import * as Duration from "effect/Duration"
            import * as Effect from "effect/Effect"
            import * as Layer from "effect/Layer"
            import * as Record from "effect/Record"
            import * as Redacted from "effect/Redacted"
            import { JobQueue, policies } from "../src/capabilities/JobQueue.ts"
            import { layerTableWith } from "../src/capabilities/JobQueue/Table.ts"
            import { layerPostgres } from "../src/store/Database.ts"
            const short = { policies: Record.map(policies, (policy) => ({ ...policy, lease: "900 millis" })) }
            const layer = layerTableWith(short).pipe(
              Layer.provide(layerPostgres({ url: Redacted.make(process.argv[2]), maxConnections: 2 })))
            Effect.gen(function*() {
              const queue = yield* JobQueue
              yield* queue.work("ingestion", 2, (job) =>
                Effect.zipRight(Effect.sync(() => console.log("took " + job.attempt)), Effect.never))
              yield* Effect.never
            }).pipe(Effect.scoped, Effect.provide(layer), Effect.runPromise)`
          const module = yield* Effect.acquireRelease(
            Effect.promise(() => bundle(worker)),
            (path) => Effect.sync(() => discard(path))
          )
          const url = Redacted.value(yield* serverUrl)
          const child = yield* Effect.acquireRelease(
            Effect.sync(() => run(module, [url])),
            ({ kill }) => Effect.promise(kill)
          )
          yield* queue.enqueue("ingestion", { n: 1 })
          expect(yield* Effect.promise(child.line)).toBe("took 1")
          yield* Effect.promise(child.kill)
          const { handler, next } = yield* recorder
          yield* queue.work("ingestion", 1, handler)
          expect(yield* next).toMatchObject({ attempt: 2, payload: { n: 1 } })
          yield* allAre("completed")
        }),
      30_000
    )
  }

  it.scoped("follows the documented policies by default", () =>
    Effect.gen(function* () {
      const queue = yield* queueOf({})
      yield* queue.work("channel-inbound", 1, () => new JobFailure({ message: "no", fatal: false }))
      yield* queue.enqueue("channel-inbound", { n: 1 })
      yield* until(Effect.map(rows, ([row]) => row?.attempts === 1 && row.state === "waiting"))
      const [row] = yield* rows
      expect(Math.abs(Number(row?.run_at) - Date.parse(row?.errors[0]?.at ?? "") - 2_000)).toBeLessThan(5)
      const sql = yield* PgClient.PgClient
      expect(yield* sql`select max_attempts from queue_jobs`).toEqual([{ max_attempts: 5 }])
    })
  )
})

plain("No queue waits for longer than an hour between two attempts", () => {
  for (const { attempts, backoff, ...policy } of Object.values(policies)) {
    const longest = Duration.times(Duration.decode(backoff), 2 ** (attempts - 2))
    const bound = "maxBackoff" in policy ? policy.maxBackoff : Duration.infinity
    expect(Duration.toHours(Duration.min(longest, bound))).toBeLessThanOrEqual(1)
  }
})
