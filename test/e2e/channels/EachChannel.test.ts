/** The contract of channels, on each of them, over a running service that is killed in between. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { storeOf } from "../Engines.ts"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam, type Team } from "../Team.ts"
import { contactOf, type Delivery, type Provider, startProviders } from "./Providers.ts"

const dataDir = temporaryFolder()
let world: Awaited<ReturnType<typeof startProviders>>
let spoke: Spoke
let team: Team
let next = 0

const names = ["whatsapp", "messenger", "telegram", "slack", "email"] as const

const of = (channel: string): Provider => {
  const found = world.providers.find((provider) => provider.channel === channel)
  if (found === undefined) throw new Error(`There is no ${channel}.`)
  return found
}

const post = async ({ body, headers, path }: Delivery) => {
  const response = await fetch(`${spoke.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body
  })
  const text = await response.text()
  return { status: response.status, data: text.startsWith("{") ? JSON.parse(text).data : undefined }
}

const sends = (provider: Provider, contact: string, count: number) =>
  until(
    async () => provider.sent(contact).length,
    (sent) => sent >= count
  )

beforeAll(async () => {
  world = await startProviders()
  spoke = await start(dataDir, world.variables)
  team = await makeTeam(spoke)
}, 60_000)

afterAll(async () => {
  await spoke.kill()
  world.close()
  removeFolder(dataDir)
})

const hostile: ReadonlyArray<string> = [
  "",
  "null",
  "[]",
  "7",
  '"text"',
  "{",
  `${"[".repeat(10_000)}${"]".repeat(10_000)}`,
  JSON.stringify({ entry: 7, message: 7, update_id: {}, event: [] }),
  JSON.stringify({ entry: [{ id: "\u0000", changes: [null], messaging: [null] }] }),
  JSON.stringify({ update_id: 1, message: { chat: { id: "\u0000", type: "private" }, text: "\u0000" } }),
  JSON.stringify({
    update_id: "x".repeat(100_000),
    message: { chat: { id: 1, type: "private" }, text: "a" }
  }),
  JSON.stringify({ event_id: 1, event: { type: "message", channel: [], text: {} } }),
  JSON.stringify({ raw: "!!" }),
  JSON.stringify({ raw: Buffer.from("From: \u0000@\r\n\r\n\u0000").toString("base64") })
]

/** Channels without an account fail their own suite alone. */
const connected: Array<Provider> = []

describe.each(names)("A channel: %s", (channel) => {
  beforeAll(async () => {
    const provider = of(channel)
    const made = await team.owner("POST", `/api/agents/${team.agentId}/channels`, provider.account)
    expect(made.status).toBe(201)
    connected.push(provider)
  })

  it("answers a message once, however often it is delivered", async () => {
    const provider = of(channel)
    const contact = contactOf("taken", ++next)
    const delivery = provider.text(contact, ++next, "Where is my order?")
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(delivery)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    expect(answers.reduce((sum, { data }) => sum + data.enqueued, 0)).toBe(1)
    await sends(provider, contact, 1)
    expect((await post(delivery)).data).toMatchObject({ enqueued: 0, dedupedCount: 1 })
    // What comes after it is answered after it: nothing else was on its way.
    await post(provider.text(contact, ++next, "And when?"))
    await sends(provider, contact, 2)
    expect(provider.sent(contact)).toHaveLength(2)
  })

  it("changes nothing for whoever does not know the secret", async () => {
    const provider = of(channel)
    const delivery = provider.text(contactOf("taken", ++next), ++next, "Forged?")
    const wrong = Object.fromEntries(
      Object.entries(delivery.headers).map(([name, value]) => [name, `${value.slice(0, -4)}0000`])
    )
    for (const headers of [{}, wrong]) {
      expect((await post({ ...delivery, headers })).status).toBe(401)
    }
    expect((await post(delivery)).data).toMatchObject({ enqueued: 1 })
  })

  it("sends what the provider takes only later, once", async () => {
    const provider = of(channel)
    const contact = contactOf("limited", ++next)
    await post(provider.text(contact, ++next, "Are you there?"))
    await sends(provider, contact, 1)
    expect(provider.sent(contact)).toHaveLength(1)
  })

  it("puts before a human what the provider refuses for good", async () => {
    const provider = of(channel)
    const contact = contactOf("refused", ++next)
    await post(provider.text(contact, ++next, `A question of ${contact}`))
    const waiting = async () => {
      const query = `channel=${channel}&state=HUMAN_REQUESTED&limit=100`
      const { body } = await team.owner("GET", `/api/conversations?${query}`)
      return body.data.conversations.length
    }
    await until(waiting, (count) => count === 1)
    expect(provider.sent(contact)).toEqual([])
  })

  it("refuses or skips what nobody sends, and goes on", async () => {
    const provider = of(channel)
    for (const body of hostile) {
      expect([200, 400]).toContain((await post(provider.signed(body))).status)
    }
    expect((await post(provider.signed("x".repeat(4 * 1_048_576 + 1)))).status).toBe(413)
    const contact = contactOf("taken", ++next)
    await post(provider.text(contact, ++next, "Still there?"))
    await sends(provider, contact, 1)
  })
})

describe("Every channel", () => {
  it("loses and doubles nothing when the process is killed, and answers each contact in order", async () => {
    expect(connected.length).toBeGreaterThan(0)
    const contacts = connected.flatMap((provider) =>
      Array.from({ length: 6 }, (_, place) => ({
        provider,
        contact: contactOf(place % 3 === 2 ? "lost" : "taken", ++next)
      }))
    )
    for (const round of [1, 2, 3]) {
      const stored = contacts.map(({ contact, provider }) => {
        const delivery = provider.text(contact, ++next, `Question ${round}`)
        // The provider delivers again what was not answered with 200.
        const again = async (): Promise<void> => {
          const status = await post(delivery).then(
            (answer) => answer.status,
            () => 0
          )
          if (status === 200) return
          await new Promise((resolve) => setTimeout(resolve, 100))
          return again()
        }
        return again()
      })
      await Promise.race(stored)
      await spoke.kill()
      spoke = await start(dataDir, world.variables)
      await Promise.all(stored)
    }
    const unanswered = () =>
      Promise.resolve(contacts.filter(({ contact, provider }) => provider.sent(contact).length === 0).length)
    await until(unanswered, (count) => count === 0)
    const unfinished = async () => {
      const headers = { authorization: `Bearer ${spoke.operatorToken}` }
      const { body } = await spoke.request("GET", "/api/operator/queues", { key: null, headers })
      const queues: ReadonlyArray<{ name: string; waiting: number; active: number; delayed: number }> =
        body.data.queues
      return queues
        .filter(({ name }) => name.startsWith("channel-"))
        .reduce((sum, { active, delayed, waiting }) => sum + active + delayed + waiting, 0)
    }
    await until(unfinished, (count) => count === 0)
    await spoke.kill()

    const kept = await Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      return yield* sql<{ value: string; questions: number; open: number; sent: number; resent: number }>`
        select a.value,
          (select count(*)::int from messages m where m.conversation_id = c.id and m.role = 'user') as questions,
          (select count(*)::int from messages m where m.conversation_id = c.id and m.role = 'user'
            and m.answered_by is null) as open,
          (select count(*)::int from channel_outbox o where o.conversation_id = c.id and o.state = 'sent') as sent,
          (select count(*)::int from channel_outbox o where o.conversation_id = c.id and o.resent) as resent
        from end_user_aliases a join conversations c on c.end_user_id = a.end_user_id`
    }).pipe(Effect.provide(storeOf(dataDir)), Effect.scoped, Effect.runPromise)
    const rows = new Map(kept.map((row) => [row.value, row]))
    for (const { contact, provider } of contacts) {
      const row = rows.get(provider.alias?.(contact) ?? contact)
      expect([provider.channel, row?.questions, row?.open]).toEqual([provider.channel, 3, 0])
      // Once, or twice and marked.
      const calls = provider.sent(contact).length
      expect(calls).toBeGreaterThanOrEqual(row?.sent ?? 0)
      expect(calls).toBeLessThanOrEqual((row?.sent ?? 0) + (row?.resent ?? 0))
    }
    spoke = await start(dataDir, world.variables)
  }, 240_000)
})
