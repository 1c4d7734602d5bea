import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { indexDocument } from "../../src/search/Indexing.ts"
import { indexRow } from "../../src/search/IndexRow.ts"
import { toDocument } from "../../src/usecases/knowledge/NewDocuments.ts"
import { chunkSteps } from "../../src/search/Packer.ts"
import { yielded } from "../Steps.ts"

const paragraph =
  "The workshop opens at seven in the morning and closes at five. Station keys are at the desk.\n\n"
const book = (length: number) =>
  `# Keys\n\n${paragraph.repeat(20)}## Hours\n\n${paragraph.repeat(length / paragraph.length)}`

describe("Indexing a document", () => {
  it.live("Chunks and rows are those of packing and indexing at once", () =>
    Effect.gen(function* () {
      const document = { title: "Guide", content: book(100_000), format: "markdown" } as const
      const made = yield* indexDocument(document, (chunk, row) => Effect.succeed({ chunk, row }))
      const packed = yielded(chunkSteps(document))
      expect(made).toEqual(
        packed.map((chunk) => ({
          chunk,
          row: { ...indexRow({ title: "Guide", ...chunk, english: true }), english: true }
        }))
      )
    })
  )

  it.live("Events are handled while many short documents are indexed", () =>
    Effect.gen(function* () {
      let turns = 0
      const count = () => {
        turns++
        immediate = setImmediate(count)
      }
      let immediate = setImmediate(count)
      const short = (place: number) => ({
        uri: `doc:${place}`,
        title: `Page ${place}`,
        format: "text" as const,
        content: paragraph
      })
      yield* Effect.forEach(
        Array.from({ length: 200 }, (_, place) => short(place)),
        toDocument,
        { discard: true }
      )
      clearImmediate(immediate)
      expect(turns).toBeGreaterThanOrEqual(200)
    })
  )

  const documents = [
    ["prose", book(4_000_000), "markdown"],
    ["one line without end", "seven stations of the line ".repeat(150_000), "text"],
    ["text without spaces", "漢字".repeat(1_000_000), "text"]
  ] as const
  for (const [what, content, format] of documents) {
    it.live(`Events are handled while a long document is indexed: ${what}`, () =>
      Effect.gen(function* () {
        const delay = monitorEventLoopDelay({ resolution: 5 })
        delay.enable()
        const chunks = yield* indexDocument({ title: "Book", content, format }, ({ ordinal }) =>
          Effect.succeed(ordinal)
        )
        delay.disable()
        expect(chunks.length).toBeGreaterThan(2_000)
        process.stdout.write(
          `indexing ${what}: event loop delay p99 ${Math.round(delay.percentile(99) / 1e6)} ms, most ${Math.round(delay.max / 1e6)} ms\n`
        )
        // Both leave room for a loaded machine: at once it would be seconds.
        expect(delay.percentile(99) / 1e6).toBeLessThan(200)
        expect(delay.max / 1e6).toBeLessThan(1_000)
      })
    )
  }

  it.live("Interruption ends it long before the document is done", () =>
    Effect.gen(function* () {
      let seen = 0
      const fiber = yield* Effect.fork(
        indexDocument({ title: "Book", content: book(8_000_000), format: "markdown" }, () =>
          Effect.sync(() => seen++)
        )
      )
      yield* Effect.sleep("30 millis")
      yield* Fiber.interrupt(fiber)
      expect(seen).toBeLessThan(5_000)
    })
  )
})
