/** One process of the queue benchmark: it enqueues or processes jobs, controlled by its parent. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import { JobQueue, type QueueJob } from "../../src/capabilities/JobQueue.ts"
import { layerTable } from "../../src/capabilities/JobQueue/Table.ts"
import { layerPostgres, migrate } from "../../src/store/Database.ts"

/** Events of channels, as many at a time as a process of the service takes. */
const queueName = "channel-inbound"
const concurrency = 4
/** Jobs enqueued by one statement. */
const batch = 500

interface Command {
  readonly name: "migrate" | "fill" | "rate" | "work" | "report"
  readonly count: number
  readonly keys: number
  readonly perSecond: number
}

const [url = "", migrations = ""] = process.argv.slice(2)

const now = () => performance.timeOrigin + performance.now()

/** When jobs began, and how long each had waited by then, in milliseconds. */
const starts: Array<number> = []
const waits: Array<number> = []

const handler = ({ payload }: QueueJob) =>
  Effect.sync(() => {
    const at = now()
    starts.push(at)
    waits.push(at - Number(payload["at"]))
  })

const request = (n: number, serialKey: string) => ({
  payload: { n, at: now() },
  options: { serialKey }
})

const program = Effect.gen(function* () {
  const queue = yield* JobQueue
  const commands = yield* Queue.unbounded<Command>()
  process.on("message", (command: Command) => commands.unsafeOffer(command))
  process.once("disconnect", () => process.exit(0))

  const fill = ({ count, keys }: Command) =>
    Effect.gen(function* () {
      for (let from = 0; from < count; from += batch) {
        const length = Math.min(batch, count - from)
        yield* queue.enqueueAll(
          queueName,
          Array.from({ length }, (_, n) => request(from + n, `contact ${(from + n) % keys}`))
        )
      }
    })
  /** At fixed times, whether or not the last one has been answered; of other conversations than those that wait. */
  const rate = ({ count, keys, perSecond }: Command) =>
    Effect.gen(function* () {
      const start = now()
      for (let n = 0; n < count; n++) {
        yield* Effect.sleep(Math.max(0, start + (n * 1_000) / perSecond - now()))
        const { options, payload } = request(n, `other ${n % keys}`)
        yield* Effect.fork(queue.enqueue(queueName, payload, options))
      }
    })
  const execute = (command: Command) => {
    switch (command.name) {
      case "migrate":
        return migrate(migrations)
      case "fill":
        return fill(command)
      case "rate":
        return rate(command)
      case "work":
        return queue.work(queueName, concurrency, handler)
      case "report":
        return Effect.void
    }
  }
  process.send?.({ ready: true })
  yield* Queue.take(commands).pipe(
    Effect.tap(execute),
    Effect.tap(({ name }) =>
      Effect.sync(() => {
        const found = name === "report" ? { starts: starts.splice(0), waits: waits.splice(0) } : {}
        process.send?.({ done: name, ...found })
      })
    ),
    Effect.forever
  )
})

const database = layerPostgres({ url: Redacted.make(url), maxConnections: 10 })
await Effect.runPromise(
  Effect.scoped(program).pipe(Effect.provide(layerTable.pipe(Layer.provideMerge(database))))
)
