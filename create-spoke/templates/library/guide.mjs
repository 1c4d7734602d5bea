/** The agent that answers from knowledge/. */
import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { createSpoke } from "spoke"

const folder = "knowledge"
const name = "Guide"

/** Creates the agent at the first start, and reads the files that it does not have yet. */
export const openGuide = async () => {
  // With OPENAI_API_KEY replies are written by a model; without one they are extracts.
  const spoke = await createSpoke({ dataDir: ".spoke", env: process.env })
  const { agents } = await spoke.agents.list({ limit: 100 })
  const { id } = agents.find((agent) => agent.name === name) ?? (await spoke.agents.create({ name }))
  const agent = spoke.agent(id)
  const { sources } = await agent.sources.list({ limit: 100 })
  for (const fileName of await readdir(folder)) {
    if (sources.some((source) => source.name === fileName)) continue
    const file = await readFile(join(folder, fileName))
    const { source } = await agent.sources.upload({ file: new Uint8Array(file), fileName, name: fileName })
    await agent.sources.ready(source.id)
  }
  return { spoke, agent }
}
