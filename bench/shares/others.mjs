/** Well-behaved clients: one of each kind, at its own rate. Every response is timed. */
import { createHmac } from "node:crypto"
import * as http from "node:http"
import { call } from "../spoke.mjs"
import { billingSecret, deliveryOf, pause } from "./world.mjs"

/** Longer than the maximum waiting and processing time of a request. */
const answerTimeoutMs = 60_000

/** One request from an address of its own; rejects when it is refused, or not answered. */
const ask = (url, address, path, { body, headers = {}, method = "POST", expected = [200, 201] } = {}) =>
  new Promise((resolve, reject) => {
    const payload = body === undefined || typeof body === "string" ? body : JSON.stringify(body)
    const request = http.request(
      `${url}${path}`,
      {
        method,
        agent: false,
        localAddress: address,
        timeout: answerTimeoutMs,
        headers: {
          ...(payload !== undefined && {
            "content-type": "application/json",
            "content-length": Buffer.byteLength(payload)
          }),
          ...headers
        }
      },
      (response) => {
        let text = ""
        response.setEncoding("utf8").on("data", (chunk) => (text += chunk))
        response.on("error", reject)
        response.on("end", () => {
          if (expected.includes(response.statusCode)) resolve(text)
          else reject(new Error(`${response.statusCode} ${text.slice(0, 120)}`))
        })
      }
    )
    request.on("timeout", () => request.destroy(new Error("no answer")))
    request.on("error", (error) => reject(new Error(error.code ?? error.message)))
    request.end(payload)
  })

/** Opens a realtime socket, and closes it after the first state of its conversation. */
const openSocket = (url, address, path) =>
  new Promise((resolve, reject) => {
    const request = http.request(`${url}${path}`, {
      agent: false,
      localAddress: address,
      timeout: answerTimeoutMs,
      headers: {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": Buffer.alloc(16).toString("base64")
      }
    })
    request.on("upgrade", (_, socket, head) => {
      const done = () => {
        socket.destroy()
        resolve()
      }
      socket.on("error", reject)
      if (head.length > 0) done()
      else socket.once("data", done)
    })
    request.on("response", ({ statusCode }) => {
      request.destroy()
      reject(new Error(String(statusCode)))
    })
    request.on("timeout", () => request.destroy(new Error("no answer")))
    request.on("error", reject)
    request.end()
  })

const form = (name) => {
  const boundary = "----of-the-benchmark"
  const part = (head, text) => `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n${text}\r\n`
  const body =
    part('name="name"', name) +
    part(`name="file"; filename="${name}.txt"`, `${name}. The lighthouse keeper keeps the keys.`) +
    `--${boundary}--\r\n`
  return { body, headers: { "content-type": `multipart/form-data; boundary=${boundary}` } }
}

/** Kinds of work, and how many milliseconds pass between an answer and the next question. */
const kindsOf = ({ account, conversation, key, owner, session, site, url }) => {
  const keyHeaders = { "x-api-key": key }
  let count = 0
  const from = (address) => (path, options) => ask(url, address, path, options)
  const waitForIngestion = async (created) => {
    const { id } = JSON.parse(created).data.ingestionJob
    for (;;) {
      const job = await ask(url, "127.0.1.8", `/v1/ingestion-jobs/${id}`, {
        method: "GET",
        headers: keyHeaders
      })
      const { error, status } = JSON.parse(job).data
      if (status === "SUCCEEDED") return
      if (status === "FAILED" || status === "CANCELLED") throw new Error(`the job has failed: ${error}`)
      await pause(50)
    }
  }
  const sendBillingEvent = () => {
    const at = Math.floor(Date.now() / 1_000)
    const body = JSON.stringify({
      id: `evt_shares_${++count}`,
      object: "event",
      type: "product.updated",
      created: at,
      data: { object: { id: "prod_1", object: "product" } }
    })
    const signature = createHmac("sha256", billingSecret).update(`${at}.${body}`).digest("hex")
    return from("127.0.1.4")("/api/webhooks/billing", {
      body,
      headers: { "billing-signature": `t=${at},v1=${signature}` }
    })
  }
  return {
    health: [50, () => from("127.0.1.1")("/healthz", { method: "GET" })],
    chat: [
      50,
      () => from("127.0.1.2")("/v1/chat", { body: { message: `Question ${++count}?` }, headers: keyHeaders })
    ],
    retrieve: [
      50,
      () =>
        from("127.0.1.3")("/v1/retrieve", {
          body: { query: `How do I change order ${++count}?` },
          headers: keyHeaders
        })
    ],
    billing: [50, sendBillingEvent],
    delivery: [
      50,
      () => from("127.0.1.5")("/api/webhooks/whatsapp", deliveryOf(account, `others.${++count}`))
    ],
    "sign-in": [
      1_000,
      () => from("127.0.1.6")("/api/auth/login", { body: owner, headers: { "x-spoke-csrf": "1" } })
    ],
    socket: [100, () => openSocket(url, "127.0.1.7", `/api/realtime?token=${conversation.realtimeToken}`)],
    upload: [
      500,
      () => {
        const { body, headers } = form(`shares-${++count}`)
        return from("127.0.1.9")("/v1/sources/upload", { body, headers: { ...keyHeaders, ...headers } })
      }
    ],
    page: [
      100,
      async () => {
        const config = { url: `${site}/p/${++count}` }
        const body = { type: "URL", name: `Page ${count}`, config }
        await waitForIngestion(await from("127.0.1.10")("/v1/sources", { body, headers: keyHeaders }))
      }
    ],
    team: [100, () => from("127.0.1.11")("/api/agents", { method: "GET", headers: { cookie: session } })]
  }
}

/** Runs until stopped; `{stop}`, which returns `{kind: {answered, failures}}`, `answered` in milliseconds. */
export const startOthers = (world) => {
  const results = {}
  let isOver = false
  const loops = Object.entries(kindsOf(world)).map(async ([kind, [gap, work]]) => {
    const answered = []
    const failures = []
    results[kind] = { answered, failures }
    while (!isOver) {
      const from = performance.now()
      try {
        await work()
        answered.push(performance.now() - from)
      } catch (error) {
        failures.push(error.message)
      }
      await pause(gap)
    }
  })
  const stop = async () => {
    isOver = true
    await Promise.all(loops)
    return results
  }
  return { stop }
}

/** A tenant with an agent, a key, a channel, an owner who is signed in and a visitor. */
export const createTenant = async (spoke, name, account, operatorToken) => {
  const { url } = spoke
  const owner = { email: `${name}@example.com`, password: "correct horse battery" }
  const post = (path, body, headers) => call(`${url}${path}`, { method: "POST", body, headers })
  await post("/api/operator/tenants", { name, owner }, { authorization: `Bearer ${operatorToken}` })
  const { cookie } = await post("/api/auth/login", owner, { "x-spoke-csrf": "1" })
  const session = { cookie, "x-spoke-csrf": "1" }
  const { agent } = (await post("/api/agents", { name }, session)).data
  const key = (await post(`/api/agents/${agent.id}/keys`, { name, permissions: ["*"] }, session)).data.secret
  const channel = { channel: "whatsapp", externalId: account, accessToken: "EAAB-shares" }
  await post(`/api/agents/${agent.id}/channels`, channel, session)
  const { data: conversation } = await post("/v1/chat", { message: "Hello?" }, { "x-api-key": key })
  return { account, conversation, key, owner, session: cookie, url }
}
