/**
 * How good the replies without a model are, asked by `spoke eval` of a data folder.
 *
 * - `npm run bench:replies`: the questions of bench/retrieval/questions and of bench/retrieval/languages, and questions on
 *   other subjects. Prints the figures and keeps them in bench/replies.json.
 * - `npm run bench:replies -- FOLDER`: passages, queries and judgements of another folder. Keeps nothing.
 * - `npm run bench:replies -- documentation FOLDER [OWNER/NAME …]`: the questions of bench/replies/documentation.jsonl, and
 *   questions on other subjects, of the Markdown files of those repositories, which are cloned in FOLDER as OWNER/NAME. Keeps
 *   nothing.
 */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { buildAll } from "../scripts/build.mjs"
import { root, temporaryFolder, until } from "./machine.mjs"

const ownFolder = (name) => path.join(root, "bench/retrieval", name)
const ownQuestionsFolder = ownFolder("questions")

const linesOf = (file) =>
  fs
    .readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")

/** Questions on other subjects: those of the folder, or our own. */
const offTopicOf = (folder) => {
  const file = path.join(folder, "off-topic.jsonl")
  return linesOf(fs.existsSync(file) ? file : path.join(ownQuestionsFolder, "off-topic.jsonl"))
}

/** Uploads `documents`, each as a source of its own, and waits for their vectors. */
const uploadDocuments = async (agent, documents) => {
  const sourceIds = []
  for (const { fileName, name, text } of documents) {
    const file = new TextEncoder().encode(text)
    sourceIds.push((await agent.sources.upload({ file, fileName, name })).source.id)
  }
  for (const id of sourceIds) {
    await agent.sources.ready(id)
    await until("the vectors", 600_000, async () => {
      const { chunks, embedded } = await agent.sources.embedding(id)
      return embedded === chunks ? true : undefined
    })
  }
}

/** The figures of the replies to `cases`, lines of a file of `spoke eval`, by an agent that has read `documents`. */
const measure = async (documents, cases) => {
  const { createSpoke } = await import("../dist/index.js")
  const dataDir = temporaryFolder()
  try {
    const spoke = await createSpoke({ dataDir })
    const { id } = await spoke.agents.create({ name: "Replies" })
    await uploadDocuments(spoke.agent(id), documents)
    await spoke.close()

    const file = path.join(dataDir, "cases.jsonl")
    fs.writeFileSync(file, cases.join("\n"))
    const command = [
      path.join(root, "bin/spoke.mjs"),
      "eval",
      file,
      "--data",
      dataDir,
      "--agent",
      id,
      "--json"
    ]
    const { results } = JSON.parse(
      execFileSync(process.execPath, command, { maxBuffer: 2 ** 28, stdio: ["ignore", "pipe", "inherit"] })
    )
    const asked = results.filter(({ sourceCited }) => sourceCited !== null)
    const others = results.filter(({ refusal }) => refusal !== null)
    return {
      questions: asked.length,
      citedFirst: asked.filter(({ sourceAt1 }) => sourceAt1).length,
      cited: asked.filter(({ sourceCited }) => sourceCited).length,
      ...(asked.some(({ facts }) => facts !== null) && {
        factStated: asked.filter(({ facts }) => facts).length
      }),
      nothingFound: asked.filter(({ citations }) => citations.length === 0).length,
      offTopic: others.length,
      offTopicAnswered: others.filter(({ refusal }) => !refusal).length
    }
  } finally {
    fs.rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Passages with judged queries, as in bench/retrieval/questions. */
const measurePassages = async (folder) => {
  const documents = linesOf(path.join(folder, "corpus.jsonl")).map((line) => {
    const { _id: id, text, title } = JSON.parse(line)
    return { fileName: `${id}.md`, name: id, text: `# ${title}\n\n${text}\n` }
  })
  const relevant = new Map()
  for (const line of linesOf(path.join(folder, "qrels/test.tsv")).slice(1)) {
    const [query, document] = line.split("\t")
    relevant.set(query, [...(relevant.get(query) ?? []), document])
  }
  const questions = linesOf(path.join(folder, "queries.jsonl")).map((line) => {
    const { _id: id, text } = JSON.parse(line)
    return JSON.stringify({ question: text, expectSources: relevant.get(id) })
  })
  return await measure(documents, [...questions, ...offTopicOf(folder)])
}

const measureOwnQuestions = async () => {
  const figures = {
    questions: await measurePassages(ownQuestionsFolder),
    languages: await measurePassages(ownFolder("languages"))
  }
  console.table(figures)
  fs.writeFileSync(path.join(root, "bench/replies.json"), `${JSON.stringify(figures, null, 2)}\n`)
}

const markdownBelow = (folder) =>
  fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.mdx?$/.test(entry.name))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => !/[\\/](?:node_modules|\.git|changelog\.md)/.test(file))
    .toSorted()

const measureDocumentation = async (folder, repositories) => {
  const all = linesOf(path.join(root, "bench/replies/documentation.jsonl")).map((line) => JSON.parse(line))
  const figures = {}
  for (const { below, repository } of new Map(all.map((one) => [one.repository, one])).values()) {
    if (repositories.length > 0 && !repositories.includes(repository)) continue
    const documents = markdownBelow(path.join(folder, repository, below)).map((file) => ({
      fileName: path.basename(file),
      name: path.relative(folder, file),
      text: fs.readFileSync(file, "utf8")
    }))
    const cases = all
      .filter((one) => one.repository === repository)
      .map(({ expectFacts, expectSources, question }) =>
        JSON.stringify({ question, expectSources, expectFacts })
      )
    figures[repository] = await measure(documents, [...cases, ...offTopicOf(ownQuestionsFolder)])
    console.log(`${repository}: ${JSON.stringify(figures[repository])}`)
  }
  const sums = {}
  for (const row of Object.values(figures))
    for (const [name, value] of Object.entries(row)) sums[name] = (sums[name] ?? 0) + value
  console.table({ ...figures, all: sums })
}

await buildAll()
const [first, ...others] = process.argv.slice(2)
if (first === undefined) await measureOwnQuestions()
else if (first === "documentation") await measureDocumentation(others[0] ?? ".", others.slice(1))
else console.table(await measurePassages(first))
process.exit(0)
