/** What commands read: files and lines of any length, in bounded memory. */
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { afterAll, describe } from "vitest"
import { readBytes, readText } from "../../src/app/cli/input/Files.ts"
import { linesOf } from "../../src/app/cli/input/Lines.ts"

const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-input-"))
afterAll(() => Fs.rmSync(folder, { recursive: true, force: true }))

describe("A file", () => {
  const failed = (message: string) => message
  const read = (file: string) => Effect.either(readBytes(file, 10, failed))

  it.live("is read up to its limit and no further, also where its length is not known", () =>
    Effect.gen(function* () {
      const file = Path.join(folder, "file")
      for (const length of [0, 9, 10]) {
        Fs.writeFileSync(file, "x".repeat(length))
        expect(yield* read(file)).toMatchObject({ right: Buffer.from("x".repeat(length)) })
      }
      // No file system stores its zeros, and no memory would hold them.
      Fs.truncateSync(file, 2 ** 40)
      for (const endless of [file, "/dev/zero"])
        expect(yield* read(endless)).toMatchObject({ left: `${endless} is longer than 10 bytes.` })
      expect(yield* read(folder)).toMatchObject({ left: `${folder} cannot be read.` })
    })
  )

  it.live("is read as text without the byte order mark that some editors write", () =>
    Effect.gen(function* () {
      const file = Path.join(folder, "marked.json")
      Fs.writeFileSync(file, '\uFEFF{"agents": {}}\r\n')
      expect(yield* readText(file, 100, failed)).toBe('{"agents": {}}\r\n')
    })
  )

  it.live("may be a pipe that nobody writes to, until it is interrupted", () =>
    Effect.gen(function* () {
      const pipe = Path.join(folder, "pipe")
      execFileSync("mkfifo", [pipe])
      const writer = Fs.openSync(pipe, "r+")
      expect(yield* Effect.timeoutOption(read(pipe), "100 millis")).toMatchObject({ _tag: "None" })
      Fs.closeSync(writer)
    })
  )
})

describe("Lines", () => {
  const split = (chunks: Iterable<string>, maxLineBytes = 6) =>
    linesOf(
      Stream.map(Stream.fromIterable(chunks), (text) => Buffer.from(text)),
      maxLineBytes
    ).pipe(Stream.runCollect, Effect.map(Chunk.toReadonlyArray))

  it.effect("are the same however their bytes arrive, and one that is too long is null", () =>
    Effect.gen(function* () {
      const text = "one\r\n\nÄäÖ\n1234567\nlast"
      const expected = ["one", "", "ÄäÖ", null, "last"]
      expect(yield* split([text])).toEqual(expected)
      expect(yield* split([`${text}\n`])).toEqual(expected)
      const bytes = Stream.fromIterable(Array.from(Buffer.from(text), (byte) => Buffer.from([byte])))
      expect(Chunk.toReadonlyArray(yield* Stream.runCollect(linesOf(bytes, 6)))).toEqual(expected)
      expect(yield* split([])).toEqual([])
      expect(yield* split(["123", "4567"])).toEqual([null])
    })
  )

  it.live("may be longer than a string or a buffer can be", () =>
    Effect.gen(function* () {
      const part = "x".repeat(2 ** 22)
      function* endless() {
        yield "before\n"
        for (let count = 0; count < 200; count += 1) yield part
        yield "\nafter"
      }
      expect(yield* split(endless())).toEqual(["before", null, "after"])
    })
  )
})
