/**
 * How good the replies without a model are: the questions of bench/retrieval/questions and questions on other subjects are
 * asked by `spoke eval` on a data folder that holds the passages. Prints the figures and keeps them in bench/replies.json.
 * `npm run bench:replies -- FOLDER` uses passages, queries and judgements of another folder, and keeps nothing.
 */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { buildAll } from "../scripts/build.mjs"
import { root, temporaryFolder, until } from "./machine.mjs"

const own = path.join(root, "bench/retrieval/questions")
const [folder = own] = process.argv.slice(2)

const lines = (file) =>
  fs
    .readFileSync(path.join(folder, file), "utf8")
    .split("\n")
    .filter((line) => line !== "")

/** A passage is a source of its own, whose name is the passage's id. */
const learn = async (agent) => {
  const made = []
  for (const line of lines("corpus.jsonl")) {
    const { _id: id, text, title } = JSON.parse(line)
    const file = new TextEncoder().encode(`# ${title}\n\n${text}\n`)
    made.push((await agent.sources.upload({ file, fileName: `${id}.md`, name: id })).source.id)
  }
  for (const id of made) {
    await agent.sources.ready(id)
    await until("the vectors", 120_000, async () => {
      const { chunks, embedded } = await agent.sources.embedding(id)
      return embedded === chunks ? true : undefined
    })
  }
}

const cases = () => {
  const relevant = new Map()
  for (const line of lines("qrels/test.tsv").slice(1)) {
    const [query, document] = line.split("\t")
    relevant.set(query, [...(relevant.get(query) ?? []), document])
  }
  const questions = lines("queries.jsonl").map((line) => {
    const { _id: id, text } = JSON.parse(line)
    return JSON.stringify({ question: text, expectSources: relevant.get(id) })
  })
  return [...questions, ...lines("off-topic.jsonl")].join("\n")
}

await buildAll()
const { createSpoke } = await import("../dist/index.js")
const dataDir = temporaryFolder()
try {
  const spoke = await createSpoke({ dataDir })
  const { id } = await spoke.agents.create({ name: "Replies" })
  await learn(spoke.agent(id))
  await spoke.close()

  const file = path.join(dataDir, "cases.jsonl")
  fs.writeFileSync(file, cases())
  const command = [path.join(root, "bin/spoke.mjs"), "eval", file, "--data", dataDir, "--agent", id, "--json"]
  const report = JSON.parse(
    execFileSync(process.execPath, command, { maxBuffer: 2 ** 28, stdio: ["ignore", "pipe", "inherit"] })
  )
  const asked = report.results.filter(({ sourceCited }) => sourceCited !== null)
  const offTopic = report.results.filter(({ refusal }) => refusal !== null)
  const result = {
    questions: asked.length,
    citedFirst: asked.filter(({ sourceAt1 }) => sourceAt1).length,
    cited: asked.filter(({ sourceCited }) => sourceCited).length,
    nothingFound: asked.filter(({ citations }) => citations.length === 0).length,
    offTopic: offTopic.length,
    offTopicAnswered: offTopic.filter(({ refusal }) => !refusal).length
  }
  console.table(result)
  if (folder === own) {
    fs.writeFileSync(path.join(root, "bench/replies.json"), `${JSON.stringify(result, null, 2)}\n`)
  }
} finally {
  fs.rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
}
process.exit(0)
