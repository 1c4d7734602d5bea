import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { expect, it } from "@effect/vitest"
import { read } from "../../bench/retrieval/Collection.ts"
import { ndcg, recall } from "../../bench/retrieval/Metrics.ts"

const root = path.resolve(import.meta.dirname, "../..")

const results: ReadonlyArray<{
  readonly collection: string
  readonly default: { readonly ndcg10: number }
  readonly bm25: { readonly ndcg10: number }
  readonly vectors: { readonly ndcg10: number }
  readonly ndcg10By?: Readonly<Record<string, number>>
}> = JSON.parse(fs.readFileSync(path.join(root, "bench/retrieval.json"), "utf8"))

it("The default recipe is at least as good as words alone and better than vectors alone, in every measurement", () => {
  expect(results.map(({ collection }) => collection)).toContain("cranfield")
  for (const { bm25, collection, default: hybrid, vectors } of results) {
    expect(hybrid.ndcg10).toBeGreaterThanOrEqual(bm25.ndcg10)
    // The built-in model embeds English texts only.
    if (collection !== "languages") expect(hybrid.ndcg10).toBeGreaterThan(vectors.ndcg10)
  }
})

it("The README and the decision about scores have the measured figures of Cranfield", () => {
  const found = results.find(({ collection }) => collection === "cranfield")
  const [hybrid, words, vectors] = [found?.default, found?.bm25, found?.vectors].map((one) =>
    one?.ndcg10.toFixed(3)
  )
  const text = (file: string) => fs.readFileSync(path.join(root, file), "utf8").replaceAll(/\s+/gu, " ")
  expect(text("README.md")).toContain(
    `nDCG@10 of ${hybrid}, words alone ${words} and vectors alone ${vectors}`
  )
  expect(text("docs/design/decisions/0008-absolute-scores.md")).toContain(
    `225 questions | ${hybrid} | ${words} | ${vectors} |`
  )
})

it("The documentation has the measured figures", () => {
  const page = fs.readFileSync(path.join(root, "docs/retrieval.md"), "utf8")
  for (const { bm25, default: hybrid, vectors } of results) {
    const figures = [hybrid, bm25, vectors].map(({ ndcg10 }) => ndcg10.toFixed(3))
    expect(page).toContain(`| ${figures.join(" | ")} |`)
  }
  const languages = results.find(({ collection }) => collection === "languages")?.ndcg10By ?? {}
  expect(Object.keys(languages)).toHaveLength(8)
  const row = Object.values(languages).map((figure) => figure.toFixed(3))
  expect(page).toContain(`| now | ${row.join(" | ")} |`)
})

it("The documentation has the measured scores of replies without a model, and none answers a question without a source", () => {
  const replies: Readonly<Record<string, Readonly<Record<string, number>>>> = JSON.parse(
    fs.readFileSync(path.join(root, "bench/replies.json"), "utf8")
  )
  const page = fs.readFileSync(path.join(root, "docs/retrieval.md"), "utf8")
  for (const [name, asked, others, start] of [
    ["questions", 103, 32, "our 103"],
    ["languages", 80, 40, "80 in eight languages"]
  ] as const) {
    const [row = ""] = new RegExp(`^\\| ${start} \\|.*$`, "mu").exec(page) ?? []
    const { cited, citedFirst, nothingFound, offTopic, offTopicAnswered, questions } = replies[name] ?? {}
    expect(Array.from(row.matchAll(/now (\d+)/gu), ([, figure]) => Number(figure))).toEqual([
      citedFirst,
      cited,
      nothingFound
    ])
    expect([questions, offTopic, offTopicAnswered]).toEqual([asked, others, 0])
  }
})

it("nDCG@10 is 1 for the best order, falls with the place, and counts gains", () => {
  const relevant = new Map([
    ["a", 2],
    ["b", 1]
  ])
  expect(ndcg(["a", "b", "x"], relevant)).toBe(1)
  expect(ndcg(["x", "y"], relevant)).toBe(0)
  const ideal = 2 + 1 / Math.log2(3)
  expect(ndcg(["b", "a"], relevant)).toBeCloseTo((1 + 2 / Math.log2(3)) / ideal, 12)
  expect(ndcg(["x", "a"], relevant)).toBeCloseTo(2 / Math.log2(3) / ideal, 12)
  const late = Array.from({ length: 10 }, (_, place) => `x${place}`)
  expect(ndcg([...late, "a"], relevant)).toBe(0)
  expect(recall(["b", "x"], relevant)).toBe(0.5)
})

const folder = (files: Readonly<Record<string, string>>) => {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-collection-"))
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(made, name)), { recursive: true })
    fs.writeFileSync(path.join(made, name), text)
  }
  return made
}

it("A collection is read in the format of BEIR, with the queries that are judged", () => {
  const beir = folder({
    "corpus.jsonl": '{"_id": "d1", "title": "One", "text": "First"}\n{"_id": 2, "text": "Second"}\n',
    "queries.jsonl": '{"_id": "q1", "text": "Which?"}\n{"_id": "q2", "text": "Not judged"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\t2\t0\n"
  })
  expect(read(beir)).toEqual({
    documents: [
      { id: "d1", title: "One", text: "First" },
      { id: "2", title: "", text: "Second" }
    ],
    queries: [{ id: "q1", text: "Which?", relevant: new Map([["d1", 2]]) }]
  })
  fs.rmSync(beir, { recursive: true })
})

it("A collection is read in the format of Cranfield, whose judgements name queries by their place", () => {
  const smart = folder({
    "cran.all.1400":
      ".I 1\n.T\nwings\n.A\nsomeone\n.B\n1958\n.W\nwings\nlift them .\n.I 2\n.T\nheat\n.A\n.B\n.W\nhot\n",
    "cran.qry": ".I 007\n.W\nwhat lifts\nwings .\n.I 009\n.W\nwhat is hot .\n",
    cranqrel: "1 1 2 \n1 2 -1\n2 2 4\n"
  })
  expect(read(smart)).toEqual({
    documents: [
      { id: "1", title: "wings", text: "lift them ." },
      { id: "2", title: "heat", text: "hot" }
    ],
    queries: [
      { id: "1", text: "what lifts wings .", relevant: new Map([["1", 1]]) },
      { id: "2", text: "what is hot .", relevant: new Map([["2", 1]]) }
    ]
  })
  fs.rmSync(smart, { recursive: true })
})
