/**
 * The model of the benchmarks: an OpenAI-compatible `/chat/completions` and `/embeddings` that costs little and always the
 * same, in a process of its own. `POST /pace` sets when tokens come: `{first, gap, tokens}`, in milliseconds; all at once
 * by default. With `held` streams go on until `POST /release` with `{over}`: then they end one by one within so many
 * milliseconds. A streamed request that offers tools is answered with a call of the first one if its last message is a
 * user's and has the word "tool". With `alike` every text has the same vector, which costs nothing. `MODEL_KEEP_ALIVE` is how many
 * milliseconds a connection may be idle. `node bench/model.mjs` serves on a free port and prints it.
 */
import * as http from "node:http"
import * as path from "node:path"

export const dimensions = 1_536

/** FNV-1a. */
const hash = (text) => {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  return value >>> 0
}

const directions = new Map()

/** The direction of a word: dense, and the same in every process. */
const direction = (word, size) => {
  const key = `${size} ${word}`
  const cached = directions.get(key)
  if (cached !== undefined) return cached
  let state = hash(word) | 1
  const values = Float32Array.from({ length: size }, () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return state / 2_147_483_648
  })
  // Words that occur in only one text would fill the memory.
  if (directions.size < 5_000) directions.set(key, values)
  return values
}

/** The directions of a text's words together. */
export const sumOf = (text, size = dimensions) => {
  const sum = new Float32Array(size)
  for (const word of text.toLowerCase().match(/[a-z0-9]+/g) ?? ["nothing"]) {
    const added = direction(word, size)
    for (let at = 0; at < size; at++) sum[at] += added[at]
  }
  return sum
}

/** The vector of a text: the directions of its words, of length one. */
export const vectorOf = (text, size = dimensions) => {
  const sum = sumOf(text, size)
  let square = 0
  for (const value of sum) square += value * value
  const scale = 1 / Math.sqrt(square)
  return sum.map((value) => value * scale)
}

const numbers = (text, size) => Array.from(vectorOf(text, size), (value) => Math.round(value * 1e6) / 1e6)

const frame = (delta, rest = {}) =>
  `data: ${JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion.chunk",
    created: 1,
    model: "bench",
    choices: [{ index: 0, delta, finish_reason: null }],
    ...rest
  })}\n\n`
const words = "You find that in the settings of your account, where every change is kept for a week. ".split(
  /(?<= )/
)
const token = (place) => words[place % words.length]
const frames = words.map((content) => frame({ content }))
const usage = (tokens) => ({ prompt_tokens: 900, completion_tokens: tokens, total_tokens: 900 + tokens })
const endOfStream = (tokens) =>
  `${frame({}, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}${frame({}, { choices: [], usage: usage(tokens) })}data: [DONE]\n\n`

/** When held streams began to end, and the milliseconds within which all of them end. */
let release = { at: Number.POSITIVE_INFINITY, over: 0 }

const sendStream = (response, { first, gap, held = false, tokens }) => {
  const place = Math.random()
  const isHeld = () => held && performance.now() - release.at < place * release.over
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.write(frame({ role: "assistant", content: "" }))
  let sent = 0
  const next = () => {
    if (response.destroyed) return
    do response.write(frames[sent++ % frames.length])
    while (gap === 0 && sent < tokens)
    if (sent < tokens || isHeld()) setTimeout(next, gap)
    else response.end(endOfStream(tokens))
  }
  if (first === 0) next()
  else setTimeout(next, first)
}

const streamToolCall = (response, name) => {
  const call = { index: 0, id: `call_${Date.now()}`, type: "function" }
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.write(frame({ tool_calls: [{ ...call, function: { name, arguments: '{"number":"1042"}' } }] }))
  response.end(
    `${frame({}, { choices: [{ index: 0, delta: {}, finish_reason: "tool_calls" }] })}data: [DONE]\n\n`
  )
}

const wantsTool = ({ messages, tools }) => {
  const last = messages.at(-1)
  return tools !== undefined && last.role === "user" && /\btool\b/.test(JSON.stringify(last.content))
}

const sendWhole = (response, { first, gap, tokens }) => {
  const content = Array.from({ length: tokens }, (_, place) => token(place)).join("")
  const answer = () =>
    sendJson(response, {
      id: "chatcmpl-bench",
      object: "chat.completion",
      created: 1,
      model: "bench",
      choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
      usage: usage(tokens)
    })
  const wait = first + gap * (tokens - 1)
  if (wait === 0) answer()
  else setTimeout(answer, wait)
}

const sendJson = (response, body) => {
  const text = JSON.stringify(body)
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text)
  })
  response.end(text)
}

const alikeBodies = new Map()

/** Serialized once for each number of texts. */
const sendAlike = (response, count, size) => {
  const key = `${count} ${size}`
  if (!alikeBodies.has(key)) {
    const embedding = numbers("the same", size)
    const data = Array.from({ length: count }, (_, index) => ({ object: "embedding", index, embedding }))
    alikeBodies.set(
      key,
      JSON.stringify({ object: "list", model: "bench", data, usage: { prompt_tokens: 8, total_tokens: 8 } })
    )
  }
  response.writeHead(200, { "content-type": "application/json" })
  response.end(alikeBodies.get(key))
}

/** The provider's form for `encoding_format: "base64"`. */
const base64Of = (text, size) => Buffer.from(vectorOf(text, size).buffer).toString("base64")

const sendEmbeddings = (response, { dimensions: size = dimensions, encoding_format, input, model }, pace) => {
  const texts = Array.isArray(input) ? input : [input]
  if (pace.alike) return sendAlike(response, texts.length, size)
  const form = encoding_format === "base64" ? base64Of : numbers
  const data = texts.map((text, index) => ({ object: "embedding", index, embedding: form(text, size) }))
  sendJson(response, { object: "list", model, data, usage: { prompt_tokens: 8, total_tokens: 8 } })
}

const serve = () => {
  let pace = { first: 0, gap: 0, tokens: 50 }
  const server = http.createServer((request, response) => {
    const chunks = []
    request.on("data", (chunk) => chunks.push(chunk))
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(chunks).toString() || "{}")
      if (request.url.endsWith("/embeddings")) sendEmbeddings(response, body, pace)
      else if (request.url === "/pace") {
        pace = body
        sendJson(response, {})
      } else if (request.url === "/release") {
        release = { at: performance.now(), over: body.over }
        sendJson(response, {})
      } else if (!request.url.endsWith("/chat/completions")) response.writeHead(404).end()
      else if (body.stream && wantsTool(body)) streamToolCall(response, body.tools[0].function.name)
      else if (body.stream) sendStream(response, pace)
      else sendWhole(response, pace)
    })
  })
  server.keepAliveTimeout = Number(process.env["MODEL_KEEP_ALIVE"] ?? 60_000)
  server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () =>
    console.log(`listening on http://127.0.0.1:${server.address().port}`)
  )
}

if (path.resolve(process.argv[1] ?? "") === import.meta.filename) serve()
