/**
 * The peer with LangChain.js: a prompt, a model and a parser as one chain. Environment: `MODEL` (address), `DATABASE_URL`,
 * `PACKAGES` (a folder with `@langchain/core` and `@langchain/openai`).
 */
import { load, serveFramework } from "./framework.mjs"

const { ChatOpenAI, OpenAIEmbeddings } = await load("@langchain/openai")
const { ChatPromptTemplate } = await load("@langchain/core/prompts")
const { StringOutputParser } = await load("@langchain/core/output_parsers")

const connection = { apiKey: "sk-bench", configuration: { baseURL: `${process.env["MODEL"]}/v1` } }
const embeddings = new OpenAIEmbeddings({ model: "bench", ...connection })
const chain = ChatPromptTemplate.fromMessages([
  ["system", "{instructions}"],
  ["human", "{message}"]
])
  .pipe(new ChatOpenAI({ model: "bench", ...connection }))
  .pipe(new StringOutputParser())

serveFramework({
  embed: (text) => embeddings.embedQuery(text),
  answer: (instructions, message) => chain.invoke({ instructions, message }),
  stream: (instructions, message) => chain.stream({ instructions, message })
})
