/**
 * Parses in worker threads with limits on memory and time. A thread parses documents one after another. A thread that
 * hangs, dies or is interrupted is replaced. There are two threads, and one owner uses one of them at a time, so that
 * slow documents never delay another owner. Small waiting documents of one owner are sent in one message. If it fails,
 * each is sent again alone.
 */
import { memoryUsage } from "node:process"
import { Worker } from "node:worker_threads"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as FiberRef from "effect/FiberRef"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { currentOwner } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { type Ask, isolated, makeThread } from "../../concurrency/Thread.ts"
import { watchMemory } from "../../concurrency/WatchMemory.ts"
import { codeOf } from "../../domain/ThrownErrors.ts"
import { DocumentParser, ParseError, type ParseRequest } from "../DocumentParser.ts"
import { defaultLimits } from "./Limits.ts"
import { type Answer, Answers, type Job } from "./Messages.ts"
import { MiB } from "../../domain/Bytes.ts"

export interface WorkerOptions {
  /** The built `workers/parse.ts`. */
  readonly script: URL
  /** Heap limit of the thread in MiB; default: 192. */
  readonly memoryMb?: number
  /** Maximum growth of the process beyond that heap while a document is parsed, in MiB; default: 128. */
  readonly buffersMb?: number
  /**
   * Maximum memory of the whole process while a document is parsed, in MiB; default: 940. A document that exceeds it
   * fails, unless it has hardly added to it.
   */
  readonly processMb?: number
  /** Time-out for one document; default: one minute. */
  readonly timeout?: Duration.DurationInput
  /** Default: 3,000. */
  readonly maxPages?: number
  /** Maximum length of a document's text in characters; default: ten million. */
  readonly maxCharacters?: number
  /** An unused thread ends after this time; default: one minute. */
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
const workerStopped = new ParseError({
  code: "malformed",
  message: "The document is damaged and could not be read."
})

/** Interval at which the memory of the process is checked. */
const watchInterval = Duration.millis(25)
/** Growth that is allowed even if the process then exceeds `processMb`. */
const minGrowthBytes = 96 * MiB
/** Number of bytes read, or characters produced, after which a thread ends to free its memory. */
const maxThreadBytes = 4 * MiB

/** Maximum number of documents of a message, and their total size in bytes. A larger document is sent alone. */
const maxBatchSize = 4
const maxBatchBytes = 128 * 1024

/** A document that waits for its result. */
interface WaitingDocument {
  readonly request: ParseRequest
  readonly owner: string
  /** Whether it must not share a message with other documents. */
  sentAlone: boolean
  /** Number of times that a thread ran out of memory with it while the other thread was busy. */
  outOfMemoryAttempts: number
  answer: Either.Either<Answer, ParseError> | undefined
}

const isOutOfMemory = (error: unknown): boolean => codeOf(error) === "ERR_WORKER_OUT_OF_MEMORY"

const startWorker = (script: URL, memoryMb: number): Worker =>
  new Worker(script, {
    ...isolated,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 }
  })

const decodeAnswers = Schema.decodeUnknown(Answers)

/** Sends a copy of the bytes, whose memory is transferred to the thread. */
const send = (ask: Ask, job: Job) =>
  Effect.suspend(() => {
    const requests = job.requests.map((request) => ({ ...request, bytes: new Uint8Array(request.bytes) }))
    return ask({ ...job, requests }, { transfer: requests.map(({ bytes }) => bytes.buffer) })
  })

/** Maximum number of attempts that ran out of memory, if the document of the other thread may have been the cause. */
const maxOutOfMemoryAttempts = 3

const make = (options: WorkerOptions) =>
  Effect.gen(function* () {
    const { script, memoryMb = 192, buffersMb = 128, processMb = 940 } = options
    const { timeout = "1 minute", idleTimeout = "1 minute" } = options
    const limits = {
      maxPages: options.maxPages ?? defaultLimits.maxPages,
      maxCharacters: options.maxCharacters ?? defaultLimits.maxCharacters
    }
    const maxGrowthBytes = (memoryMb + buffersMb) * MiB
    const tooMuchMemory = watchMemory({
      usedBytes: () => memoryUsage.rss(),
      limitOf: (before) =>
        Math.min(before + maxGrowthBytes, Math.max(processMb * MiB, before + minGrowthBytes)),
      error: outOfMemory,
      interval: watchInterval
    })
    const threads = yield* Effect.forEach([1, 2], () =>
      makeThread({ start: () => startWorker(script, memoryMb), idleTimeout })
    )
    // Limits one owner to one thread at a time. The other thread is for all other owners.
    const threadPermits = new FairLimiter({
      name: "document-parser",
      permits: threads.length,
      maxPermitsPerOwner: 1,
      maxWaiting: 10_000
    })

    const parseInThread = (thread: (typeof threads)[number], requests: ReadonlyArray<ParseRequest>) =>
      Effect.gen(function* () {
        const size = requests.reduce((sum, { bytes }) => sum + bytes.length, 0)
        const answers = yield* thread
          .use((ask) =>
            send(ask, { requests, limits }).pipe(
              Effect.raceFirst(tooMuchMemory),
              Effect.timeoutFail({ duration: timeout, onTimeout: () => timedOut }),
              Effect.flatMap((reply) => Effect.mapError(decodeAnswers(reply), () => workerStopped)),
              Effect.filterOrFail(
                ({ length }) => length === requests.length,
                () => workerStopped
              )
            )
          )
          .pipe(
            Effect.catchTag("ThreadEnded", ({ error }) =>
              isOutOfMemory(error) ? outOfMemory : workerStopped
            )
          )
        const producedCharacters = answers.reduce(
          (sum, answer) => sum + (answer._tag === "Parsed" ? answer.document.content.length : 0),
          0
        )
        if (size > maxThreadBytes || producedCharacters > maxThreadBytes) yield* thread.end
        return answers
      })

    const waiting = new Set<WaitingDocument>()
    const inThread = new Map<WaitingDocument, (typeof threads)[number]>()

    /** The document, and waiting small ones of the same owner. */
    const batchWith = (document: WaitingDocument): ReadonlyArray<WaitingDocument> => {
      const batch = [document]
      let left = maxBatchBytes - document.request.bytes.length
      for (const other of document.sentAlone ? [] : waiting) {
        const { length } = other.request.bytes
        if (batch.length === maxBatchSize) break
        if (other === document || other.owner !== document.owner || other.sentAlone || inThread.has(other))
          continue
        if (other.answer !== undefined || length > left) continue
        batch.push(other)
        left -= length
      }
      return batch
    }

    const parseBatch = (document: WaitingDocument) =>
      Effect.suspend(() => {
        const batch = batchWith(document)
        const thread = threads.find(({ isBusy }) => !isBusy())
        if (thread === undefined) return Effect.dieMessage("A permit was granted, but there is no thread.")
        for (const each of batch) inThread.set(each, thread)
        const wasOtherThreadBusy = threads.some((other) => other !== thread && other.isBusy())
        return Effect.either(
          parseInThread(
            thread,
            batch.map(({ request }) => request)
          )
        ).pipe(
          Effect.map((answers) => {
            for (const [index, each] of batch.entries()) {
              if (Either.isRight(answers))
                each.answer = Either.fromNullable(answers.right[index], () => workerStopped)
              // One of them has crashed the thread, and it is not known which.
              else if (batch.length > 1) each.sentAlone = true
              else if (
                answers.left === outOfMemory &&
                wasOtherThreadBusy &&
                ++each.outOfMemoryAttempts < maxOutOfMemoryAttempts
              )
                continue
              else each.answer = Either.left(answers.left)
            }
          }),
          Effect.ensuring(
            Effect.sync(() => {
              for (const each of batch) inThread.delete(each)
            })
          )
        )
      })

    /**
     * When a caller is interrupted while a thread parses its document, the thread ends. Other documents of the message
     * are sent again.
     */
    const cancel = (document: WaitingDocument) =>
      Effect.suspend(() => {
        waiting.delete(document)
        const thread = inThread.get(document)
        return thread !== undefined && document.answer === undefined ? thread.end : Effect.void
      })

    const parse = Effect.fn("DocumentParser.parse")(function* (request: ParseRequest) {
      const owner = yield* FiberRef.get(currentOwner)
      const sentAlone = request.bytes.length > maxBatchBytes
      const document: WaitingDocument = {
        request,
        owner,
        sentAlone,
        outOfMemoryAttempts: 0,
        answer: undefined
      }
      waiting.add(document)
      const isPending = () => document.answer === undefined
      yield* Effect.whileLoop({
        while: isPending,
        body: () =>
          threadPermits.withPermit(owner)(
            Effect.suspend(() => (isPending() ? parseBatch(document) : Effect.void))
          ),
        step: () => undefined
      }).pipe(
        Effect.mapError(() => timedOut),
        Effect.ensuring(cancel(document))
      )
      const answer = yield* document.answer ?? Either.left(workerStopped)
      if (answer._tag === "Failed")
        return yield* new ParseError({ code: answer.code, message: answer.message })
      return answer.document
    })

    return { parse }
  })

export const layerWorker = (options: WorkerOptions) => Layer.scoped(DocumentParser, make(options))
