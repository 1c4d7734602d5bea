/** Functions of the host as channels: what holds for ours holds for them. */
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createSpoke as createWith, OtherChannels } from "../../src/effect.ts"
import { hostChannel } from "../../src/channels/HostAdapter.ts"
import {
  channel,
  createSpoke,
  type SentMessage,
  type Spoke,
  type SpokeAgent,
  SpokeError
} from "../../src/index.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-channels-"))
afterAll(() => Fs.rmSync(root, { recursive: true, force: true }))

interface Page {
  readonly id: string
  readonly from: string
  readonly text: string
}
const isPage = (body: unknown): body is Page => typeof body === "object" && body !== null && "from" in body

const sent: Array<SentMessage> = []
const to = (contact: string) => sent.filter((message) => message.to === contact)

const pager = channel({
  title: "Pager",
  settings: { line: { label: "Line" }, color: { label: "Color", optional: true, choices: ["red", "blue"] } },
  secrets: { hook: { label: "Secret of deliveries" } },
  verify: ({ header }, { secrets }) => {
    if (header("x-pager") === "broken") throw new Error("Broken")
    return header("x-pager") === secrets.hook
  },
  receive: (body) => {
    if (!isPage(body)) throw new Error("No page")
    return { messages: [body] }
  },
  prove: ({ settings, token }) =>
    Promise.resolve(token === "right" ? { account: settings.line } : { refused: "The token is wrong." }),
  send: (_, message) => {
    sent.push(message)
    const { length } = to(message.to)
    if (message.to === "busy" && length === 1) return Promise.resolve({ refused: "Busy", retryAfter: 1 })
    if (message.to === "lost" && length === 1) return Promise.reject(new Error("Broken"))
    if (message.to === "blocked") return Promise.resolve({ refused: "Blocked" })
    return Promise.resolve({ id: `page-${sent.length}` })
  }
})

const account = {
  channel: "pager",
  accessToken: "right",
  secrets: { hook: "hook-secret" },
  settings: { line: "line-1" }
}

const until = async (holds: () => boolean) => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 50))
}

const rejection = async (promise: Promise<unknown>) => {
  const cause: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown
  )
  if (!(cause instanceof SpokeError)) throw new Error("It was not rejected with a SpokeError.", { cause })
  return cause
}

describe("A channel of the host", () => {
  let spoke: Spoke
  let agent: SpokeAgent
  let webhook: string

  beforeAll(async () => {
    spoke = await createSpoke({ dataDir: Path.join(root, "data"), channels: { pager } })
    agent = spoke.agent((await spoke.agents.create({ name: "Helper" })).id)
    const made = await agent.channels.create(account)
    webhook = made.webhookUrl
    expect(made).toMatchObject({ channel: "pager", externalId: "line-1", settings: { line: "line-1" } })
    expect(new URL(webhook).pathname).toBe("/api/webhooks/pager/line-1")
    return () => spoke.close()
  }, 60_000)

  const deliver = async (body: unknown, secret = "hook-secret") => {
    const response = await spoke.fetch(
      new Request(webhook, {
        method: "POST",
        headers: { "content-type": "application/json", "x-pager": secret },
        body: JSON.stringify(body)
      })
    )
    return { status: response.status, data: JSON.parse(await response.text()).data }
  }

  it("answers a message once, in its conversation", async () => {
    const page = { id: "1", from: "ada", text: "Hello" }
    expect(await deliver(page)).toMatchObject({ status: 200, data: { enqueued: 1 } })
    expect(await deliver(page)).toMatchObject({ status: 200, data: { enqueued: 0, dedupedCount: 1 } })
    await until(() => to("ada").length === 1)
    await deliver({ ...page, id: "2" })
    await until(() => to("ada").length === 2)
    expect(to("ada")).toMatchObject([
      { text: expect.any(String), author: "agent", id: expect.stringMatching(/^out_/) },
      { author: "agent" }
    ])
  })

  it("takes nothing that its host does not verify or cannot read", async () => {
    expect((await deliver({ id: "3", from: "eve", text: "Hi" }, "wrong")).status).toBe(401)
    expect((await deliver({ id: "3", from: "eve", text: "Hi" }, "broken")).status).toBe(401)
    for (const body of [null, 7, {}, { from: 7 }, { id: {}, from: "eve", text: [] }]) {
      expect(await deliver(body)).toMatchObject({ status: 200, data: { enqueued: 0 } })
    }
  })

  it("sends again what was refused for now, and what may have been lost, which is marked", async () => {
    await deliver({ id: "4", from: "busy", text: "Hi" })
    await deliver({ id: "5", from: "lost", text: "Hi" })
    await deliver({ id: "6", from: "blocked", text: "Hi" })
    await until(() => to("busy").length === 2 && to("lost").length === 2 && to("blocked").length === 1)
    for (const name of ["busy", "lost"]) expect(new Set(to(name).map(({ id }) => id)).size).toBe(1)
  }, 30_000)

  it("is set up with what it asks for, and only with an account that it proves", async () => {
    const wrong = [
      [{ accessToken: "wrong" }, ["accessToken"]],
      [{ secrets: {} }, ["secrets", "hook"]],
      [{ settings: {} }, ["settings", "line"]],
      [{ settings: { line: "line-2", color: "green" } }, ["settings", "color"]],
      [{ settings: { line: "not an id" } }, ["accessToken"]]
    ] as const
    for (const [fields, path] of wrong) {
      const error = await rejection(agent.channels.create({ ...account, ...fields }))
      expect([error.code, error.details]).toMatchObject(["VALIDATION_ERROR", { issues: [{ path }] }])
    }
    const { channels } = await agent.channels.list()
    expect(channels.map(({ externalId }) => externalId)).toEqual(["line-1"])
    const second = await agent.channels.create({ ...account, settings: { line: "line-2", color: "red" } })
    const changed = await agent.channels.update(second.id, { settings: { color: "" } })
    expect(changed.settings).toEqual({ line: "line-2" })
    expect(await agent.channels.delete(second.id)).toEqual({ id: second.id, deleted: true })
  })
})

describe("Channels of the host", () => {
  it.each(["Pager", "api", "widget", "a".repeat(33), "1st"])("are not called %s", async (name) => {
    const error = await rejection(
      createSpoke({ dataDir: Path.join(root, "refused"), channels: { [name]: pager } })
    )
    expect([error.code, error.message]).toEqual(["INVALID_CONFIG", expect.stringContaining("channel's name")])
    expect(() => channel({ ...pager, settings: { "a-b": { label: "x" } } })).toThrow(SpokeError)
  })

  it("take the place of ours by name, and come by a layer, too", async () => {
    const replace = Layer.succeed(OtherChannels, [hostChannel("telegram", pager)])
    const spoke = await createWith({ dataDir: Path.join(root, "layer") }, { replace })
    const agent = spoke.agent((await spoke.agents.create({ name: "Helper" })).id)
    const made = await agent.channels.create({ ...account, channel: "telegram" })
    expect(made.externalId).toBe("line-1")
    const error = await rejection(agent.channels.create({ ...account, channel: "pigeon" }))
    expect(JSON.stringify(error.details)).toContain("whatsapp, messenger, slack, email, telegram")
    await spoke.close()
  }, 60_000)
})
