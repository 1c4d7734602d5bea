/** The thread that holds the offline model: started when it is needed, ended when it is not, replaced when it breaks. */
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
  /** An unused thread ends after this long, and its memory (about 185 MB) is free again. */
  readonly idleTimeout: Duration.DurationInput
  /** For one exchange, the start of the thread included. */
  readonly timeout: Duration.DurationInput
}

const heapMb = 512

const broken = () => new EmbedderError({ message: "The offline embedding model broke off.", retryable: true })
const tooSlow = () =>
  new EmbedderError({ message: "The offline embedding model did not answer in time.", retryable: true })
const unreadable = () =>
  new EmbedderError({ message: "The offline embedding model could not read the text.", retryable: false })

/** Without environment and output: TensorFlow greets on both. */
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
  // Every exchange listens for itself; in between, an error without a listener would end the process.
  worker.on("error", () => undefined)
  return worker
}

const isAnswer = Schema.is(Answer)

/** Waits for the answer with this id: the answer to an earlier request may still come after its caller has left. */
const ask = (worker: Worker, id: number, texts: ReadonlyArray<string>) =>
  Effect.async<Float32Array, EmbedderError>((resume) => {
    const settle = (outcome: Effect.Effect<Float32Array, EmbedderError>) => {
      stop()
      resume(outcome)
    }
    const onMessage = (message: unknown) => {
      if (!isAnswer(message)) return settle(Effect.failSync(broken))
      if (message.id !== id) return
      settle(message._tag === "Embedded" ? Effect.succeed(message.vectors) : Effect.failSync(unreadable))
    }
    const onEnd = () => settle(Effect.failSync(broken))
    const stop = () => {
      worker.off("message", onMessage).off("error", onEnd).off("exit", onEnd)
      worker.unref()
    }
    // A process that does nothing but wait for the answer must not end before it comes.
    worker.ref()
    worker.on("message", onMessage).on("error", onEnd).on("exit", onEnd)
    worker.postMessage({ id, texts })
    return Effect.sync(stop)
  })

/** The exchange with the thread, one at a time: the vectors of all texts, one after another. */
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
      // An embedding during the shutdown must not start a thread that would not be ended.
      if (closed) return Effect.failSync(broken)
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
        // What hangs does not come back; what broke may be half alive.
        Effect.tapError(({ retryable }) => (retryable ? end : Effect.void)),
        Effect.ensuring(endLater)
      )
  })
