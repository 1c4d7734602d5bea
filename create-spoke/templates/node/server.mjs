/** POST /chat with { "message": … } answers { "reply", "citations" }. */
import { createServer } from "node:http"
import { openGuide } from "./guide.mjs"

const maxBodyBytes = 64 * 1024

const { agent, spoke } = await openGuide()

/** Undefined when the body is too long or is not JSON. */
const bodyOf = async (request) => {
  const parts = []
  let bytes = 0
  for await (const part of request) {
    bytes += part.length
    if (bytes > maxBodyBytes) return undefined
    parts.push(part)
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString("utf8"))
  } catch {
    return undefined
  }
}

const answer = async (request) => {
  if (request.method !== "POST" || request.url !== "/chat")
    return { status: 404, body: { error: "POST /chat" } }
  const message = (await bodyOf(request))?.message
  if (typeof message !== "string") return { status: 400, body: { error: "a message is missing" } }
  const { citations, reply } = await agent.chat({ message })
  return { status: 200, body: { reply, citations } }
}

const server = createServer((request, response) => {
  answer(request)
    .catch((error) => ({ status: 500, body: { error: error.message } }))
    .then(({ body, status }) => {
      response.writeHead(status, { "content-type": "application/json" })
      response.end(JSON.stringify(body))
    })
})

server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  process.stdout.write(`Listening on http://127.0.0.1:${server.address().port}\n`)
})

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    server.close()
    void spoke.close()
  })
}
