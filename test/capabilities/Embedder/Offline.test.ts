import { expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { once } from "node:events"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { pathToFileURL } from "node:url"
import { Worker } from "node:worker_threads"
import { describe } from "vitest"
import { Embedder } from "../../../src/capabilities/Embedder.ts"
import { makePriorityQueue } from "../../../src/capabilities/Embedder/PriorityQueue.ts"
import {
  layerUniversalSentenceEncoder,
  type OfflineOptions
} from "../../../src/capabilities/Embedder/Offline.ts"

/** A thread without a model: the first number of its vectors tells which thread it is, and some texts break it. */
const thread = `
import { parentPort, threadId } from "node:worker_threads"
parentPort.on("message", ({ id, texts }) => {
  if (texts.includes("crash")) throw new Error("crash")
  if (texts.includes("leave")) process.exit(0)
  if (texts.includes("hang")) return
  if (texts.includes("refuse")) return parentPort.postMessage({ _tag: "Failed", id })
  if (texts.includes("nonsense")) return parentPort.postMessage("nonsense")
  const vectors = new Float32Array(512 * texts.length)
  texts.forEach((text, place) => vectors.set([threadId, 1], 512 * place))
  parentPort.postMessage({ _tag: "Embedded", id, vectors })
})
`

const script = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-thread-"))
    const file = Path.join(folder, "thread.mjs")
    Fs.writeFileSync(file, thread)
    return { folder, url: pathToFileURL(file) }
  }),
  ({ folder }) => Effect.sync(() => Fs.rmSync(folder, { recursive: true }))
)

/** Runs `body` against the thread above. */
const withThread = <A, E>(options: Partial<OfflineOptions>, body: Effect.Effect<A, E, Embedder>) =>
  Effect.scoped(
    Effect.flatMap(script, ({ url }) =>
      Effect.provide(body, layerUniversalSentenceEncoder({ script: url, ...options }))
    )
  )

const threadOf = (vector: Float32Array): number => Math.round((vector[0] ?? 0) / (vector[1] ?? 1))

const threadNow = Effect.flatMap(Embedder, ({ embedQuery }) => Effect.map(embedQuery("which?"), threadOf))

describe("Offline embedder", () => {
  for (const text of ["crash", "leave", "nonsense"]) {
    it.live(`a thread that breaks on "${text}" is replaced, and the failure is its own`, () =>
      withThread(
        {},
        Effect.gen(function* () {
          const { embedQuery } = yield* Embedder
          const before = yield* threadNow
          const error = yield* Effect.flip(embedQuery(text))
          expect(error).toMatchObject({ _tag: "EmbedderError", retryable: true })
          expect(yield* threadNow).not.toBe(before)
        })
      )
    )
  }

  it.live("a text that the model refuses fails alone, and the thread lives on", () =>
    withThread(
      {},
      Effect.gen(function* () {
        const { embedQuery } = yield* Embedder
        const before = yield* threadNow
        expect(yield* Effect.flip(embedQuery("refuse"))).toMatchObject({ retryable: false })
        expect(yield* threadNow).toBe(before)
      })
    )
  )

  it.live("the first text finds the thread that `prepare` has started", () =>
    withThread(
      {},
      Effect.gen(function* () {
        const { prepare } = yield* Embedder
        // Threads are numbered in the order of their start.
        const nextNumber = Effect.promise(async () => {
          const worker = new Worker("", { eval: true })
          const number = worker.threadId
          await once(worker, "exit")
          return number + 1
        })
        const number = yield* nextNumber
        yield* prepare ?? Effect.die("There is nothing to prepare")
        expect(yield* nextNumber).toBe(number + 2)
        expect(yield* threadNow).toBe(number)
      })
    )
  )

  it.live("a thread that hangs is given up after the timeout", () =>
    withThread(
      { timeout: "500 millis" },
      Effect.gen(function* () {
        const { embedQuery } = yield* Embedder
        const before = yield* threadNow
        expect(yield* Effect.flip(embedQuery("hang"))).toMatchObject({ retryable: true })
        expect(yield* threadNow).not.toBe(before)
      })
    )
  )

  it.live("who is interrupted leaves, and the next one is served", () =>
    withThread(
      {},
      Effect.gen(function* () {
        const { embedQuery, embedAll } = yield* Embedder
        const before = yield* threadNow
        const fiber = yield* Effect.fork(embedAll(["hang", "hang"]))
        const waiting = yield* Effect.fork(embedQuery("behind it"))
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(fiber)
        expect(threadOf(yield* Fiber.join(waiting))).toBe(before)
      })
    )
  )

  it.live("an unused thread ends, and the next text starts another", () =>
    withThread(
      { idleTimeout: "20 millis" },
      Effect.gen(function* () {
        const before = yield* threadNow
        const after = yield* threadNow.pipe(
          Effect.delay("60 millis"),
          Effect.repeat({ until: (now) => now !== before })
        )
        expect(after).toBeGreaterThan(before)
      })
    )
  )

  it.live("who still embeds while the service closes fails, and starts nothing that stays", () =>
    Effect.gen(function* () {
      const { url } = yield* script
      const scope = yield* Scope.make()
      const context = yield* Layer.buildWithScope(layerUniversalSentenceEncoder({ script: url }), scope)
      const { embedAll } = Context.get(context, Embedder)
      const fiber = yield* Effect.fork(Effect.flip(embedAll(["hang", "hang"])))
      yield* Effect.yieldNow()
      yield* Scope.close(scope, Exit.void)
      expect(yield* Fiber.join(fiber)).toMatchObject({ _tag: "EmbedderError", retryable: true })
    }).pipe(Effect.scoped)
  )

  it.live("nothing is started before the first text; a script that is not there fails then", () =>
    Effect.gen(function* () {
      const { embedQuery } = yield* Embedder
      expect(yield* Effect.flip(embedQuery("text"))).toMatchObject({
        _tag: "EmbedderError",
        retryable: true
      })
    }).pipe(
      Effect.provide(layerUniversalSentenceEncoder({ script: new URL("./not-there.js", import.meta.url) }))
    )
  )
})

describe("A priority queue", () => {
  it.effect("queries overtake documents, and each priority keeps its order", () =>
    Effect.gen(function* () {
      const inTurn = makePriorityQueue(10, () => "full" as const)
      const gate = yield* Deferred.make<void>()
      const order: Array<string> = []
      const say = (priority: "urgent" | "background", name: string) =>
        Effect.fork(
          inTurn(
            priority,
            Effect.sync(() => order.push(name))
          )
        )
      const first = yield* Effect.fork(inTurn("background", Deferred.await(gate)))
      yield* Effect.yieldNow()
      const fibers = [
        yield* say("background", "document 1"),
        yield* say("background", "document 2"),
        yield* say("urgent", "query 1"),
        yield* say("urgent", "query 2")
      ]
      yield* Effect.yieldNow()
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(first)
      yield* Fiber.joinAll(fibers)
      expect(order).toEqual(["query 1", "query 2", "document 1", "document 2"])
    })
  )

  it.effect("a full priority refuses, and who leaves the line makes room in it", () =>
    Effect.gen(function* () {
      const inTurn = makePriorityQueue(1, () => "full" as const)
      const gate = yield* Deferred.make<void>()
      const first = yield* Effect.fork(inTurn("background", Deferred.await(gate)))
      yield* Effect.yieldNow()
      const second = yield* Effect.fork(inTurn("background", Effect.void))
      yield* Effect.yieldNow()
      expect(yield* Effect.flip(inTurn("background", Effect.void))).toBe("full")
      yield* Fiber.interrupt(second)
      const third = yield* Effect.fork(inTurn("background", Effect.succeed("served")))
      yield* Effect.yieldNow()
      yield* Deferred.succeed(gate, undefined)
      expect(yield* Fiber.join(third)).toBe("served")
      yield* Fiber.join(first)
    })
  )

  it.effect("a failure or an interruption gives the turn on", () =>
    Effect.gen(function* () {
      const inTurn = makePriorityQueue(10, () => "full" as const)
      yield* Effect.exit(inTurn("urgent", Effect.fail("no")))
      yield* Effect.exit(inTurn("urgent", Effect.interrupt))
      yield* Effect.exit(inTurn("urgent", Effect.die("oh")))
      expect(yield* inTurn("background", Effect.succeed("served"))).toBe("served")
    })
  )
})
