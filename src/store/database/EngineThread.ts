/** Runs the embedded engine on its own thread (workers/database.ts), so that the main thread is free for sockets. */
import { Worker } from "node:worker_threads"
import { types } from "node:util"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { crashed, type Engine, type EngineOpening } from "./Engine.ts"

/** Messages from the thread besides answers. Answers are bytes, one per request, in order. */
const ThreadMessage = Schema.Union(
  Schema.TaggedStruct("Opened", {}),
  Schema.TaggedStruct("Refused", { message: Schema.String }),
  /** Replaces an answer. */
  Schema.TaggedStruct("Failed", { message: Schema.String }),
  /** Replaces an answer: the engine has ended. It ended by itself unless it was told to close. */
  Schema.TaggedStruct("Ended", {})
)
export type ThreadMessage = typeof ThreadMessage.Type
const isThreadMessage = Schema.is(ThreadMessage)

/** Maximum time for the engine to write its data when it closes. */
const closeTimeout = "10 seconds"

const start = (script: URL, opening: EngineOpening) =>
  Effect.async<Worker, Error>((resume) => {
    const worker = new Worker(script, { workerData: opening, env: {}, argv: [], execArgv: [] })
    const settle = (outcome: Effect.Effect<Worker, Error>) => {
      worker.off("message", onMessage).off("error", onError).off("exit", onExit)
      resume(outcome)
    }
    const onMessage = (message: unknown) => {
      if (isThreadMessage(message) && message._tag === "Opened") return settle(Effect.succeed(worker))
      const why = isThreadMessage(message) && message._tag === "Refused" ? message.message : "It broke off."
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

const engineOn = (worker: Worker, onEnded: () => void) => {
  const waiting: Array<Waiting> = []
  let isOver = false
  let closing: (() => void) | null = null

  /** Removes and returns the caller of the next answer. */
  const next = () => {
    const first = waiting.shift()
    // The process must stay alive while an answer is pending. An idle engine does not keep it alive.
    if (waiting.length === 0) worker.unref()
    return first
  }
  const end = () => {
    if (!isOver && closing === null) onEnded()
    isOver = true
    while (waiting.length > 0) next()?.reject(crashed())
    closing?.()
  }
  worker.on("message", (message: unknown) => {
    if (types.isUint8Array(message)) next()?.resolve(message)
    else if (isThreadMessage(message) && message._tag === "Failed") next()?.reject(new Error(message.message))
    else end()
  })
  worker.on("error", end).on("exit", end)
  worker.unref()

  const send = (request: Uint8Array, answered: Waiting) => {
    if (isOver) return answered.reject(crashed())
    if (waiting.length === 0) worker.ref()
    waiting.push(answered)
    // A copy, because its memory is transferred to the thread, and the driver's buffer may be part of a larger one.
    const copy = new Uint8Array(request)
    worker.postMessage(copy, [copy.buffer])
  }
  // Answers that arrive while one is being processed are handled together with it. Without a yield to the event loop,
  // consecutive statements would block everything else.
  const ask: Engine["ask"] = (request) =>
    new Promise((resolve, reject) => void setImmediate(send, request, { resolve, reject }))
  const ended = Effect.async<void>((resume) => {
    if (isOver) return resume(Effect.void)
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

/**
 * `onEnded` is called once, when the engine has ended by itself. Fails with the engine's message when it does not
 * open.
 */
export const openThread = (
  script: URL,
  opening: EngineOpening,
  onEnded: () => void
): Effect.Effect<Engine, Error, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.map(start(script, opening), (worker) => engineOn(worker, onEnded)),
    ({ close }) => close
  ).pipe(Effect.map(({ engine }) => engine))
