/** The load of a soak: an even mix of requests, at a rate below the server's capacity. */
import { createHmac } from "node:crypto"
import * as http from "node:http"
import { ask, dataOf, readAndRemove } from "./ask.mjs"
import { featureKinds, phoneNumberId } from "./features.mjs"

export const appSecret = "the app secret of the soak"

/** A messaging provider that accepts every message. It also answers as the tool, and as the endpoint of events. */
export const startGraph = async () => {
  let sentCount = 0
  const received = { events: 0, orders: 0 }
  const server = http.createServer((request, response) => {
    request.resume()
    request.on("end", () => {
      response.writeHead(200, { "content-type": "application/json" })
      for (const kind of Object.keys(received)) if (request.url.includes(`/${kind}`)) received[kind]++
      const account = /\/([^/?]+)\?fields=id$/.exec(request.url)?.[1]
      if (account !== undefined) return response.end(JSON.stringify({ id: account }))
      response.end(JSON.stringify({ success: true, messages: [{ id: `wamid.out.${++sentCount}` }] }))
    })
  })
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
  const stop = () => {
    server.close()
    server.closeAllConnections()
  }
  return { url: `http://127.0.0.1:${server.address().port}/v25.0`, received, stop }
}

/** The open conversations. Each has some turns, and then another one takes its place. */
const conversations = () => {
  const open = []
  return {
    opened: (id) => {
      if (open.push({ id, turns: 0 }) > 20) open.shift()
    },
    next: () => {
      const one = open[Math.floor(Math.random() * open.length)]
      if (one !== undefined && ++one.turns >= 12) open.splice(open.indexOf(one), 1)
      return one?.id
    }
  }
}

/** Kinds of requests, and how often each is made in a second. */
const kinds = (world) => {
  const { run, site } = world
  const openConversations = conversations()
  let count = 0
  const question = () => `How do I change order ${++count} of my account?`
  const source = async () => {
    const config = { sitemapUrl: `${site}/sitemap-${(count++ % 50) * 3}-3.xml` }
    const body = { type: "SITEMAP", name: `Soak ${count}`, config }
    const created = dataOf(await ask(world, "POST", "/v1/sources", { body })).source
    await readAndRemove(world, created)
  }
  const chat = async (path, extra = {}, options = {}) => {
    const text = await ask(world, "POST", path, { body: { message: question(), ...extra }, ...options })
    if (path === "/v1/chat") {
      const { conversationId } = dataOf(text)
      if (conversationId && extra.conversationId === undefined) openConversations.opened(conversationId)
    }
  }
  const webhook = () => {
    const id = `wamid.${run}.${++count}`
    const from = String(491_700_000_000 + (count % 200))
    const message = {
      from,
      id,
      timestamp: String(Math.floor(Date.now() / 1_000)),
      type: "text",
      text: { body: `Where is ${id}?` }
    }
    const value = { metadata: { phone_number_id: phoneNumberId }, messages: [message] }
    const raw = JSON.stringify({ entry: [{ id: "waba", changes: [{ field: "messages", value }] }] })
    const signature = `sha256=${createHmac("sha256", appSecret).update(raw).digest("hex")}`
    return ask(world, "POST", "/api/webhooks/whatsapp", {
      raw,
      headers: { "x-hub-signature-256": signature }
    })
  }
  return [
    [1, () => chat("/v1/chat")],
    [1, () => chat("/v1/chat", { conversationId: openConversations.next() })],
    [1, () => chat("/v1/chat/stream", { conversationId: openConversations.next() })],
    [0.5, () => chat("/v1/chat/stream", {}, { leaveAfter: 200 })],
    [0.5, () => chat("/v1/chat", { persist: false })],
    [3, () => ask(world, "POST", "/v1/retrieve", { body: { query: question() } })],
    [0.5, webhook],
    [1, () => ask(world, "GET", "/v1/conversations?limit=20")],
    [0.5, () => ask(world, "GET", "/v1/conversations/none", { expected: [404] })],
    [0.5, () => ask(world, "GET", "/v1/sources", { headers: { "x-api-key": "wrong" }, expected: [401] })],
    [0.3, () => ask(world, "GET", "/metrics")],
    [0.1, source],
    ...featureKinds(world)
  ]
}

/** Sends requests until `stop`, which waits for the running ones. Returns `{stop, seen}`. */
export const startMix = (world) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64 })
  const seen = { requests: 0, errors: 0, kinds: {} }
  const running = new Set()
  const timers = kinds({ ...world, agent }).map(([perSecond, work]) =>
    setInterval(() => {
      // If the machine is behind, no requests are added.
      if (running.size >= 64) return
      seen.requests++
      const one = work()
        .catch(({ code, message }) => {
          seen.errors++
          const why = String(code ?? message).slice(0, 160)
          seen.kinds[why] = (seen.kinds[why] ?? 0) + 1
        })
        .finally(() => running.delete(one))
      running.add(one)
    }, 1_000 / perSecond)
  )
  const stop = async () => {
    for (const timer of timers) clearInterval(timer)
    await Promise.all(running)
    agent.destroy()
  }
  return { seen, stop }
}
