/** Hostile files through the real worker thread: each fails alone, in bounded memory, with words. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import { strToU8 } from "fflate"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { DocumentParser } from "../../../src/capabilities/DocumentParser.ts"
import { layerWorker } from "../../../src/capabilities/DocumentParser/Worker.ts"
import { TextRecognition } from "../../../src/capabilities/TextRecognition.ts"
import { layerTesseract } from "../../../src/capabilities/TextRecognition/Tesseract.ts"
import {
  endlessDocuments,
  type Hostile,
  hostileDocuments,
  hostileImages
} from "../../fixtures/documents/Hostile.ts"
import { toPng, whitePicture } from "../../fixtures/images/ImageWriter.ts"

const script = new URL("../../../dist/workers/parse.js", import.meta.url)
const mebibyte = 1024 * 1024
/** What the process may grow by while one is read: with a server of 300 MiB that stays below one GiB. */
const growth = 700

/** Peak memory while `work` ran, in MiB above the level before it, and the delay of events. */
const watched = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = process.memoryUsage.rss()
    let peak = before
    const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 20)
    const delay = monitorEventLoopDelay({ resolution: 5 })
    delay.enable()
    const result = yield* Effect.ensuring(
      work,
      Effect.sync(() => {
        delay.disable()
        clearInterval(timer)
      })
    )
    return {
      result,
      grown: Math.round((peak - before) / mebibyte),
      late: Math.round(delay.percentile(99) / 1e6)
    }
  })

/** The ceiling of the whole process is a server's: what other tests left in this one counts for nothing here. */
const layer = Layer.suspend(() => layerWorker({ script, processMb: 16_384 }))
const pictures = layerTesseract({ script: new URL("../../../dist/workers/recognize.js", import.meta.url) })

/** The outcome, which must be the expected one, with a message for the uploader. */
const judge = (
  { name, outcome }: Hostile,
  result: Either.Either<string, { readonly code: string; readonly message: string }>,
  grown: number,
  late: number
) => {
  const what = Either.match(result, { onLeft: ({ code }) => code, onRight: () => "read" })
  process.stdout.write(`${name}: ${what}, ${grown} MiB, event loop p99 ${late} ms\n`)
  if ("words" in outcome) expect(Either.getOrThrow(result)).toContain(outcome.words)
  else {
    const { code, message } = Either.getOrThrow(Either.flip(result))
    expect(outcome.codes).toContain(code)
    expect(message).toMatch(/^[A-Z].{20,200}\.$/u)
  }
  expect(grown).toBeLessThan(growth)
}

describe("A hostile document", () => {
  const suite = (documents: ReadonlyArray<Hostile>, layer: Layer.Layer<DocumentParser>) => {
    for (const hostile of documents) {
      it.live(
        `${hostile.name}: reading it is bounded, its outcome clear, and the next document is read`,
        () =>
          Effect.gen(function* () {
            const { parse } = yield* DocumentParser
            const document = hostile.bytes()
            const { result, grown, late } = yield* watched(Effect.either(parse({ bytes: document })))
            judge(
              hostile,
              Either.map(result, ({ content }) => content),
              grown,
              late
            )
            const next = yield* parse({ bytes: strToU8("Good words."), fileName: "good.txt" })
            expect(next.content).toBe("Good words.")
          }).pipe(Effect.provide(layer)),
        120_000
      )
    }
  }
  suite(hostileDocuments, layer)
  suite(
    endlessDocuments,
    Layer.suspend(() => layerWorker({ script, processMb: 16_384, timeout: "8 seconds" }))
  )
})

describe("A hostile picture", () => {
  for (const hostile of hostileImages) {
    it.live(
      `${hostile.name}: reading it is bounded, its outcome clear, and the next picture is read`,
      () =>
        Effect.gen(function* () {
          const { recognize } = yield* TextRecognition
          const picture = hostile.bytes()
          const { result, grown, late } = yield* watched(Effect.either(recognize(picture)))
          judge(hostile, result, grown, late)
          expect(yield* recognize(toPng(whitePicture(300, 200)))).toBe("")
        }).pipe(Effect.provide(pictures)),
      120_000
    )
  }
})
