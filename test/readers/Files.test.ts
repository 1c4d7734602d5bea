import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { strToU8, type Zippable, zipSync } from "fflate"
import { ArtifactStore, refOf } from "../../src/capabilities/ArtifactStore.ts"
import { DocumentParser, ParseError } from "../../src/capabilities/DocumentParser.ts"
import { RecognitionError, TextRecognition } from "../../src/capabilities/TextRecognition.ts"
import { read } from "../../src/readers/Readers.ts"
import { unzipEntry, zipEntries } from "../../src/readers/Zip.ts"
import { handbook } from "../fixtures/documents/PdfWriter.ts"
import { layerReaders, serveSite } from "./Site.ts"

const collect = (source: Parameters<typeof read>[0]) =>
  read(source, { maxDocuments: 1_000 }).pipe(Stream.runCollect, Effect.map(Chunk.toReadonlyArray))

const put = (bytes: Uint8Array) => Effect.flatMap(ArtifactStore, (store) => Effect.orDie(store.put(bytes)))

const bulk = (archive: Uint8Array) =>
  Effect.flatMap(put(archive), (artifact) => collect({ type: "BULK_UPLOAD", config: { artifact } }))

const test = (
  sentence: string,
  body: Effect.Effect<void, unknown, Scope.Scope | Layer.Layer.Success<typeof layerReaders>>
) => it.live(sentence, () => Effect.scoped(body).pipe(Effect.provide(layerReaders)))

const zip = (files: Readonly<Record<string, string | Uint8Array>>, level: 0 | 6 = 6) => {
  const entries: Zippable = {}
  for (const [name, content] of Object.entries(files)) {
    entries[name] = typeof content === "string" ? strToU8(content) : content
  }
  return zipSync(entries, { level })
}

describe("A FILE source", () => {
  test(
    "A fetched file is read by its bytes and named by its configured address",
    Effect.gen(function* () {
      const site = yield* serveSite(() => ({
        "/get?id=1": { status: 302, headers: { location: "/signed/x" } },
        "/signed/x": {
          headers: { "content-type": "application/octet-stream", etag: '"7"' },
          body: handbook(3)
        }
      }))
      const fileUrl = `${site.origin}/get?id=1`
      const [found] = yield* collect({ type: "FILE", config: { fileUrl, fileName: "guide.pdf" } })
      expect(found).toMatchObject({ uri: fileUrl, title: "Meridian Handbook", etag: '"7"' })
      expect(found?.content).toContain("station 3 opens")
    })
  )

  test(
    "An uploaded file is read from its stored original and named by its name",
    Effect.gen(function* () {
      const artifact = yield* put(strToU8("Plain words."))
      const [found] = yield* collect({ type: "FILE", config: { artifact, fileName: "my notes.txt" } })
      expect(found).toEqual({
        uri: "upload:my notes.txt",
        title: "my notes",
        format: "text",
        content: "Plain words."
      })
    })
  )

  test(
    "A file that cannot be had fails and says why",
    Effect.gen(function* () {
      const site = yield* serveSite(() => ({ "/a.bin": { body: new Uint8Array(100) } }))
      const why = (path: string) =>
        Effect.flip(collect({ type: "FILE", config: { fileUrl: site.origin + path } }))
      expect((yield* why("/none.pdf")).message).toMatch(/^The file answered 404\./)
      expect(yield* why("/a.bin")).toMatchObject({ code: "unsupported_type", retryable: false })
      const lost = { artifact: refOf(strToU8("never stored")), fileName: "a.txt" }
      expect(yield* Effect.flip(collect({ type: "FILE", config: lost }))).toMatchObject({
        code: "artifact_missing"
      })
    })
  )
})

describe("A file that the service had no time or memory to read", () => {
  for (const code of ["timed_out", "out_of_memory"] as const) {
    const parse = () => Effect.fail(new ParseError({ code, message: "Later." }))
    const later = Effect.provideService(DocumentParser, { parse })

    test(
      `may be read later: ${code}`,
      Effect.gen(function* () {
        const artifact = yield* put(strToU8("Plain words."))
        const why = yield* Effect.flip(collect({ type: "FILE", config: { artifact, fileName: "a.txt" } }))
        expect(why).toMatchObject({ code, retryable: true })
        const recognition = {
          mediaType: () => "image/png",
          recognize: () => Effect.fail(new RecognitionError({ code, message: "Later." }))
        }
        const picture = yield* collect({ type: "IMAGE", config: { artifact, fileName: "a.png" } }).pipe(
          Effect.provideService(TextRecognition, recognition),
          Effect.flip
        )
        expect(picture).toMatchObject({ code, retryable: true })
        expect(yield* Effect.flip(bulk(zip({ "a.txt": "x", "b.txt": "y" })))).toMatchObject({
          code,
          retryable: true
        })
      }).pipe(later)
    )
  }
})

describe("A BULK_UPLOAD source", () => {
  test(
    "Every readable document of the ZIP is read; folders, hidden files and unreadable ones are left out",
    Effect.gen(function* () {
      const found = yield* bulk(
        zip({
          "docs/": new Uint8Array(),
          "docs/a.md": "# Alpha\n\nFirst.",
          "docs/h.pdf": handbook(2),
          "docs/pixel.png": new Uint8Array(Buffer.from("89504e470d0a1a0a0000000d49484452", "hex")),
          "docs/inner.zip": zip({ "x.txt": "nested archives are not opened" }),
          "docs/.secret": "hidden",
          ".git/config": "hidden",
          "__MACOSX/docs/._a.md": "resource fork",
          "b.txt": "Second."
        })
      )
      expect(found.map(({ uri, title }) => [uri, title])).toEqual([
        ["upload:docs/a.md", "Alpha"],
        ["upload:docs/h.pdf", "Meridian Handbook"],
        ["upload:b.txt", "b"]
      ])
    })
  )

  test(
    "Names of entries never become paths, and each document has a uri of its own",
    Effect.gen(function* () {
      const archive = zip({
        "../../etc/passwd.txt": "one",
        "C:\\x\\y.txt": "two",
        "nul\u0007.txt": "three",
        "nul.txt": "four"
      })
      const found = yield* bulk(archive)
      expect(found.map(({ uri }) => uri)).toEqual([
        "upload:../../etc/passwd.txt",
        "upload:C:/x/y.txt",
        "upload:nul.txt",
        "upload:nul.txt (2)"
      ])
    })
  )

  it.effect("Names that are not UTF-8 are in the code page of old archives", () =>
    Effect.gen(function* () {
      const archive = zip({ "Pr00fung.txt": "x", "Ärzte.txt": "y" })
      const old = Buffer.from(archive.buffer)
      for (let at = old.indexOf("Pr00"); at !== -1; at = old.indexOf("Pr00", at))
        old.set([0x81, 0xe1], at + 2)
      expect((yield* zipEntries(archive)).map(({ name }) => name)).toEqual(["Prüßfung.txt", "Ärzte.txt"])
    })
  )

  test(
    "A name that is cut to its length is not cut within a character",
    Effect.gen(function* () {
      const names = [0, 1].map((place) => `${"😀".repeat(130)}${"x".repeat(place)}.txt`)
      const found = yield* bulk(zip(Object.fromEntries(names.map((name, place) => [name, `words ${place}`]))))
      expect(found.map(({ title, uri }) => [uri.isWellFormed(), title.isWellFormed()])).toEqual([
        [true, true],
        [true, true]
      ])
    })
  )

  test(
    "An entry packed suspiciously tightly is left out and the others are read",
    Effect.gen(function* () {
      const archive = zip({ "bomb.txt": "a".repeat(40 * 1024 * 1024), "ok.txt": "Fine." })
      expect((yield* bulk(archive)).map(({ uri }) => uri)).toEqual(["upload:ok.txt"])
      const alone = yield* Effect.flip(bulk(zip({ "bomb.txt": "a".repeat(40 * 1024 * 1024) })))
      expect(alone.code).toBe("too_large")
      expect(alone.message).toMatch(/None of the 1 files/)
    })
  )

  test(
    "A directory that lies about sizes changes nothing about the cap",
    Effect.gen(function* () {
      const archive = zip({ "bomb.txt": "a".repeat(40 * 1024 * 1024), "ok.txt": "Fine." })
      const view = new DataView(archive.buffer, archive.byteOffset)
      for (let at = 0; at < archive.length - 4; at++) {
        if (view.getUint32(at, true) === 0x02014b50) view.setUint32(at + 24, 5, true)
      }
      expect((yield* bulk(archive)).map(({ uri }) => uri)).toEqual(["upload:ok.txt"])
    })
  )

  test(
    "An archive of more than 2,000 files, of nothing, of none, and none at all each say what is wrong",
    Effect.gen(function* () {
      const withMetadata = Array.from({ length: 700 }, (_, place) => [
        [`${place}/`, ""],
        [`${place}/a.txt`, `Words ${place}`],
        [`__MACOSX/${place}/._a.txt`, "Metadata"]
      ])
      expect(yield* bulk(zip(Object.fromEntries(withMetadata.flat())))).toHaveLength(700)
      const many = zip(Object.fromEntries(Array.from({ length: 2_001 }, (_, place) => [`${place}.txt`, "x"])))
      expect((yield* Effect.flip(bulk(many))).code).toBe("too_many_entries")
      expect((yield* Effect.flip(bulk(zip({})))).code).toBe("empty")
      expect((yield* Effect.flip(bulk(strToU8("no zip at all, but long enough")))).code).toBe("malformed")
      expect((yield* Effect.flip(collect({ type: "BULK_UPLOAD", config: {} }))).code).toBe("no_archive")
    })
  )

  test(
    "An encrypted entry says so",
    Effect.gen(function* () {
      const archive = zip({ "a.txt": "x" })
      const view = new DataView(archive.buffer, archive.byteOffset)
      for (let at = 0; at < archive.length - 4; at++) {
        if (view.getUint32(at, true) === 0x02014b50) view.setUint16(at + 8, 1, true)
      }
      expect(yield* Effect.flip(bulk(archive))).toMatchObject({ code: "encrypted" })
    })
  )

  it.effect.prop(
    "What was packed comes out again, byte for byte, whatever the compression",
    {
      contents: FastCheck.array(FastCheck.uint8Array({ maxLength: 3_000 }), { minLength: 1, maxLength: 5 }),
      level: FastCheck.constantFrom(0 as const, 6 as const)
    },
    ({ contents, level }) =>
      Effect.gen(function* () {
        const archive = zip(Object.fromEntries(contents.map((bytes, place) => [`f${place}`, bytes])), level)
        const entries = yield* zipEntries(archive)
        const found = yield* Effect.forEach(entries, (entry) => unzipEntry(archive, entry, 1_000_000))
        expect(found.map((bytes) => [...bytes])).toEqual(contents.map((bytes) => [...bytes]))
      }),
    { fastCheck: { numRuns: 50 } }
  )

  it.effect.prop(
    "A damaged archive fails with words, never with a defect",
    { place: FastCheck.nat(600), value: FastCheck.nat(255), cut: FastCheck.nat(600) },
    ({ place, value, cut }) =>
      Effect.gen(function* () {
        const archive = zip({ "a.txt": "some words ".repeat(20), "b/c.md": "# More" })
        archive[place % archive.length] = value
        const damaged = cut % 3 === 0 ? archive.slice(0, cut) : archive
        const entries = yield* Effect.orElseSucceed(zipEntries(damaged), () => [])
        yield* Effect.forEach(entries, (entry) => Effect.either(unzipEntry(damaged, entry, 1_000_000)))
      }),
    { fastCheck: { numRuns: 300 } }
  )
})
