/** A plain program: creates an agent, adds a document, and asks a question. `node examples/node.mjs` */
import * as Fs from "node:fs/promises"
import * as Os from "node:os"
import * as Path from "node:path"
import { createSpoke } from "spoke"

const dataDir = await Fs.mkdtemp(Path.join(Os.tmpdir(), "spoke-example-"))
const spoke = await createSpoke({ dataDir })

const { id } = await spoke.agents.create({ name: "Tea guide" })
const agent = spoke.agent(id)

const { source } = await agent.sources.upload({
  file: "# Tea\n\nGreen tea is brewed at eighty degrees.",
  fileName: "tea.md"
})
await agent.sources.ready(source.id)

for await (const part of agent.stream({ message: "How is green tea brewed?" })) {
  if (part.type === "text-delta") process.stdout.write(part.delta)
}
process.stdout.write("\n")

await spoke.close()
await Fs.rm(dataDir, { recursive: true })
