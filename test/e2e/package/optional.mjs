/**
 * The packed library without any optional package: what needs none works, and what needs one says which, and how to get it. Prints
 * one line when all of it went as it should. `documents.json` holds files in base64.
 */
import assert from "node:assert"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { createSpoke } from "spoke"

const dataDir = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-optional-"))
const log = []
const spoke = await createSpoke({ dataDir, log: ({ level, message }) => log.push(`${level} ${message}`) })
const agent = spoke.agent((await spoke.agents.create({ name: "Tea guide" })).id)
const documents = JSON.parse(Fs.readFileSync("documents.json", "utf8"))

/** Empty when the file was read. */
const reading = async (fileName) => {
  const file = new Uint8Array(Buffer.from(documents[fileName], "base64"))
  const { source } = await agent.sources.upload({ file, fileName })
  return agent.sources.ready(source.id).then(
    () => "",
    (error) => `${error.code} ${error.message}`
  )
}

assert.deepEqual(log, [])
for (const name of ["tea.md", "tea.html", "tea.txt", "tea.docx", "tea.xlsx"])
  assert.equal(await reading(name), "", name)
const { citations, reply } = await agent.chat({ message: "How is green tea brewed?" })
assert.match(reply, /eighty degrees/)
assert.ok(citations.length > 0)
const { chunks } = await agent.retrieve({ query: "crème brûlée oolong darjeeling assam", topK: 10 })
const found = chunks.map(({ text }) => text).join("\n")
for (const word of ["darjeeling", "crème brûlée", "oolong", "assam"]) assert.ok(found.includes(word), word)

assert.match(await reading("tea.pdf"), /^SOURCE_FAILED .*npm install unpdf$/u)
assert.match(
  await reading("tea.png"),
  /^SOURCE_FAILED .*npm install tesseract\.js @tesseract\.js-data\/eng$/u
)
await spoke.close()

await assert.rejects(createSpoke({ dataDir, redisUrl: "redis://127.0.0.1:1" }), {
  code: "INVALID_CONFIG",
  message: /npm install ioredis$/u
})
Fs.rmSync(dataDir, { recursive: true })
console.log("all is well")
