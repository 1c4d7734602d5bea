import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { strToU8, zipSync } from "fflate"
import { ArtifactStore } from "../../src/capabilities/ArtifactStore.ts"
import {
  ModelError,
  type ModelPart,
  type ModelRequest,
  ModelRuntime
} from "../../src/capabilities/ModelRuntime.ts"
import { layerTesseract } from "../../src/capabilities/TextRecognition/Tesseract.ts"
import { TextRecognition } from "../../src/capabilities/TextRecognition.ts"
import { read } from "../../src/readers/Readers.ts"
import { drawText, toBmp, toGif, toPng, toTiff, whitePicture } from "../fixtures/images/ImageWriter.ts"
import { layerReaders, serveSite } from "./Site.ts"

const collect = (source: Parameters<typeof read>[0]) =>
  read(source, { maxDocuments: 1_000 }).pipe(Stream.runCollect, Effect.map(Chunk.toReadonlyArray))
const put = (bytes: Uint8Array) => Effect.flatMap(ArtifactStore, (store) => Effect.orDie(store.put(bytes)))
const image = (bytes: Uint8Array, fileName = "notice.png") =>
  Effect.flatMap(put(bytes), (artifact) => collect({ type: "IMAGE", config: { artifact, fileName } }))

const notice = drawText(["CALL MERIDIAN", "FOR THE KEYS"])
const white = whitePicture(400, 300)

/** A model that answers with `stream`, and what it was asked. */
const seeing = (stream: Stream.Stream<ModelPart, ModelError>) => {
  const asked: Array<ModelRequest> = []
  const layer = Layer.succeed(ModelRuntime, {
    defaultModel: "eyes",
    contextWindow: 10_000,
    readsPassages: false,
    acceptsImages: true,
    readable: () => [],
    reply: (request) =>
      Stream.suspend(() => {
        asked.push(request)
        return stream
      })
  })
  return { asked, layer: Layer.merge(layerReaders, layer) }
}
const says = (delta: string) => Stream.fromIterable<ModelPart>([{ _tag: "TextDelta", delta }])

describe("An IMAGE source", () => {
  for (const [format, write] of Object.entries({ png: toPng, gif: toGif, bmp: toBmp, tiff: toTiff })) {
    it.live(`The text in a picture is read offline, as ${format}, whatever its name`, () =>
      Effect.gen(function* () {
        const [found, ...others] = yield* image(write(notice), "notice.pdf")
        expect(others).toEqual([])
        expect(found).toMatchObject({ uri: "upload:notice.pdf", title: "notice", format: "text" })
        expect(found?.content).toContain("FOR THE KEYS")
      }).pipe(Effect.provide(layerReaders))
    )
  }

  it.live("A picture that is fetched keeps its configured address", () =>
    Effect.gen(function* () {
      const site = yield* serveSite(() => ({ "/p?n=1": { body: toPng(notice) } }))
      const [found] = yield* collect({ type: "IMAGE", config: { fileUrl: `${site.origin}/p?n=1` } })
      expect(found).toMatchObject({ uri: `${site.origin}/p?n=1`, title: "p" })
    }).pipe(Effect.scoped, Effect.provide(layerReaders))
  )

  it.live("A picture sent as a FILE is read as what it is, and a document sent as an IMAGE, too", () =>
    Effect.gen(function* () {
      const picture = yield* put(toPng(notice))
      const [asFile] = yield* collect({ type: "FILE", config: { artifact: picture, fileName: "a.png" } })
      expect(asFile?.content).toContain("FOR THE KEYS")
      const [asImage] = yield* image(strToU8("BMW opens at seven."), "a.bmp")
      expect(asImage?.content).toBe("BMW opens at seven.")
    }).pipe(Effect.provide(layerReaders))
  )

  it.live("Pictures in a ZIP are read beside its documents", () =>
    Effect.gen(function* () {
      const archive = zipSync({ "a.txt": strToU8("Plain words."), "in/notice.png": toPng(notice) })
      const artifact = yield* put(archive)
      const found = yield* collect({ type: "BULK_UPLOAD", config: { artifact } })
      expect(found.map(({ uri }) => uri)).toEqual(["upload:a.txt", "upload:in/notice.png"])
      expect(found[1]?.content).toContain("FOR THE KEYS")
    }).pipe(Effect.provide(layerReaders))
  )

  it.live("What a model sees stands in a section of its own, beside the text", () => {
    const eyes = seeing(says("A paper notice on a door."))
    return Effect.gen(function* () {
      const [found] = yield* image(toPng(notice))
      expect(found?.format).toBe("markdown")
      expect(found?.content).toMatch(
        /^## Description\n\nA paper notice on a door\.\n\n## Text in the image\n\n[\s\S]*FOR THE KEYS$/
      )
      expect(JSON.stringify(eyes.asked[0]?.prompt)).toContain('"image/png"')
      const [blank] = yield* image(toPng(white))
      expect(blank?.content).toBe("## Description\n\nA paper notice on a door.")
    }).pipe(Effect.provide(eyes.layer))
  })

  const blinds: ReadonlyArray<readonly [string, Stream.Stream<ModelPart, ModelError>]> = [
    ["sees nothing", says("NO IMAGE")],
    ["fails", Stream.fail(new ModelError({ reason: "Rejected", message: "no images", retryable: false }))]
  ]
  for (const [what, stream] of blinds) {
    it.live(`The text alone is kept when the model ${what}`, () =>
      Effect.gen(function* () {
        const [found] = yield* image(toPng(notice))
        expect(found).toMatchObject({ format: "text", content: expect.stringContaining("FOR THE KEYS") })
      }).pipe(Effect.provide(seeing(stream).layer))
    )
  }

  /** The header of a file in the ISO base media format. */
  const isoMedia = (brand: string) =>
    Uint8Array.from([0, 0, 0, 24, ...strToU8(`ftyp${brand}`), 0, 0, 0, 0, ...strToU8(`mif1${brand}`)])

  const hostile: ReadonlyArray<readonly [string, Uint8Array, string, RegExp]> = [
    [
      "declares 60,000 by 60,000 dots",
      toPng(white, { width: 60_000, height: 60_000 }),
      "too_large",
      /25 million/
    ],
    ["breaks off in its header", toPng(white).subarray(0, 18), "malformed", /damaged/],
    ["breaks off in its data", toPng(notice).subarray(0, 200), "malformed", /damaged/],
    [
      "is noise behind a PNG mark",
      Uint8Array.from([...toPng(white).subarray(0, 40), ...strToU8("x".repeat(5_000))]),
      "malformed",
      /damaged/
    ],
    ["holds no text", toPng(white), "empty", /No text/],
    ["is a compressed bitmap", toBmp(white).fill(1, 30, 31), "unsupported_type", /PNG/],
    // Such a picture is a source of type IMAGE already.
    [
      "is a photo of a phone (HEIC)",
      isoMedia("heic"),
      "unsupported_type",
      /^Images of type image\/heic .* PNG/
    ],
    ["is an AVIF", isoMedia("avif"), "unsupported_type", /^Images of type image\/avif .* PNG/]
  ]
  for (const [what, bytes, code, message] of hostile) {
    it.live(`A picture that ${what} fails with ${code}, and the next one is read`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(image(bytes))
        expect(error).toMatchObject({ code, retryable: false, message: expect.stringMatching(message) })
        expect((yield* image(toPng(notice)))[0]?.content).toContain("FOR THE KEYS")
      }).pipe(Effect.provide(layerReaders))
    )
  }
})

describe("Text recognition", () => {
  const script = new URL("../../dist/workers/recognize.js", import.meta.url)

  it.live("A picture that takes too long fails as timed_out, and the next one gets a fresh thread", () =>
    Effect.gen(function* () {
      const { recognize } = yield* TextRecognition
      const error = yield* Effect.flip(recognize(toPng(notice)))
      expect(error.code).toBe("timed_out")
      expect((yield* Effect.flip(recognize(toPng(notice)))).code).toBe("timed_out")
    }).pipe(Effect.provide(layerTesseract({ script, timeout: "5 millis" })))
  )

  it.live("An unused thread ends, and the next picture starts another", () =>
    Effect.gen(function* () {
      const { recognize } = yield* TextRecognition
      for (let turn = 0; turn < 2; turn++) {
        expect(yield* recognize(toPng(notice))).toContain("FOR THE KEYS")
        yield* Effect.sleep("60 millis")
      }
    }).pipe(Effect.provide(layerTesseract({ script, idleTimeout: "10 millis" })))
  )
})
