/** How much the index of a chunk grows by pieces of words, beside what whole words would take. */
import * as fs from "node:fs"
import * as path from "node:path"
import { expect, it } from "@effect/vitest"
import { indexChunk } from "../../src/search/Indexing.ts"
import { eachTerm, terms } from "../../src/search/Tokenizer.ts"

const folder = path.resolve(import.meta.dirname, "../../bench/retrieval")

interface Written {
  readonly _id: string
  readonly title: string
  readonly text: string
}

const corpus = (name: string): ReadonlyArray<Written> =>
  fs
    .readFileSync(path.join(folder, name, "corpus.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line): Written => JSON.parse(line))

/** Terms that are kept of each chunk, and the share of them in the words that it has. */
const growth = (all: ReadonlyArray<Written>): number => {
  let kept = 0
  let words = 0
  for (const { text, title } of all) {
    const { tsv } = indexChunk({ title, heading: "", content: text }, false)
    eachTerm(tsv, () => {
      kept++
    })
    words += new Set(terms(`${title}\n${text}`)).size
  }
  return kept / words
}

it("Text that is not English takes at most two and a half times the terms of its words", () => {
  const all = corpus("languages")
  const languages = new Set(all.map(({ _id }) => _id.split("-")[0]))
  expect(languages.size).toBe(8)
  for (const language of languages) {
    const own = all.filter(({ _id }) => _id.startsWith(`${language}-`))
    expect([language, growth(own) <= 2.5, growth(own)]).toEqual([language, true, growth(own)])
  }
})

it("English text takes the terms of its words, and no more", () => {
  const english = [
    {
      _id: "1",
      title: "Returns",
      text: "Goods that were bought from us can be sent back within 30 days of delivery."
    },
    {
      _id: "2",
      title: "Ports",
      text: "The server listens on port 8443, and metrics of the agent are on another one."
    }
  ]
  expect(growth(english)).toBe(1)
})
