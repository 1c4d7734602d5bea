/** POST /chat with { "message": … } answers { "reply", "citations" }. Spoke's API and dashboard are mounted too. */
import { serve } from "@hono/node-server"
import { Hono } from "hono"
import { bodyLimit } from "hono/body-limit"
import { openGuide } from "./guide.mjs"

const { agent, spoke } = await openGuide()

const app = new Hono()

app.post("/chat", bodyLimit({ maxSize: 64 * 1024 }), async (context) => {
  const body = await context.req.json().catch(() => undefined)
  if (typeof body?.message !== "string") return context.json({ error: "a message is missing" }, 400)
  const { citations, reply } = await agent.chat({ message: body.message })
  return context.json({ reply, citations })
})
app.all("*", (context) => spoke.fetch(context.req.raw))

const server = serve(
  { fetch: app.fetch, hostname: "127.0.0.1", port: Number(process.env.PORT ?? 3000) },
  (info) => {
    process.stdout.write(`Listening on http://127.0.0.1:${info.port}\n`)
  }
)

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    server.close()
    void spoke.close()
  })
}
