/**
 * The service around a framework for agents: Hono, with the retrieval and the storage of the hand-written peer.
 *
 *   POST /chat, /chat/stream {message}   embed, five chunks by pgvector, model, conversation and two messages stored
 */
import { serve } from "@hono/node-server"
import { Hono } from "hono"
import { createRequire } from "node:module"
import * as path from "node:path"
import { pathToFileURL } from "node:url"
import { startConversation, instructions, nearest, result, addMessage } from "./knowledge.mjs"

const packages = createRequire(path.join(process.env["PACKAGES"] ?? "", "package.json"))

/** A module of a package that is installed in the folder `PACKAGES`. */
export const load = (name) => import(pathToFileURL(packages.resolve(name)).href)

const encoder = new TextEncoder()
const frame = (part) => encoder.encode(`data: ${JSON.stringify(part)}\n\n`)

/**
 * Serves a framework. `embed` returns the vector of a text. `answer` and `stream` take instructions and a message, and
 * return the reply and an iterable of its text.
 */
export const serveFramework = ({ answer, embed, stream }) => {
  const app = new Hono()
  const prepare = async (context) => {
    const { message } = await context.req.json()
    const search = async () => nearest(await embed(message), 5)
    const [found, id] = await Promise.all([search(), startConversation(message)])
    return { found, id, message }
  }

  app.post("/chat", async (context) => {
    const { found, id, message } = await prepare(context)
    const text = await answer(instructions(found), message)
    await addMessage(id, "assistant", text)
    return context.json(result(text, id, found))
  })

  app.post("/chat/stream", async (context) => {
    const { found, id, message } = await prepare(context)
    const frames = async function* () {
      let text = ""
      for await (const delta of await stream(instructions(found), message)) {
        if (delta === "") continue
        text += delta
        yield frame({ type: "text-delta", id: "0", delta })
      }
      await addMessage(id, "assistant", text)
      yield frame({ type: "data-done", data: { result: result(text, id, found).data } })
      yield encoder.encode("data: [DONE]\n\n")
    }
    return new Response(ReadableStream.from(frames()), { headers: { "content-type": "text/event-stream" } })
  })

  serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) =>
    console.log(`listening on http://127.0.0.1:${port}`)
  )
}
