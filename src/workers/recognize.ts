/**
 * Entry of the recognition's worker thread: one message per image, one per answer. The library starts another thread.
 */
import { createRequire } from "node:module"
import * as path from "node:path"
import { parentPort } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { optional } from "../domain/OptionalPackage.ts"
import { type Answer, Job } from "../capabilities/TextRecognition/Messages.ts"

/** The library and the folder of the English model of its package. Nothing is downloaded or written. */
const packages = optional("Reading text in images", async () => {
  const { default: Tesseract } = await import("tesseract.js")
  const model = createRequire(import.meta.url).resolve("@tesseract.js-data/eng/package.json")
  return { Tesseract, langPath: path.join(path.dirname(model), "4.0.0_best_int") }
})

const start = Effect.flatMap(packages, ({ Tesseract, langPath }) =>
  Effect.tryPromise(() =>
    Tesseract.createWorker("eng", Tesseract.OEM.LSTM_ONLY, {
      langPath,
      gzip: true,
      cacheMethod: "none",
      // Without a handler the library throws an uncaught exception.
      errorHandler: () => undefined
    })
  )
)

const recognizer = Effect.runSync(Effect.cached(start))

const answer = (message: unknown): Effect.Effect<Answer> =>
  Effect.gen(function* () {
    const { bytes } = yield* Schema.decodeUnknown(Job)(message)
    const worker = yield* recognizer
    const { data } = yield* Effect.tryPromise(() => worker.recognize(Buffer.from(bytes)))
    return { _tag: "Read", text: data.text, confidence: data.confidence } as const
  }).pipe(
    Effect.catchTag("PackageMissing", () => Effect.succeed({ _tag: "Missing" } as const)),
    Effect.catchAllCause(() => Effect.succeed({ _tag: "Failed" } as const))
  )

parentPort?.on("message", (message: unknown) => {
  Effect.runFork(Effect.map(answer(message), (reply) => parentPort?.postMessage(reply)))
})
