/**
 * The peer with Mastra: one agent, with the model and the embeddings of the AI SDK. Environment: `MODEL` (address),
 * `DATABASE_URL`, `PACKAGES` (a folder with `@mastra/core`).
 */
import { createOpenAI } from "@ai-sdk/openai"
import { embed } from "ai"
import { load, serveFramework } from "./framework.mjs"

const { Agent } = await load("@mastra/core/agent")

const openai = createOpenAI({ baseURL: `${process.env["MODEL"]}/v1`, apiKey: "sk-bench" })
const embedder = openai.embedding("bench")
const agent = new Agent({
  id: "bench",
  name: "Bench",
  instructions: "Answer from the context.",
  model: openai.chat("bench")
})

serveFramework({
  embed: async (text) => (await embed({ model: embedder, value: text })).embedding,
  answer: async (instructions, message) => (await agent.generate(message, { instructions })).text,
  stream: async (instructions, message) => (await agent.stream(message, { instructions })).textStream
})
