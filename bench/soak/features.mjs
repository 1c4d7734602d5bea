/**
 * The part of a soak's load that uses what a tenant can switch on: a tool, masking, a second version, events, the widget,
 * sockets, the team's inbox, replays, experiments, uploads, and export and erasure of end users.
 */
import { randomUUID } from "node:crypto"
import WebSocket from "ws"
import { ask, dataOf, readAndRemove } from "./ask.mjs"
import { until } from "../machine.mjs"

export const phoneNumberId = "106540352242922"

const events = ["turn.settled", "handoff.requested", "message.sent", "source.ready", "feedback.given"]

/** Switches the features on, with the session of the owner. */
export const switchOn = async (world) => {
  const { cookie, graph, spoke } = world
  const asOwner = (method, path, body) => ask(world, method, path, { body, cookie })
  const agent = `/api/agents/${spoke.agentId}`
  await asOwner("POST", `${agent}/channels`, {
    channel: "whatsapp",
    externalId: phoneNumberId,
    accessToken: "EAAB-soak"
  })
  await asOwner("POST", "/api/webhook-endpoints", { url: `${graph}/events`, events, payload: "full" })
  await asOwner("POST", `${agent}/tools`, {
    name: "order",
    description: "Looks up an order by its number.",
    parameters: { type: "object", properties: { number: { type: "string" } }, required: ["number"] },
    http: { method: "GET", url: `${graph}/orders/{number}` }
  })
  await asOwner("PATCH", agent, { masking: { kinds: ["email", "phone", "card"] } })
  const draft = { instructions: "Be brief.", publish: false }
  const { version } = dataOf(await asOwner("PATCH", agent, draft)).agent
  await asOwner("PUT", `${agent}/split`, { version, share: 0.3 })
  for (const question of ["How do I change my order?", "What does a refund cost?"]) {
    await asOwner("POST", `${agent}/cases`, { question })
  }
}

/** Kinds of requests, and how often each is made in a second. */
export const featureKinds = (world) => {
  const { cookie, spoke } = world
  const agent = `/api/agents/${spoke.agentId}`
  const question = () => `How do I pay order ${randomUUID().slice(0, 8)}? I am ada@example.com.`
  const asOwner = (method, path, body, expected) => ask(world, method, path, { body, cookie, expected })
  const chat = async (message = question(), extra = {}) =>
    dataOf(await ask(world, "POST", "/v1/chat", { body: { message, ...extra } }))

  /** A socket that gets the messages of the next turn. */
  const socket = async () => {
    const { conversationId, realtimeToken, realtimeUrl } = await chat()
    const client = new WebSocket(realtimeUrl, [`spoke.${realtimeToken}`])
    try {
      await new Promise((resolve, reject) => client.on("open", resolve).on("error", reject))
      let hasMessage = false
      client.on("message", (text) => {
        if (JSON.parse(text).type === "message.created") hasMessage = true
      })
      await chat(question(), { conversationId })
      await until("A message over the socket", 30_000, async () => hasMessage || undefined)
    } finally {
      client.terminate()
    }
  }

  /** A visitor of the widget rates a reply, asks for a person, and gets an answer of the team. */
  const widget = async () => {
    const sdk = async (path, body) =>
      dataOf(await ask(world, body === undefined ? "GET" : "POST", `/api/sdk/${path}`, { body }))
    const { sessionId } = await sdk("init", {})
    await ask(world, "POST", "/api/v1/chat/stream", { body: { sessionId, message: question() } })
    const { messages } = await sdk(`messages?sessionId=${sessionId}`)
    await sdk("feedback", { sessionId, messageId: messages.at(-1).id, rating: Math.random() < 0.5 ? 1 : -1 })
    const { conversation } = await sdk("handoff", { sessionId, reason: "Wants a person" })
    const path = `/api/conversations/${conversation.id}`
    await asOwner("POST", `${path}/takeover`)
    await asOwner("POST", `${path}/messages`, { content: "I have looked it up for you." })
    await asOwner("POST", `${path}/notes`, { content: "A friendly person." })
    await asOwner("POST", `${path}/close`)
  }

  /** A turn whose trace is read, and which is replayed. */
  const replay = async () => {
    const { runId } = await chat()
    await ask(world, "GET", `/v1/agent-runs/${runId}`)
    await asOwner("POST", `${agent}/replays`, { runIds: [runId] })
  }

  const experiment = async () => {
    const { id } = dataOf(await asOwner("POST", `${agent}/experiments`, {})).experiment
    const status = await until(
      "The experiment",
      300_000,
      async () => {
        const { status: now } = dataOf(await asOwner("GET", `/api/experiments/${id}`)).experiment
        return now === "queued" || now === "running" ? undefined : now
      },
      500
    )
    if (status !== "complete") throw new Error(`The experiment is ${status}`)
    await asOwner("DELETE", `/api/experiments/${id}`)
  }

  const upload = async () => {
    const boundary = randomUUID()
    const part = (name, value, extra = "") =>
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${extra}\r\n\r\n${value}\r\n`
    const text = `# Orders\n\nOrder ${boundary} can be changed for a week.\n`
    const raw = `${part("name", boundary)}${part("file", text, '; filename="orders.md"')}--${boundary}--\r\n`
    const headers = { "content-type": `multipart/form-data; boundary=${boundary}` }
    const { source } = dataOf(await ask(world, "POST", "/v1/sources/upload", { raw, headers }))
    await readAndRemove(world, source)
  }

  /** A person of whom everything is exported and then erased. */
  const erasure = async () => {
    const { conversationId } = await chat(question(), { externalEndUserId: randomUUID() })
    const { endUserId } = dataOf(await asOwner("GET", `/api/conversations/${conversationId}`))
    await asOwner("GET", `/api/end-users/${endUserId}/export`)
    await asOwner("DELETE", `/api/end-users/${endUserId}`)
  }

  const completions = (stream) =>
    ask(world, "POST", "/v1/chat/completions", {
      body: { model: spoke.agentId, messages: [{ role: "user", content: question() }], stream },
      headers: { authorization: `Bearer ${spoke.key}` }
    })

  return [
    [0.5, () => chat("Use the tool for my order.")],
    [0.3, () => completions(true)],
    [0.3, () => completions(false)],
    [0.3, socket],
    [0.2, widget],
    [0.2, replay],
    [0.05, experiment],
    [0.05, upload],
    [0.1, erasure],
    [0.2, () => asOwner("GET", "/api/inbox")],
    [0.1, () => asOwner("GET", "/api/insights")],
    [0.1, () => asOwner("GET", "/api/measures")],
    [0.1, () => asOwner("GET", "/api/audit")],
    [0.1, () => ask(world, "GET", "/v1/usage")]
  ]
}
