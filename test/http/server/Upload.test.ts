import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { describe, expect, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import { ValidationError } from "../../../src/domain/Errors.ts"
import * as Multipart from "../../../src/http/server/Multipart.ts"
import * as Upload from "../../../src/http/server/Upload.ts"

const boundary = "----7e3d"

/** The form that the platform writes. */
const written = async (parts: ReadonlyArray<readonly [string, Uint8Array | string]>) => {
  const form = new FormData()
  for (const [name, value] of parts) {
    if (typeof value === "string") form.append(name, value)
    else form.append(name, new Blob([Uint8Array.from(value)], { type: "image/png" }), `${name}.png`)
  }
  const response = new Response(form)
  const type = response.headers.get("content-type") ?? ""
  return { type, bytes: new Uint8Array(await response.arrayBuffer()) }
}

/** `bytes` in pieces as long as `cuts` say, again and again. */
const inPieces = (bytes: Uint8Array, cuts: ReadonlyArray<number>) => {
  const pieces: Array<Uint8Array> = []
  for (let at = 0, place = 0; at < bytes.length; place++) {
    const length = cuts[place % cuts.length] ?? 1
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return Stream.fromIterable(pieces)
}

const readAll = (body: Stream.Stream<Uint8Array, ValidationError>, delimiter: string) =>
  Effect.gen(function* () {
    const found: Array<readonly [string, string | null, Buffer]> = []
    yield* Multipart.forEachPart(body, delimiter, ({ field, fileName }, content) =>
      Effect.map(Stream.runCollect(content), (chunks) => {
        found.push([field, fileName, Buffer.concat(Array.from(chunks))])
      })
    )
    return found
  }).pipe(Effect.scoped)

const Bytes = FastCheck.oneof(
  FastCheck.uint8Array({ maxLength: 300 }),
  // Nearly delimiters.
  FastCheck.constantFrom("\r\n--", `\r\n--${boundary.slice(0, 5)}`, "\r", "\r\n\r\n").map((text) =>
    Buffer.from(text)
  )
)

describe("A form", () => {
  it("is read correctly for any division into chunks", () =>
    FastCheck.assert(
      FastCheck.asyncProperty(
        FastCheck.array(
          FastCheck.tuple(
            FastCheck.constantFrom("files", "message", 'ü"b'),
            FastCheck.oneof(Bytes, FastCheck.string())
          ),
          { maxLength: 8 }
        ),
        FastCheck.array(FastCheck.integer({ min: 1, max: 70 }), { minLength: 1, maxLength: 5 }),
        async (parts, cuts) => {
          const { bytes, type } = await written(parts)
          const [, delimiter = ""] = /boundary=(.*)$/.exec(type) ?? []
          const found = await Effect.runPromise(readAll(inPieces(bytes, cuts), delimiter))
          expect(found).toEqual(
            parts.map(([name, value]) => [
              name,
              typeof value === "string" ? null : `${name}.png`,
              // Forms write line breaks their own way, and no lone surrogates.
              Buffer.from(
                typeof value === "string" ? value.replace(/\r\n|\r|\n/g, "\r\n").toWellFormed() : value
              )
            ])
          )
        }
      ),
      { numRuns: 150 }
    ))

  it.effect("is read with unquoted names, as some clients write them", () =>
    Effect.gen(function* () {
      const parts = [
        `--${boundary}\r\nContent-Type: text/plain; charset=utf-8\r\n`,
        `Content-Disposition: form-data; name=message\r\n\r\nHi\r\n--${boundary}\r\n`,
        "Content-Disposition: form-data; name=files; filename=a.png; filename*=utf-8''%C3%A4.png\r\n\r\n1\r\n",
        `--${boundary}\r\nContent-Disposition: form-data; name=files; filename=b.png\r\n\r\n2\r\n--${boundary}--\r\n`
      ]
      expect(yield* readAll(Stream.make(Buffer.from(parts.join(""))), boundary)).toEqual([
        ["message", null, Buffer.from("Hi")],
        ["files", "ä.png", Buffer.from("1")],
        ["files", "b.png", Buffer.from("2")]
      ])
    })
  )

  it.effect("that ends anywhere fails, and never hangs", () =>
    Effect.gen(function* () {
      const { bytes, type } = yield* Effect.promise(() =>
        written([
          ["message", "Hi"],
          ["files", Buffer.from("some bytes\r\n--")]
        ])
      )
      const [, delimiter = ""] = /boundary=(.*)$/.exec(type) ?? []
      // The last line break is no part of the form.
      for (let length = 0; length < bytes.length - 2; length++) {
        const failure = yield* Effect.flip(readAll(inPieces(bytes.subarray(0, length), [7]), delimiter))
        expect(failure._tag).toBe("VALIDATION_ERROR")
      }
    })
  )

  it.effect("that stops arriving is refused after 30 seconds, one that never ends after 4 minutes", () =>
    Effect.gen(function* () {
      const head = Buffer.from(
        `--${boundary}\r\ncontent-disposition: form-data; name="files"; filename="a.png"\r\n\r\n`
      )
      const request = (every: Duration.DurationInput | null) => {
        const later =
          every === null ? Stream.never : Stream.repeatEffect(Effect.delay(Effect.succeed(head), every))
        return Effect.map(Stream.toReadableStreamEffect(Stream.concat(Stream.make(head), later)), (body) =>
          HttpServerRequest.fromWeb(
            new Request("http://localhost/", {
              method: "POST",
              headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
              body,
              duplex: "half"
            } as RequestInit)
          )
        )
      }
      const drain = ({ content }: Upload.UploadedFile) => Stream.runDrain(content)
      for (const { every, bodySeconds } of [
        { every: null, bodySeconds: 30 },
        { every: "20 seconds", bodySeconds: 240 }
      ] as const) {
        const reading = yield* Effect.fork(
          Effect.flip(Effect.scoped(Upload.read(yield* request(every), drain)))
        )
        const step = Effect.zipRight(
          Effect.promise(() => new Promise((next) => setTimeout(next, 5))),
          TestClock.adjust("10 seconds")
        )
        yield* Effect.repeatN(step, bodySeconds / 10 - 2)
        expect(yield* Fiber.poll(reading)).toMatchObject({ _tag: "None" })
        yield* Effect.repeatN(step, 2)
        expect((yield* Fiber.join(reading))._tag).toBe("VALIDATION_ERROR")
      }
    })
  )
})
