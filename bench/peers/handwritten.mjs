/**
 * The hand-written peer: what a developer would write in an afternoon with Hono, the AI SDK, pg and pgvector. The same
 * retrieval and storage as in the bare peer, in the libraries' usual form. Environment: `MODEL` (address), `DATABASE_URL`.
 *
 *   POST /chat, /chat/stream {message}   embed, five chunks by pgvector, model, conversation and two messages stored
 *   POST /retrieve {query, topK}         embed, chunks by pgvector
 *   POST /ingest {pages: [url]}          fetch, strip, cut, embed and insert each page; answers when all is there
 */
import { createOpenAI } from "@ai-sdk/openai"
import { serve } from "@hono/node-server"
import { embed, embedMany, generateText, streamText } from "ai"
import { Hono } from "hono"
import { startConversation, instructions, nearest, pool, result, addMessage } from "./knowledge.mjs"

const openai = createOpenAI({ baseURL: `${process.env["MODEL"]}/v1`, apiKey: "sk-bench" })
const model = openai.chat("bench")
const embedder = openai.embedding("bench")

const search = async (text, count) => {
  const { embedding } = await embed({ model: embedder, value: text })
  return nearest(embedding, count)
}

const prompt = (found, message) => ({ model, system: instructions(found), prompt: message })

const app = new Hono()

app.post("/chat", async (context) => {
  const { message } = await context.req.json()
  const [found, id] = await Promise.all([search(message, 5), startConversation(message)])
  const { text } = await generateText(prompt(found, message))
  await addMessage(id, "assistant", text)
  return context.json(result(text, id, found))
})

app.post("/chat/stream", async (context) => {
  const { message } = await context.req.json()
  const [found, id] = await Promise.all([search(message, 5), startConversation(message)])
  return streamText({
    ...prompt(found, message),
    onFinish: ({ text }) => addMessage(id, "assistant", text)
  }).toUIMessageStreamResponse()
})

app.post("/retrieve", async (context) => {
  const { query, topK } = await context.req.json()
  return context.json({ data: { chunks: await search(query, topK) } })
})

/** Pieces of about 800 characters that end with a word. */
const splitText = (text) => {
  const pieces = []
  let rest = text
  while (rest.length > 800) {
    const end = rest.lastIndexOf(" ", 800)
    pieces.push(rest.slice(0, end))
    rest = rest.slice(end + 1)
  }
  return [...pieces, rest]
}

const ingestPage = async (url) => {
  const html = await (await fetch(url)).text()
  const title = /<title>([^<]*)/.exec(html)?.[1] ?? url
  const text = html
    .replace(/<(script|style)[\s\S]*?<\/\1>/g, " ")
    .replace(/<[^>]+>/g, " ")
    .replace(/\s+/g, " ")
    .trim()
  const pieces = splitText(text)
  const { embeddings } = await embedMany({ model: embedder, values: pieces })
  const rows = pieces.map((content, place) => ({ content, vector: JSON.stringify(embeddings[place]) }))
  await pool.query(
    `insert into ingested (document_id, source_name, url, content, embedding)
    select $2, $3, $2, content, vector::vector from jsonb_to_recordset($1::jsonb) as t (content text, vector text)`,
    [JSON.stringify(rows), url, title]
  )
}

app.post("/ingest", async (context) => {
  const { pages } = await context.req.json()
  const pending = [...pages]
  const worker = async () => {
    for (let page = pending.shift(); page !== undefined; page = pending.shift()) await ingestPage(page)
  }
  await Promise.all(Array.from({ length: 4 }, worker))
  return context.json({ data: { pages: pages.length } })
})

serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
  console.log(`listening on http://127.0.0.1:${port}`)
)
