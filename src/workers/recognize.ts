/**
 * Entry of the recognition's worker thread: one message per image, one per answer. The library starts another thread.
 */
import { createRequire } from "node:module"
import * as path from "node:path"
import { parentPort } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { optional } from "../domain/OptionalPackage.ts"
import { bitmapToPpm } from "../capabilities/TextRecognition/Bitmap.ts"
import { imageFormat, imageSize } from "../capabilities/TextRecognition/ImageHeader.ts"
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

type Refused = Extract<Answer, { readonly _tag: "Refused" }>
const refused = (code: Refused["code"]): Refused => ({ _tag: "Refused", code })

const recognizer = Effect.runSync(Effect.cached(start))

/**
 * The bytes for the library. Refuses an image whose header declares too many pixels, or no size. The headers of a large
 * GIF or JPEG take up to a second, so they are read in this thread.
 */
const prepare = ({ bytes, maxPixels }: Job): Uint8Array | Refused => {
  const format = imageFormat(bytes)
  if (format === undefined) return refused("unsupported_type")
  const size = imageSize(bytes, format)
  if (size === undefined) return refused("malformed")
  if (size.width * size.height > maxPixels) return refused("too_large")
  return format === "bmp" ? (bitmapToPpm(bytes) ?? refused("unsupported_type")) : bytes
}

const answer = (message: unknown): Effect.Effect<Answer> =>
  Effect.gen(function* () {
    const prepared = prepare(yield* Schema.decodeUnknown(Job)(message))
    if ("_tag" in prepared) return prepared
    const worker = yield* recognizer
    const { data } = yield* Effect.tryPromise(() => worker.recognize(Buffer.from(prepared)))
    return { _tag: "Read", text: data.text, confidence: data.confidence } as const
  }).pipe(
    Effect.catchTag("PackageMissing", () => Effect.succeed({ _tag: "Missing" } as const)),
    Effect.catchAllCause(() => Effect.succeed({ _tag: "Failed" } as const))
  )

parentPort?.on("message", (message: unknown) => {
  Effect.runFork(Effect.map(answer(message), (reply) => parentPort?.postMessage(reply)))
})
