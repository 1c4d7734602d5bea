/** Random operations of clients under faults, one at a time each, with a record of every answer. */
import { createHmac } from "node:crypto"
import Stripe from "stripe"
import { checkout, event, subscription } from "../http/billing/BillingEvents.ts"
import type { Asked, History } from "./History.ts"
import { maxAnswerMs } from "./Oracle.ts"
import type { Random } from "./Random.ts"
import { account, appSecret, billingSecret, plans, type World } from "./World.ts"

type Json = ReturnType<typeof JSON.parse>

interface Heard extends Asked {
  readonly text: string
  readonly body: Json
}

interface Request {
  readonly method: string
  readonly path: string
  readonly body?: unknown
  readonly raw?: string | FormData
  readonly headers?: Readonly<Record<string, string>>
  /** The client leaves after so many milliseconds. */
  readonly leaves?: number
}

const parse = (text: string): Json => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Sends a request to `base`; without an answer its status is 0. */
export const ask = async (
  base: string,
  kind: string,
  { body, headers, leaves, method, path, raw }: Request
): Promise<Heard> => {
  const begun = performance.now()
  const end = (status: number, text: string): Heard => {
    const json = parse(text)
    const code =
      status >= 400 && typeof json?.meta?.requestId === "string" ? (json?.error?.code ?? null) : null
    return { kind, status, code, milliseconds: performance.now() - begun, text, body: json }
  }
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  let text = ""
  try {
    const response = await fetch(`${base}${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(payload === undefined ? {} : { body: payload }),
      signal: AbortSignal.timeout(leaves ?? maxAnswerMs + 10_000)
    })
    const decoder = new TextDecoder()
    if (response.body !== null)
      for await (const chunk of response.body) text += decoder.decode(chunk, { stream: true })
    return end(response.status, text)
  } catch {
    return end(0, text)
  }
}

/** Conversations, sources and keys that there are to go on with. */
export interface Client {
  /** False when no server answered: the caller pauses then. */
  readonly step: () => Promise<boolean>
  /** What a sender repeats until it is taken: deliveries and payments. */
  readonly settle: () => Promise<void>
}

const eventsOf = (text: string): ReadonlyArray<Json> =>
  text.split("\n").flatMap((line) => (line.startsWith("data: {") ? [parse(line.slice(6))] : []))

export const clientOf = (
  world: World,
  history: History,
  random: Random,
  { name, place }: { readonly name: string; readonly place: number }
): Client => {
  const key = { "x-api-key": world.agentKey }
  const conversations: Array<string> = []
  const taken = new Set<string>()
  const sources: Array<{ readonly id: string; readonly mark: string }> = []
  const spareKeys: Array<{ readonly id: string; readonly secret: string }> = []
  const deliveries: Array<Request & { readonly messageId: string }> = []
  const payments: Array<{ readonly eventId: string; readonly credits: number; readonly payload: string }> = []
  const tidings: Array<{
    readonly eventId: string
    readonly created: number
    readonly plan: string
    readonly payload: string
  }> = []
  let count = 0
  let unanswered = false
  const mark = (kind: string) => `${kind}-${name}-${++count}`
  const heard = async (kind: string, request: Request): Promise<Heard> => {
    const answered = await ask(world.url(), kind, request)
    const { body: _, text: __, ...asked } = answered
    unanswered = answered.status === 0 && request.leaves === undefined
    history.asked.push(request.leaves === undefined ? asked : { ...asked, status: 0 })
    return answered
  }
  const owner = async (kind: string, method: string, path: string, body?: unknown): Promise<Heard> => {
    const begun = performance.now()
    const answered = await world.team.owner(method, path, body).catch(() => ({ status: 0, body: null }))
    const asked = {
      kind,
      status: answered.status,
      code: answered.status >= 400 ? (answered.body?.error?.code ?? null) : null,
      milliseconds: performance.now() - begun
    }
    unanswered = answered.status === 0
    history.asked.push(asked)
    return { ...asked, text: "", body: answered.body }
  }

  const chat = async (continued: boolean, persist = true) => {
    const words = mark("turn")
    const conversationId = continued && conversations.length > 0 ? random.pick(conversations) : undefined
    const body = {
      message: words,
      ...(conversationId && { conversationId }),
      ...(persist ? {} : { persist })
    }
    const answered = await heard("POST /v1/chat", { method: "POST", path: "/v1/chat", headers: key, body })
    history.turns.push({ ...answered, mark: words, persist, done: answered.status === 200 })
    const made = answered.body?.data?.conversationId
    if (persist && answered.status === 200 && conversationId === undefined && made) conversations.push(made)
  }
  const stream = async (leaves?: number) => {
    const words = mark("stream")
    const conversationId =
      conversations.length > 0 && random.next() < 0.5 ? random.pick(conversations) : undefined
    const body = { message: words, ...(conversationId && { conversationId }) }
    const request = { method: "POST", path: "/v1/chat/stream", headers: key, body }
    const answered = await heard(
      "POST /v1/chat/stream",
      leaves === undefined ? request : { ...request, leaves }
    )
    const done = eventsOf(answered.text).find((one) => one?.type === "data-done")
    history.turns.push({ ...answered, mark: words, persist: true, done: done !== undefined })
    const made = done?.data?.result?.conversationId
    if (conversationId === undefined && made) conversations.push(made)
  }

  const createSource = async () => {
    const words = mark("source")
    const idempotencyKey = random.next() < 0.7 ? `key-${words}` : null
    const request: Request = {
      method: "POST",
      path: "/v1/sources",
      headers: { ...key, ...(idempotencyKey === null ? {} : { "idempotency-key": idempotencyKey }) },
      body: { type: "URL", name: words, config: { url: `${world.site}/${words}` } }
    }
    for (let times = idempotencyKey === null ? 1 : 1 + random.below(3); times > 0; times--) {
      const answered = await heard("POST /v1/sources", request)
      const source = answered.body?.data?.source
      history.creations.push({
        ...answered,
        mark: words,
        idempotencyKey,
        sourceId: source?.id ?? null,
        data: JSON.stringify(answered.body?.data ?? null)
      })
      if (source && times === 1) sources.push({ id: source.id, mark: words })
    }
  }
  const upload = async () => {
    const words = mark("upload")
    const raw = new FormData()
    raw.append("name", words)
    raw.append(
      "file",
      new File([`${words}. ${"The lighthouse keeper. ".repeat(500)}`], `${words}.txt`, { type: "text/plain" })
    )
    const answered = await heard("POST /v1/sources/upload", {
      method: "POST",
      path: "/v1/sources/upload",
      headers: key,
      raw
    })
    history.creations.push({
      ...answered,
      mark: words,
      idempotencyKey: null,
      sourceId: answered.body?.data?.source?.id ?? null,
      data: ""
    })
  }
  const syncSource = async () => {
    if (sources.length === 0) return createSource()
    const { id } = random.pick(sources)
    await heard("POST /v1/sources/:id/sync", {
      method: "POST",
      path: `/v1/sources/${id}/sync`,
      headers: key,
      body: {}
    })
  }
  const deleteSource = async () => {
    if (sources.length < 2) return createSource()
    const [source] = sources.splice(random.below(sources.length), 1)
    if (source === undefined) return
    const request = { method: "DELETE", path: `/v1/sources/${source.id}`, headers: key }
    const answered = await heard("DELETE /v1/sources/:id", request)
    history.deletions.push({ ...answered, sourceId: source.id, mark: source.mark })
  }

  const deliver = async (request: Request & { readonly messageId: string }) => {
    const answered = await heard("POST /api/webhooks/whatsapp", request)
    history.deliveries.push({ ...answered, messageId: request.messageId })
    return answered.status === 200
  }
  const webhook = async () => {
    const messageId = `wamid.${mark("message")}`
    const message = {
      from: String(491_700_000_000 + random.below(6)),
      id: messageId,
      timestamp: String(Math.floor(Date.now() / 1_000)),
      type: "text",
      text: { body: `Where is ${messageId}?` }
    }
    const value = { metadata: { phone_number_id: account }, messages: [message] }
    const raw = JSON.stringify({ entry: [{ id: "waba", changes: [{ field: "messages", value }] }] })
    const signature = `sha256=${createHmac("sha256", appSecret).update(raw).digest("hex")}`
    const headers = { "x-hub-signature-256": signature, "content-type": "application/json" }
    const request = { method: "POST", path: "/api/webhooks/whatsapp", raw, headers, messageId }
    deliveries.push(request)
    for (let times = 1 + random.below(2); times > 0; times--) await deliver(request)
  }

  const human = async () => {
    const open = conversations.filter((id) => !taken.has(id))
    if (open.length < 3) return chat(false)
    const id = random.pick(open)
    taken.add(id)
    const answered = await owner("takeover", "POST", `/api/conversations/${id}/takeover`)
    history.takings.push({ ...answered, conversationId: id, at: Date.now() })
    const words = mark("human")
    const said = await owner("human reply", "POST", `/api/conversations/${id}/messages`, { content: words })
    history.said.push({ ...said, mark: words })
  }

  const keys = async () => {
    const old = spareKeys.pop()
    if (old !== undefined) {
      const answered = await owner("revoke", "DELETE", `/api/keys/${old.id}`)
      history.revocations.push({ ...answered, keyId: old.secret })
    }
    const path = `/api/agents/${world.team.agentId}/keys`
    const made = await owner("create a key", "POST", path, { name: mark("key"), permissions: ["retrieve"] })
    if (made.status === 201) spareKeys.push({ id: made.body.data.key.id, secret: made.body.data.secret })
  }

  const bill = (payload: string) => {
    const headers = {
      "content-type": "application/json",
      "billing-signature": Stripe.webhooks.generateTestHeaderString({
        payload,
        secret: billingSecret,
        timestamp: Math.floor(Date.now() / 1_000)
      })
    }
    return heard("POST /api/webhooks/billing", {
      method: "POST",
      path: "/api/webhooks/billing",
      raw: payload,
      headers
    })
  }
  const pay = async ({ credits, eventId, payload }: (typeof payments)[number]) => {
    history.payments.push({ ...(await bill(payload)), eventId, credits })
  }
  const tell = async ({ created, eventId, payload, plan }: (typeof tidings)[number]) => {
    history.plans.push({ ...(await bill(payload)), eventId, created, plan })
  }
  const payment = async () => {
    if (payments.length > 0 && random.next() < 0.4) return void (await pay(random.pick(payments)))
    const eventId = `evt_${mark("payment")}`
    const credits = 1 + random.below(9)
    const sold = checkout(world.team.tenantId, String(credits), {
      id: `cs_${eventId}`,
      payment_intent: `pi_${eventId}`
    })
    // Some are told of late.
    const payload = JSON.stringify(
      event("checkout.session.completed", 1_900_000_000 - random.below(10_000), sold, eventId)
    )
    const made = { eventId, credits, payload }
    payments.push(made)
    await pay(made)
  }

  /** In any order, as they come from a provider that repeats what was not taken. */
  const changePlan = async () => {
    if (tidings.length > 0 && random.next() < 0.4) return tell(random.pick(tidings))
    const eventId = `evt_${mark("plan")}`
    const plan = random.pick(plans)
    const created = 1_900_000_000 + random.below(100_000) * 16 + place
    const now = Math.floor(Date.now() / 1_000)
    const period = { start: now - 864_000, end: now + 1_728_000 }
    const changed = subscription({ id: "sub_faults", tenantId: world.team.tenantId, plan, period })
    const payload = JSON.stringify(event("customer.subscription.updated", created, changed, eventId))
    const made = { eventId, created, plan, payload }
    tidings.push(made)
    await tell(made)
  }

  const read = async () => {
    const path = random.pick(["/v1/conversations?limit=5", "/v1/sources", "/healthz", "/v1/agents/none"])
    await heard(`GET ${path}`, { method: "GET", path, headers: key })
  }
  const retrieve = () =>
    heard("POST /v1/retrieve", {
      method: "POST",
      path: "/v1/retrieve",
      headers: key,
      body: { query: "granite" }
    })

  const operations: ReadonlyArray<readonly [number, () => Promise<unknown>]> = [
    [4, () => chat(false)],
    [4, () => chat(true)],
    [1, () => chat(random.next() < 0.5, false)],
    [4, () => stream()],
    [2, () => stream(20 + random.below(150))],
    [3, createSource],
    [1, upload],
    [1, syncSource],
    [2, deleteSource],
    [4, webhook],
    [1.5, human],
    [1.5, keys],
    [2, payment],
    [1, changePlan],
    [2, read],
    [2, retrieve]
  ]
  return {
    step: async () => {
      await random.weighed(operations)()
      return !unanswered
    },
    settle: async () => {
      const accepted = new Set(
        [...history.payments, ...history.plans]
          .filter(({ status }) => status === 200)
          .map(({ eventId }) => eventId)
      )
      for (const one of payments) if (!accepted.has(one.eventId)) await pay(one)
      for (const one of tidings) if (!accepted.has(one.eventId)) await tell(one)
      for (const one of deliveries) await deliver(one)
    }
  }
}
