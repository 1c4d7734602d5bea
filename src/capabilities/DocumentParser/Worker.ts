/**
 * Parses in a worker thread with a limit on its memory and time (guarantee G3). The thread serves one document after
 * another; one that hangs, dies or is interrupted is ended, and the next document gets a fresh one.
 */
import { memoryUsage } from "node:process"
import { Worker } from "node:worker_threads"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberHandle from "effect/FiberHandle"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { DocumentParser, ParseError, type ParseRequest } from "../DocumentParser.ts"
import { defaultLimits } from "./Limits.ts"
import { Answer, type Job } from "./Messages.ts"

export interface WorkerOptions {
  /** The built `workers/parse.ts`. */
  readonly script: URL
  /** Heap of the thread in MiB, default 192. */
  readonly memoryMb?: number
  /** What the process may grow by beyond that heap while a document is read, in MiB, default 128. */
  readonly buffersMb?: number
  /**
   * What the process as a whole may hold while a document is read, in MiB, default 940: a document that goes past it fails,
   * unless it has hardly added to it.
   */
  readonly processMb?: number
  /** For one document, default one minute. */
  readonly timeout?: Duration.DurationInput
  /** Default 3,000. */
  readonly maxPages?: number
  /** Most characters of a document's text, default ten million. */
  readonly maxCharacters?: number
  /** An unused thread ends after this long, default one minute. */
  readonly idleTimeout?: Duration.DurationInput
}

const outOfMemory = new ParseError({
  code: "out_of_memory",
  message: "The document takes too much memory to read. Split it, or save it in a simpler form."
})
const timedOut = new ParseError({
  code: "timed_out",
  message: "The document takes too long to read. Split it, or save it in a simpler form."
})
const broken = new ParseError({
  code: "malformed",
  message: "The document is damaged and could not be read."
})

const mebibyte = 1024 * 1024
const watchInterval = Duration.millis(25)
/** What any document may add, however much the process holds already. */
const always = 96 * mebibyte
/** A thread that has read as many bytes, or made as many characters, gives its memory back by ending. */
const large = 4 * mebibyte

const isOutOfMemory = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ERR_WORKER_OUT_OF_MEMORY"

/** Without environment, arguments and output: the thread reads documents and nothing else. */
const start = (script: URL, memoryMb: number): Worker => {
  const worker = new Worker(script, {
    env: {},
    argv: [],
    execArgv: [],
    stdin: false,
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 }
  })
  // Libraries complain about documents on both; unread, the complaints would pile up.
  worker.stdout.resume()
  worker.stderr.resume()
  worker.unref()
  return worker
}

const decodeAnswer = Schema.decodeUnknown(Answer)

/** Sends a copy of the bytes, whose memory moves to the thread, and waits for the answer. */
const ask = (worker: Worker, job: Job): Effect.Effect<unknown, ParseError> =>
  Effect.async((resume) => {
    const settle = (outcome: Effect.Effect<unknown, ParseError>) => {
      stop()
      resume(outcome)
    }
    const onMessage = (message: unknown) => settle(Effect.succeed(message))
    const onError = (error: unknown) => settle(Effect.fail(isOutOfMemory(error) ? outOfMemory : broken))
    const onExit = () => settle(Effect.fail(broken))
    const stop = () => worker.off("message", onMessage).off("error", onError).off("exit", onExit)
    worker.on("message", onMessage).on("error", onError).on("exit", onExit)
    const bytes = new Uint8Array(job.request.bytes)
    worker.postMessage({ ...job, request: { ...job.request, bytes } }, [bytes.buffer])
    return Effect.sync(stop)
  })

/**
 * Fails when the process grows by more than `growth` bytes, or past `most`: buffers lie outside the heap that the thread's
 * own limit bounds.
 */
const watchMemory = (growth: number, most: number): Effect.Effect<never, ParseError> =>
  Effect.suspend(() => {
    const before = memoryUsage.rss()
    const limit = Math.min(before + growth, Math.max(most, before + always))
    return Effect.sync(() => memoryUsage.rss() > limit).pipe(
      Effect.flatMap((over) => (over ? Effect.fail(outOfMemory) : Effect.void)),
      Effect.delay(watchInterval),
      Effect.forever
    )
  })

const make = (options: WorkerOptions) =>
  Effect.gen(function* () {
    const {
      script,
      memoryMb = 192,
      buffersMb = 128,
      processMb = 940,
      timeout = "1 minute",
      idleTimeout = "1 minute"
    } = options
    const limits = {
      maxPages: options.maxPages ?? defaultLimits.maxPages,
      maxCharacters: options.maxCharacters ?? defaultLimits.maxCharacters
    }
    const turn = yield* Effect.makeSemaphore(1)
    const idle = yield* FiberHandle.make()
    let current: Worker | undefined

    const end = Effect.suspend(() => {
      const worker = current
      current = undefined
      return worker === undefined ? Effect.void : Effect.ignore(Effect.tryPromise(() => worker.terminate()))
    })
    yield* Effect.addFinalizer(() => end)

    const running = Effect.sync(() => {
      if (current !== undefined) return current
      const worker = start(script, memoryMb)
      // A document may break its thread after the answer, when nobody asks: without a listener that would end the process.
      worker.on("error", () => undefined)
      worker.on("exit", () => {
        if (current === worker) current = undefined
      })
      current = worker
      return worker
    })
    const endLater = FiberHandle.run(idle, Effect.delay(turn.withPermits(1)(end), idleTimeout))

    const exchange = (request: ParseRequest) =>
      Effect.gen(function* () {
        yield* FiberHandle.clear(idle)
        const worker = yield* running
        const size = request.bytes.length
        const reply = yield* ask(worker, { request, limits }).pipe(
          Effect.raceFirst(watchMemory((memoryMb + buffersMb) * mebibyte, processMb * mebibyte)),
          Effect.timeoutFail({ duration: timeout, onTimeout: () => timedOut })
        )
        const answer = yield* Effect.mapError(decodeAnswer(reply), () => broken)
        const made = answer._tag === "Parsed" ? answer.document.content.length : 0
        if (size > large || made > large) yield* end
        return answer
      }).pipe(
        // Whatever else happened than an answer, the thread is in the middle of something.
        Effect.onExit((exit) => (Exit.isSuccess(exit) ? endLater : end))
      )

    const parse = Effect.fn("DocumentParser.parse")(function* (request: ParseRequest) {
      const answer = yield* turn.withPermits(1)(exchange(request))
      if (answer._tag === "Failed")
        return yield* new ParseError({ code: answer.code, message: answer.message })
      return answer.document
    })

    return { parse }
  })

export const layerWorker = (options: WorkerOptions) => Layer.scoped(DocumentParser, make(options))
