import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { TextConfig } from "../../src/domain/knowledge/CuratedSource.ts"
import { reader } from "../../src/readers/Text.ts"
import { layerReaders } from "./Site.ts"

const read = (config: typeof TextConfig.Type) =>
  reader.read(config, { maxDocuments: 1 }).pipe(
    Stream.runCollect,
    Effect.map((found) => Chunk.toReadonlyArray(found).map(({ content, title }) => [title, content])),
    Effect.provide(layerReaders)
  )

describe("A TEXT source", () => {
  const install = "Get it first.\n\n```sh\n# a comment\nget it\n```\n\n## How to *install* ##\n\nRun it."
  const rule = "---\n\nClosed: on Mondays."
  const matter = "---\ntitle: Opening hours\n---"

  it.effect(
    "its title is that of its front matter, else its first heading outside code, else its first line",
    () =>
      Effect.gen(function* () {
        expect(yield* read({ text: install })).toEqual([["How to install", install]])
        expect(yield* read({ text: `${matter}\n\n# Hours\n\nAt nine.` })).toEqual([
          ["Opening hours", "\n# Hours\n\nAt nine."]
        ])
        expect(yield* read({ text: rule })).toEqual([["---", rule]])
        expect(yield* read({ text: "\nAt nine.\nNot before." })).toEqual([
          ["At nine.", "\nAt nine.\nNot before."]
        ])
        expect(yield* read({ text: "# At nine.", format: "text" })).toEqual([["# At nine.", "# At nine."]])
      })
  )

  it.effect("front matter alone is its text", () =>
    Effect.gen(function* () {
      expect(yield* read({ text: matter })).toEqual([["Opening hours", matter]])
    })
  )
})
