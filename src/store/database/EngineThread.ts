/** The embedded engine on a thread of its own (workers/database.ts), while this one has the sockets. */
import { Worker } from "node:worker_threads"
import { types } from "node:util"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { crashed, type Engine, type EngineOpening } from "./Engine.ts"

/** What the thread says beside its answers, which are bytes, one for each request and in their order. */
const Word = Schema.Union(
  Schema.TaggedStruct("Opened", {}),
  Schema.TaggedStruct("Refused", { message: Schema.String }),
  /** In place of an answer. */
  Schema.TaggedStruct("Failed", { message: Schema.String }),
  /** In place of an answer: the engine has ended by itself. Else that it has ended as it was told to. */
  Schema.TaggedStruct("Ended", {})
)
export type Word = typeof Word.Type
const isWord = Schema.is(Word)

/** Longest wait for the engine to write what it holds. */
const closeTimeout = "10 seconds"

const start = (script: URL, opening: EngineOpening) =>
  Effect.async<Worker, Error>((resume) => {
    const worker = new Worker(script, { workerData: opening, env: {}, argv: [], execArgv: [] })
    const settle = (outcome: Effect.Effect<Worker, Error>) => {
      worker.off("message", onMessage).off("error", onError).off("exit", onExit)
      resume(outcome)
    }
    const onMessage = (message: unknown) => {
      if (isWord(message) && message._tag === "Opened") return settle(Effect.succeed(worker))
      const why = isWord(message) && message._tag === "Refused" ? message.message : "It broke off."
      settle(Effect.fail(new Error(why)))
    }
    const onError = (error: Error) => settle(Effect.fail(error))
    const onExit = () => settle(Effect.fail(new Error("Its thread ended.")))
    worker.on("message", onMessage).on("error", onError).on("exit", onExit)
    return Effect.promise(() => worker.terminate())
  })

interface Waiting {
  readonly resolve: (answer: Uint8Array) => void
  readonly reject: (error: Error) => void
}

const engineOn = (worker: Worker, whenEnded: () => void) => {
  const waiting: Array<Waiting> = []
  let over = false
  let closing: (() => void) | null = null

  /** Takes the caller that is next to be answered. */
  const next = () => {
    const first = waiting.shift()
    // A process that does nothing but wait for an answer must not end before it comes; an idle engine keeps no process alive.
    if (waiting.length === 0) worker.unref()
    return first
  }
  const end = () => {
    if (!over && closing === null) whenEnded()
    over = true
    while (waiting.length > 0) next()?.reject(crashed())
    closing?.()
  }
  worker.on("message", (message: unknown) => {
    if (types.isUint8Array(message)) next()?.resolve(message)
    else if (isWord(message) && message._tag === "Failed") next()?.reject(new Error(message.message))
    else end()
  })
  worker.on("error", end).on("exit", end)
  worker.unref()

  const send = (request: Uint8Array, answered: Waiting) => {
    if (over) return answered.reject(crashed())
    if (waiting.length === 0) worker.ref()
    waiting.push(answered)
    // A copy, whose memory moves to the thread: the driver's may be part of something larger.
    const copy = new Uint8Array(request)
    worker.postMessage(copy, [copy.buffer])
  }
  // Answers that come while the last is being read are read with it: without a turn for the sockets between, statements that
  // follow each other would hold all else up.
  const ask: Engine["ask"] = (request) =>
    new Promise((resolve, reject) => void setImmediate(send, request, { resolve, reject }))
  const ended = Effect.async<void>((resume) => {
    if (over) return resume(Effect.void)
    closing = () => resume(Effect.void)
    worker.ref()
    worker.postMessage(null)
  })
  const close = Effect.zipRight(
    Effect.timeoutOption(ended, closeTimeout),
    Effect.promise(() => worker.terminate())
  )
  return { engine: { ask } satisfies Engine, close }
}

/** `whenEnded` is called once, when the engine has ended by itself. Fails with what the engine says when it does not open. */
export const openThread = (
  script: URL,
  opening: EngineOpening,
  whenEnded: () => void
): Effect.Effect<Engine, Error, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.map(start(script, opening), (worker) => engineOn(worker, whenEnded)),
    ({ close }) => close
  ).pipe(Effect.map(({ engine }) => engine))
