/** One suite on every backend: text in pictures is read, and a picture that cannot be read fails alone. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import { TextRecognition } from "../../src/capabilities/TextRecognition.ts"
import { layerTesseract } from "../../src/capabilities/TextRecognition/Tesseract.ts"
import { drawText, toBmp, toGif, toPng, toTiff, whitePicture } from "../fixtures/images/ImageWriter.ts"

const notice = drawText(["CALL MERIDIAN", "FOR THE KEYS"])
/** What is read of it without doubt. */
const certain = "FOR THE KEYS"

/** `small` takes fewer dots than the notice has. */
const suite = (name: string, backend: Layer.Layer<TextRecognition>, small: Layer.Layer<TextRecognition>) =>
  describe(name, () => {
    const recognize = (bytes: Uint8Array) =>
      Effect.flatMap(TextRecognition, (recognition) => recognition.recognize(bytes))
    const refused = (bytes: Uint8Array) => Effect.map(Effect.flip(recognize(bytes)), ({ code }) => code)

    it.live(
      "reads the lines of a picture of every kind, by its bytes, and knows the kind by its first ones",
      () =>
        Effect.gen(function* () {
          const { mediaType } = yield* TextRecognition
          for (const [kind, write] of Object.entries({ png: toPng, gif: toGif, bmp: toBmp, tiff: toTiff })) {
            const bytes = write(notice)
            expect(yield* recognize(bytes)).toMatch(/^CALL \w+\nFOR THE KEYS$/u)
            expect([kind, mediaType(bytes)]).toEqual([kind, `image/${kind}`])
          }
          expect(mediaType(new TextEncoder().encode("%PDF-1.7"))).toBeUndefined()
          expect(mediaType(new Uint8Array())).toBeUndefined()
        }).pipe(Effect.provide(backend))
    )

    it.live("is empty for a picture without text", () =>
      Effect.map(recognize(toPng(whitePicture(300, 200))), (text) => expect(text).toBe("")).pipe(
        Effect.provide(backend)
      )
    )

    it.live("says what is wrong with what cannot be read, and reads the next one", () =>
      Effect.gen(function* () {
        const whole = toPng(notice)
        expect(yield* refused(new TextEncoder().encode("no picture at all"))).toBe("unsupported_type")
        expect(yield* refused(new Uint8Array())).toBe("unsupported_type")
        expect(yield* refused(whole.subarray(0, 12))).toBe("malformed")
        expect(yield* refused(toPng(notice, { width: 60_000, height: 60_000 }))).toBe("too_large")
        expect(yield* recognize(whole)).toContain(certain)
      }).pipe(Effect.provide(backend))
    )

    it.live("refuses more dots than it was told to take", () =>
      Effect.map(refused(toPng(notice)), (code) => expect(code).toBe("too_large")).pipe(Effect.provide(small))
    )

    it.live("stops at once when nobody waits any more, and serves who comes next", () =>
      Effect.gen(function* () {
        const reading = yield* Effect.fork(recognize(toPng(drawText(Array(30).fill("MERIDIAN KEYS")))))
        yield* Effect.yieldNow()
        yield* Fiber.interrupt(reading)
        expect(yield* recognize(toPng(notice))).toContain(certain)
      }).pipe(Effect.provide(backend))
    )
  })

const script = new URL("../../dist/workers/recognize.js", import.meta.url)

suite(
  "Text recognised by Tesseract",
  layerTesseract({ script }),
  layerTesseract({ script, maxPixels: 1_000 })
)
