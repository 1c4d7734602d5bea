/** Every HTTP surface of Spoke inside a Hono application. `node examples/hono.mjs` */
import { Hono } from "hono"
import { createSpoke } from "spoke"

export const spoke = await createSpoke({ dataDir: process.env.SPOKE_DATA_DIR ?? ".spoke" })

export const app = new Hono()
app.get("/hello", (context) => context.text("Hello"))
// Every path without a Hono route: API, dashboard, widget, webhooks.
app.all("*", (context) => spoke.fetch(context.req.raw))

// Run as a program, it listens with @hono/node-server.
if (process.argv[1] === import.meta.filename) {
  const { serve } = await import("@hono/node-server")
  serve({ fetch: app.fetch, port: 3000 })
}
