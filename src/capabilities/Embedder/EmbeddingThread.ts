/** The thread of the offline model. It is started on demand, ended when unused, and replaced after a failure. */
import { Worker } from "node:worker_threads"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberHandle from "effect/FiberHandle"
import * as Schema from "effect/Schema"
import { EmbedderError } from "../Embedder.ts"
import { Answer } from "./Messages.ts"

export interface ThreadOptions {
  /** The built `workers/embed.ts`. */
  readonly script: URL
  /** An unused thread ends after this time, which frees about 185 MB. */
  readonly idleTimeout: Duration.DurationInput
  /** Time-out of one exchange, including the start of the thread. */
  readonly timeout: Duration.DurationInput
}

const heapMb = 512

const threadStopped = () =>
  new EmbedderError({ message: "The offline embedding model stopped.", retryable: true })
const tooSlow = () =>
  new EmbedderError({ message: "The offline embedding model did not answer in time.", retryable: true })
const unreadable = () =>
  new EmbedderError({ message: "The offline embedding model could not read the text.", retryable: false })

/** Without environment and output, because TensorFlow writes to both streams. */
const start = (script: URL): Worker => {
  const worker = new Worker(script, {
    env: {},
    argv: [],
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: heapMb }
  })
  worker.stdout.resume()
  worker.stderr.resume()
  // Every exchange has its own listener. Between exchanges, an error without a listener would end the process.
  worker.on("error", () => undefined)
  return worker
}

const isAnswer = Schema.is(Answer)

/** Waits for the answer with this id. The answer to an interrupted request may still arrive. */
const ask = (worker: Worker, id: number, texts: ReadonlyArray<string>) =>
  Effect.async<Float32Array, EmbedderError>((resume) => {
    const settle = (outcome: Effect.Effect<Float32Array, EmbedderError>) => {
      stop()
      resume(outcome)
    }
    const onMessage = (message: unknown) => {
      if (!isAnswer(message)) return settle(Effect.failSync(threadStopped))
      if (message.id !== id) return
      settle(message._tag === "Embedded" ? Effect.succeed(message.vectors) : Effect.failSync(unreadable))
    }
    const onEnd = () => settle(Effect.failSync(threadStopped))
    const stop = () => {
      worker.off("message", onMessage).off("error", onEnd).off("exit", onEnd)
      worker.unref()
    }
    // The process must stay alive while an answer is pending.
    worker.ref()
    worker.on("message", onMessage).on("error", onEnd).on("exit", onEnd)
    worker.postMessage({ id, texts })
    return Effect.sync(stop)
  })

/** Exchanges with the thread, one at a time. Returns the concatenated vectors of all texts. */
export const makeThread = (options: ThreadOptions) =>
  Effect.gen(function* () {
    const idle = yield* FiberHandle.make()
    let current: Worker | undefined
    let lastId = 0
    let closed = false

    const end = Effect.suspend(() => {
      const worker = current
      current = undefined
      return worker === undefined ? Effect.void : Effect.promise(() => worker.terminate())
    })
    yield* Effect.addFinalizer(() => {
      closed = true
      return end
    })

    const running = Effect.suspend((): Effect.Effect<Worker, EmbedderError> => {
      // An embedding during shutdown must not start a thread, because nothing would end it.
      if (closed) return Effect.failSync(threadStopped)
      if (current !== undefined) return Effect.succeed(current)
      const worker = start(options.script)
      worker.once("exit", () => {
        if (current === worker) current = undefined
      })
      current = worker
      return Effect.succeed(worker)
    })
    const endLater = FiberHandle.run(idle, Effect.delay(end, options.idleTimeout))

    return (texts: ReadonlyArray<string>): Effect.Effect<Float32Array, EmbedderError> =>
      FiberHandle.clear(idle).pipe(
        Effect.zipRight(running),
        Effect.flatMap((worker) => ask(worker, ++lastId, texts)),
        Effect.timeoutFail({ duration: options.timeout, onTimeout: tooSlow }),
        // After a time-out or a crash the thread's state is unknown, so it ends.
        Effect.tapError(({ retryable }) => (retryable ? end : Effect.void)),
        Effect.ensuring(endLater)
      )
  })
