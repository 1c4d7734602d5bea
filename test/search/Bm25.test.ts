import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { b, k1, Postings, termWeight } from "../../src/search/Bm25.ts"
import { indexRow } from "../../src/search/IndexRow.ts"
import { type QueryForm, queryWords } from "../../src/search/Query.ts"
import { eachTerm, terms } from "../../src/search/Tokenizer.ts"

const indexed = (documents: ReadonlyArray<ReadonlyArray<string>>) => {
  const postings = new Postings()
  for (const words of documents) {
    postings.add(words.length)
    for (const word of new Set(words)) postings.count(word, words.filter((other) => other === word).length)
  }
  return postings
}

/** BM25 by its formula, over words. */
const byFormula = (
  documents: ReadonlyArray<ReadonlyArray<string>>,
  query: ReadonlyArray<string>,
  exponent = 1
) => {
  const average = documents.flat().length / documents.length
  const count = (words: ReadonlyArray<string>, word: string) => words.filter((other) => other === word).length
  const weight = (word: string) => {
    const containing = documents.filter((words) => words.includes(word)).length
    return Math.log(1 + (documents.length - containing + 0.5) / (containing + 0.5)) ** exponent
  }
  const maxScore = query.reduce((sum, word) => sum + weight(word) * (k1 + 1), 0)
  return documents.map((words) => {
    const part = (word: string) => {
      const frequency = count(words, word)
      return (weight(word) * frequency * (k1 + 1)) / (frequency + k1 * (1 - b + (b * words.length) / average))
    }
    return query.reduce((sum, word) => sum + part(word), 0) / maxScore
  })
}

const word = FastCheck.constantFrom("a", "b", "c", "d", "e", "f")
const someDocuments = FastCheck.array(FastCheck.array(word, { minLength: 1, maxLength: 12 }), {
  minLength: 1,
  maxLength: 12
})
const someQuery = FastCheck.array(FastCheck.oneof(word, FastCheck.constant("unseen")), {
  minLength: 1,
  maxLength: 6
})
const counted = (query: ReadonlyArray<string>) =>
  new Map(query.map((term) => [term, query.filter((other) => other === term).length]))

/** A short query with these forms. */
const short = (forms: ReadonlyArray<QueryForm>) => ({ forms, termCount: 1 })

const close = (actual: Iterable<number>, expected: ReadonlyArray<number>) => {
  const all = Array.from(actual)
  expect(all.length).toBe(expected.length)
  for (const [place, score] of all.entries()) expect(score).toBeCloseTo(expected[place] ?? Number.NaN, 12)
}

describe("Bm25", () => {
  it("scores as the formula says, as a share of what the query could reach", () => {
    FastCheck.assert(
      FastCheck.property(someDocuments, someQuery, (documents, query) => {
        const scores = indexed(documents).scores(short([counted(query)]))
        close(scores, byFormula(documents, query))
        for (const score of scores) expect(score >= 0 && score < 1).toBe(true)
      })
    )
  })

  it("forgets dropped chunks as if they had never been there", () => {
    FastCheck.assert(
      FastCheck.property(
        someDocuments,
        someQuery,
        FastCheck.infiniteStream(FastCheck.boolean()),
        (documents, query, coin) => {
          const keeps = documents.map(() => coin.next().value === true)
          const kept = documents.filter((_, slot) => keeps[slot])
          let next = 0
          const postings = indexed(documents)
          Array.from(postings.retain(Int32Array.from(keeps, (keep) => (keep ? next++ : -1))))
          expect(postings.size).toBe(kept.length)
          close(postings.scores(short([counted(query)])), kept.length === 0 ? [] : byFormula(kept, query))
        }
      )
    )
  })

  it("pulls all scores down by words that no chunk has", () => {
    const postings = indexed([["a", "b"], ["c"]])
    const [seen = 0] = postings.scores(short([new Map([["a", 1]])]))
    const [mixed = 0] = postings.scores(
      short([
        new Map([
          ["a", 1],
          ["unseen", 1]
        ])
      ])
    )
    expect(mixed).toBeLessThan(seen / 2)
  })

  it("weighs a rare word more than a common one", () => {
    const weight = (termCount: number, chunks: number) => termWeight({ forms: [], termCount }, 100, chunks)
    for (const termCount of [0, 6, 7, 100]) {
      expect(weight(termCount, 1)).toBeGreaterThan(weight(termCount, 50))
      expect(weight(termCount, 100)).toBeGreaterThan(0)
    }
    // The more so in a long query.
    expect(weight(7, 1) / weight(7, 50)).toBeGreaterThan(weight(6, 1) / weight(6, 50))
  })

  it("scores a long query by the same formula, with the weights to the power of 1.3", () => {
    const documents = [["a", "b", "c"], ["a"], ["a", "d", "e", "e"]]
    const query = ["a", "b", "c", "d", "e", "f", "g"]
    const scores = indexed(documents).scores({ forms: [counted(query)], termCount: query.length })
    close(scores, byFormula(documents, query, 1.3))
  })

  it("takes the form of the query that a chunk answers better, each against its own maximum", () => {
    const postings = indexed([["a", "b"], ["x"], ["a"]])
    const one = new Map([
      ["a", 1],
      ["c", 1]
    ])
    const two = new Map([["x", 1]])
    const alone = [one, two].map((form) => Array.from(postings.scores(short([form]))))
    close(
      postings.scores(short([one, two])),
      [0, 1, 2].map((slot) => Math.max(...alone.map((scores) => scores[slot] ?? 0)))
    )
  })
})

describe("Query", () => {
  const english = (text: string) => Array.from(queryWords(text).forms[0] ?? [])

  it("counts repeated words of a query and cuts one with very many", () => {
    expect(english("backup the backups daily")).toEqual([
      ["backup", 2],
      ["daili", 1]
    ])
    const long = Array.from({ length: 500 }, (_, place) => `word${place} größe${place}`).join(" ")
    for (const form of queryWords(long).forms) expect(form.size).toBe(128)
    expect(queryWords("what is it").forms).toEqual([])
  })

  it("leaves out what questions are asked with, unless nothing else is asked", () => {
    expect(english("How do I get to see my invoices?")).toEqual([["invoic", 1]])
    expect(english("call me")).toEqual([["call", 1]])
  })

  it("leaves them out in scripts without spaces, where they are parts of longer runs", () => {
    for (const [question, asked] of [
      ["本は何冊まで借りられますか？", "本は 冊まで借りられ"],
      ["カードの作り方を教えてください", "カードの作り方"],
      ["開館時間はいつですか", "開館時間はいつ"],
      ["幾何学と如何と何故", "幾何学と と何故"],
      ["请问押金多少钱？", "押金 钱"],
      ["未成年人可以注册吗？", "未成年人可以注册"],
      ["吗啡", "吗啡"],
      ["책을 몇 권까지 빌릴 수 있나요?", "책을 몇 권까지 빌릴 수 있"],
      ["รหัส E3 หมายถึงอะไร", "รหัส E3"],
      ["ผ้าไหมไทย", "ผ้าไหมไทย"]
    ] as const)
      expect(queryWords(question)).toEqual(queryWords(asked))
    expect(queryWords("什么").forms).not.toEqual([])
  })

  it("asks in pieces of words as well, where that says something else", () => {
    expect(queryWords("Lieferzeiten").forms.map((form) => [...form.keys()])).toEqual([
      ["lieferzeiten"],
      ["_lief", "_iefe", "_efer", "_iten"]
    ])
    expect(queryWords("403 42").forms.map((form) => [...form.keys()])).toEqual([["403", "42"]])
    expect(queryWords("退款").forms.map((form) => [...form.keys()])).toEqual([["退款"], ["退款", "退", "款"]])
  })
})

describe("IndexRow", () => {
  it("counts the words of title and headings three times", () => {
    const { length, tsv } = indexRow({
      title: "Backups",
      heading: "Restore > Daily",
      content: "Restore a backup.",
      english: true
    })
    const found = new Map<string, number>()
    eachTerm(tsv, (term, frequency) => found.set(term, frequency))
    expect(found).toEqual(
      new Map([
        ["backup", 4],
        ["restor", 4],
        ["daili", 3]
      ])
    )
    expect(length).toBe(11)
  })

  it("cuts an endless title, so that it cannot drown the text", () => {
    const { tsv } = indexRow({ title: "x y z ".repeat(100_000), heading: "", content: "text", english: true })
    expect(tsv).toContain("'text':301")
    expect(terms("text")).toEqual(["text"])
  })
})
