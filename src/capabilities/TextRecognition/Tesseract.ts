/**
 * Recognizes text with Tesseract in a worker thread, offline, in English. The thread reads one image after another,
 * owners in turns, and ends when unused. A thread that hangs, dies or is interrupted is replaced.
 */
import { memoryUsage } from "node:process"
import { Worker } from "node:worker_threads"
import { types } from "node:util"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { withSharedPermit } from "../../concurrency/CurrentOwner.ts"
import { FairLimiter } from "../../concurrency/FairLimiter.ts"
import { isolated, makeThread } from "../../concurrency/Thread.ts"
import { watchMemory } from "../../concurrency/WatchMemory.ts"
import { sanitize } from "../../domain/Text.ts"
import { packageMissing } from "../../domain/OptionalPackage.ts"
import { RecognitionError, TextRecognition } from "../TextRecognition.ts"
import { imageFormat } from "./ImageHeader.ts"
import { Answer, type Job } from "./Messages.ts"
import { MiB } from "../../domain/Bytes.ts"

export interface TesseractOptions {
  /** The built `workers/recognize.ts`. */
  readonly script: URL
  /** Maximum number of pixels of an image; default: 25 million, which is above a page at 600 dots per inch. */
  readonly maxPixels?: number
  /** Maximum growth of the process while an image is read, in MiB; default: 512. */
  readonly memoryMb?: number
  /** Time-out for one image; default: one minute. */
  readonly timeout?: Duration.DurationInput
  /** An unused thread ends after this time; default: one minute. */
  readonly idleTimeout?: Duration.DurationInput
}

const recognitionError = (code: RecognitionError["code"], message: string) =>
  new RecognitionError({ code, message })

const unsupported = recognitionError(
  "unsupported_type",
  "The image has an unsupported type. Save it as PNG, JPEG, WebP or GIF."
)
const notInstalled = recognitionError("unsupported_type", packageMissing("Reading text in images").message)
const malformed = recognitionError(
  "malformed",
  "The image is damaged and could not be read. Save it again as PNG or JPEG."
)
const timedOut = recognitionError(
  "timed_out",
  "The image takes too long to read. Make it smaller, or cut it into several."
)
const outOfMemory = recognitionError(
  "out_of_memory",
  "The image takes too much memory to read. Make it smaller, or cut it into several."
)
const tooLarge = (pixels: number) =>
  recognitionError(
    "too_large",
    `The image has more than ${Math.floor(pixels / 1_000_000)} million pixels. Make it smaller, or cut it into several.`
  )

/** Minimum confidence, from 0 to 100. Below it, the image probably contains no text. */
const minConfidence = 30
/** Maximum number of waiting images. */
const maxWaiting = 10_000
/** Interval at which the memory of the process is checked. */
const watchInterval = Duration.millis(250)

const startWorker = (script: URL): Worker =>
  new Worker(script, {
    ...isolated,
    resourceLimits: { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 }
  })

const decodeAnswer = Schema.decodeUnknown(Answer)

const make = (options: TesseractOptions) =>
  Effect.gen(function* () {
    const { script, maxPixels = 25_000_000, memoryMb = 512 } = options
    const { timeout = "1 minute", idleTimeout = "1 minute" } = options
    const limiter = new FairLimiter({ name: "text-recognition", permits: 1, maxWaiting })
    const thread = yield* makeThread({ start: () => startWorker(script), idleTimeout })
    const tooMuchMemory = watchMemory({
      usedBytes: () => memoryUsage.rss(),
      limitOf: (before) => before + memoryMb * MiB,
      error: outOfMemory,
      interval: watchInterval
    })

    const refusals = { unsupported_type: unsupported, malformed, too_large: tooLarge(maxPixels) }

    /** The memory of `bytes` is transferred to the thread. */
    const recognizeInThread = (bytes: Uint8Array) =>
      thread
        .use((ask) =>
          Effect.gen(function* () {
            const job: Job = { bytes, maxPixels }
            const transfer = types.isArrayBuffer(bytes.buffer) ? [bytes.buffer] : []
            const reply = yield* ask(job, { transfer }).pipe(
              Effect.raceFirst(tooMuchMemory),
              Effect.timeoutFail({ duration: timeout, onTimeout: () => timedOut })
            )
            const answer = yield* Effect.mapError(decodeAnswer(reply), () => malformed)
            if (answer._tag === "Missing") return yield* notInstalled
            if (answer._tag === "Refused") return yield* refusals[answer.code]
            return answer._tag === "Failed" ? yield* malformed : answer
          })
        )
        .pipe(Effect.catchTag("ThreadEnded", () => malformed))

    const recognize = Effect.fn("TextRecognition.recognize")(function* (bytes: Uint8Array) {
      if (imageFormat(bytes) === undefined) return yield* unsupported
      const { text, confidence } = yield* Effect.suspend(() => recognizeInThread(new Uint8Array(bytes))).pipe(
        withSharedPermit(limiter, () => timedOut)
      )
      return confidence < minConfidence ? "" : sanitize(text).trim()
    })
    const mediaType = (bytes: Uint8Array) => {
      const format = imageFormat(bytes)
      return format === undefined ? undefined : `image/${format}`
    }
    return { mediaType, recognize }
  })

/** English. The model ships with the package; nothing is downloaded. */
export const layerTesseract = (options: TesseractOptions) => Layer.scoped(TextRecognition, make(options))
