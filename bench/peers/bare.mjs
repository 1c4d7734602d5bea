/**
 * The bare peer: the minimum of Spoke's routes on `node:http` and pg, without a framework, keys, tenants, or storage other
 * than messages. Environment: `MODEL` (address), `MODEL_DIMENSIONS` (of its vectors),
 * `DATABASE_URL`, `WEBHOOK_SECRET`.
 *
 *   POST /chat, /chat/stream {message}   embed, five chunks by pgvector, model, conversation and two messages stored
 *   POST /retrieve {query, topK}         embed, chunks by pgvector
 *   POST /proxy                          passes the request to the model
 *   GET  /ready                          queries the database
 *   POST /webhook                        checks the HMAC of the body, stores nothing
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import * as http from "node:http"
import pg from "pg"

const model = process.env["MODEL"] ?? "http://127.0.0.1:1"
const secret = process.env["WEBHOOK_SECRET"] ?? ""
const dimensions = Number(process.env["MODEL_DIMENSIONS"] ?? 1_536)
const agent = new http.Agent({ keepAlive: true, maxSockets: Infinity })
const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"], max: 10 })

const post = (place, body) =>
  new Promise((resolve, reject) => {
    const text = JSON.stringify(body)
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text) }
    const request = http.request(`${model}${place}`, { method: "POST", agent, headers }, resolve)
    request.on("error", reject)
    request.end(text)
  })

const bytesOf = async (stream) => {
  const chunks = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}
const jsonOf = async (stream) => JSON.parse((await bytesOf(stream)).toString())

const search = async (text, count) => {
  const { data } = await jsonOf(await post("/v1/embeddings", { model: "bench", input: text, dimensions }))
  const { rows } = await pool.query({
    name: "search",
    text: `select id, document_id, source_name, url, content, 1 - (embedding <=> $1) as score from chunks
      order by embedding <=> $1 limit $2`,
    values: [`[${data[0].embedding.join(",")}]`, count]
  })
  return rows
}

const startConversation = async (message) => {
  const { rows } = await pool.query({
    name: "begin",
    text: `with made as (insert into conversations default values returning id),
      said as (insert into messages (conversation_id, role, content) select id, 'user', $1 from made)
      select id from made`,
    values: [message]
  })
  return rows[0].id
}

const storeReply = (id, reply) =>
  pool.query({
    name: "keep",
    text: "insert into messages (conversation_id, role, content) values ($1, 'assistant', $2)",
    values: [id, reply]
  })

const sendJson = (response, body) => {
  const text = JSON.stringify(body)
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text)
  })
  response.end(text)
}

const prompt = (found, message, stream) => ({
  model: "bench",
  stream,
  messages: [
    {
      role: "system",
      content: `Answer from the context.\n\n${found.map(({ content }) => content).join("\n\n")}`
    },
    { role: "user", content: message }
  ]
})

const citationsOf = (found) => found.map(({ content, ...rest }) => rest)

const chat = async ({ message }, response) => {
  const [found, id] = await Promise.all([search(message, 5), startConversation(message)])
  const { choices } = await jsonOf(await post("/v1/chat/completions", prompt(found, message, false)))
  const reply = choices[0].message.content
  await storeReply(id, reply)
  sendJson(response, { data: { reply, conversationId: id, citations: citationsOf(found) } })
}

const chatStream = async ({ message }, response) => {
  const [found, id] = await Promise.all([search(message, 5), startConversation(message)])
  const incoming = await post("/v1/chat/completions", prompt(found, message, true))
  response.writeHead(200, { "content-type": "text/event-stream" })
  let reply = ""
  let rest = ""
  for await (const text of incoming.setEncoding("utf8")) {
    const frames = (rest + text).split("\n\n")
    rest = frames.pop()
    for (const frame of frames) {
      if (!frame.startsWith("data: {")) continue
      const delta = JSON.parse(frame.slice(6)).choices[0]?.delta.content
      if (!delta) continue
      reply += delta
      response.write(`data: {"type":"text-delta","id":"0","delta":${JSON.stringify(delta)}}\n\n`)
    }
  }
  await storeReply(id, reply)
  const result = { reply, conversationId: id, citations: citationsOf(found) }
  response.end(
    `data: ${JSON.stringify({ type: "data-done", data: { result } })}\n\ndata: {"type":"finish"}\n\ndata: [DONE]\n\n`
  )
}

const proxy = (request, response) => {
  const toModel = http.request(
    `${model}/v1/chat/completions`,
    { method: "POST", agent, headers: { "content-type": "application/json" } },
    (incoming) => {
      response.writeHead(incoming.statusCode, { "content-type": incoming.headers["content-type"] })
      incoming.pipe(response)
    }
  )
  toModel.on("error", () => response.destroy())
  response.on("close", () => toModel.destroy())
  request.pipe(toModel)
}

const webhook = (body, request, response) => {
  const actual = Buffer.from(String(request.headers["x-hub-signature-256"]).slice(7), "hex")
  const expected = createHmac("sha256", secret).update(body).digest()
  if (actual.length === expected.length && timingSafeEqual(actual, expected)) {
    sendJson(response, { data: { received: true, deduped: false, dedupedCount: 0, enqueued: 1 } })
  } else response.writeHead(401).end()
}

const routes = {
  "/ready": async (_, response) => {
    await pool.query("select 1")
    sendJson(response, {})
  },
  "/chat": chat,
  "/chat/stream": chatStream,
  "/retrieve": async ({ query, topK }, response) =>
    sendJson(response, { data: { chunks: await search(query, topK) } })
}

const server = http.createServer(async (request, response) => {
  if (request.url === "/proxy") return proxy(request, response)
  try {
    const body = await bytesOf(request)
    if (request.url === "/webhook") return webhook(body, request, response)
    await routes[request.url](JSON.parse(body.toString() || "{}"), response)
  } catch (error) {
    console.error(error)
    response.destroy()
  }
})
server.keepAliveTimeout = 60_000
server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () =>
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
)
