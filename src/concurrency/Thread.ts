/**
 * A worker thread that serves one caller at a time. It is started on demand, ended when unused, and replaced after it
 * has ended.
 */
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberHandle from "effect/FiberHandle"

/** What is used of a `Worker` of `node:worker_threads`. */
interface Worker {
  readonly on: (event: "message" | "error" | "exit", listener: (value: unknown) => void) => unknown
  readonly off: (event: "message" | "error" | "exit", listener: (value: unknown) => void) => unknown
  readonly postMessage: (message: unknown, transfer: ReadonlyArray<ArrayBuffer>) => void
  readonly ref: () => void
  readonly unref: () => void
  readonly stdout: { readonly resume: () => unknown }
  readonly stderr: { readonly resume: () => unknown }
  readonly terminate: () => Promise<unknown>
}

/** Worker options: no environment and no arguments of the process, and output that is not passed on to it. */
export const isolated = { env: {}, argv: [], execArgv: [], stdout: true, stderr: true }

export interface ThreadOptions {
  readonly start: () => Worker
  /** An unused thread ends after this time. */
  readonly idleTimeout: Duration.DurationInput
  /** Whether the thread lives on when its caller is interrupted. It then still answers the message. Default: false. */
  readonly outlivesCaller?: boolean
}

/** The thread ended before it answered: by an error, or by itself or by request (`error` is null). */
export class ThreadEnded extends Data.TaggedError("ThreadEnded")<{ readonly error: unknown }> {}

export interface AskOptions {
  /** Buffers in the message whose memory is transferred to the thread. */
  readonly transfer?: ReadonlyArray<ArrayBuffer>
  /** Messages of the thread that answer another question. */
  readonly ignores?: (message: unknown) => boolean
}

/** Sends a message and waits for the answer. */
export type Ask = (message: unknown, options?: AskOptions) => Effect.Effect<unknown, ThreadEnded>

const makeAsk =
  (worker: Worker): Ask =>
  (message, { ignores = () => false, transfer = [] } = {}) =>
    Effect.async((resume) => {
      const settle = (outcome: Effect.Effect<unknown, ThreadEnded>) => {
        stop()
        resume(outcome)
      }
      const onMessage = (answer: unknown) => {
        if (!ignores(answer)) settle(Effect.succeed(answer))
      }
      const onError = (error: unknown) => settle(Effect.fail(new ThreadEnded({ error })))
      const onExit = () => onError(null)
      const stop = () => {
        worker.off("message", onMessage)
        worker.off("error", onError)
        worker.off("exit", onExit)
        worker.unref()
      }
      worker.on("message", onMessage)
      worker.on("error", onError)
      worker.on("exit", onExit)
      // The process must stay alive while an answer is pending.
      worker.ref()
      worker.postMessage(message, transfer)
      return Effect.sync(stop)
    })

export const makeThread = ({ idleTimeout, outlivesCaller = false, start }: ThreadOptions) =>
  Effect.gen(function* () {
    const idle = yield* FiberHandle.make()
    let current: Worker | undefined
    let isBusy = false
    let isClosed = false

    const end = Effect.suspend(() => {
      const worker = current
      current = undefined
      return worker === undefined ? Effect.void : Effect.ignore(Effect.tryPromise(() => worker.terminate()))
    })
    yield* Effect.addFinalizer(() => {
      isClosed = true
      return end
    })

    const ensureWorker = Effect.suspend((): Effect.Effect<Worker, ThreadEnded> => {
      // A caller during shutdown must not start a thread, because nothing would end it.
      if (isClosed) return Effect.fail(new ThreadEnded({ error: null }))
      if (current !== undefined) return Effect.succeed(current)
      const worker = start()
      // Libraries write warnings to both. Unread output would accumulate.
      worker.stdout.resume()
      worker.stderr.resume()
      worker.unref()
      // A message may crash its thread after the answer, when no caller waits. Without a listener, that would end the
      // process.
      worker.on("error", () => undefined)
      worker.on("exit", () => {
        if (current === worker) current = undefined
      })
      current = worker
      return Effect.succeed(worker)
    })
    const endWhenIdle = Effect.suspend(() =>
      isClosed ? Effect.void : Effect.asVoid(FiberHandle.run(idle, Effect.delay(end, idleTimeout)))
    )

    /** Callers take turns. After a failure the state of the thread is unknown, and it ends. */
    const use = <A, E>(work: (ask: Ask) => Effect.Effect<A, E>): Effect.Effect<A, E | ThreadEnded> =>
      Effect.suspend(() => {
        isBusy = true
        return Effect.zipRight(FiberHandle.clear(idle), ensureWorker)
      }).pipe(
        Effect.flatMap((worker) => work(makeAsk(worker))),
        Effect.onExit((exit) =>
          Exit.isSuccess(exit) || (outlivesCaller && Exit.isInterrupted(exit)) ? endWhenIdle : end
        ),
        Effect.ensuring(
          Effect.sync(() => {
            isBusy = false
          })
        )
      )
    return { end, isBusy: () => isBusy, use } as const
  })
