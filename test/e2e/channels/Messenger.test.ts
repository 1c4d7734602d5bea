/** A Page's messages from delivery to answer: what comes back as an echo, what humans write there, what others own. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type GraphStub, startGraph } from "../../servers/GraphStub.ts"
import * as Deliveries from "../Deliveries.ts"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam, type Team } from "../Team.ts"

const secret = "app-secret-of-the-page"
const page = "1067280970047460"
const accessToken = `EAAB-page-canary-${page}`

const dataDir = temporaryFolder()
let graph: GraphStub
let spoke: Spoke
let team: Team

beforeAll(async () => {
  graph = await startGraph(() => "taken")
  spoke = await start(dataDir, { CHANNEL_APP_SECRET: secret, GRAPH_API_URL: graph.url })
  team = await makeTeam(spoke)
  const made = await team.owner("POST", `/api/agents/${team.agentId}/channels`, {
    channel: "messenger",
    externalId: page,
    accessToken
  })
  expect(made.status).toBe(201)
}, 60_000)

afterAll(async () => {
  await spoke.kill()
  graph.close()
  removeFolder(dataDir)
})

const deliver = async (entry: object) => {
  const body = JSON.stringify({ object: "page", entry: [{ id: page, time: Date.now(), ...entry }] })
  const response = await Deliveries.deliver(spoke, "messenger", secret, body)
  expect(response.status).toBe(200)
  const { dedupedCount, enqueued } = JSON.parse(await response.text()).data
  return { dedupedCount, enqueued }
}

const said = (psid: string, mid: string, text: string) => ({
  sender: { id: psid },
  recipient: { id: page },
  timestamp: Date.now(),
  message: { mid, text }
})

const echo = (psid: string, mid: string, text: string, more: object = {}) => ({
  sender: { id: page },
  recipient: { id: psid },
  timestamp: Date.now(),
  message: { mid, text, is_echo: true, ...more }
})

interface Shown {
  readonly id: string
  readonly state: string
  readonly messages: ReadonlyArray<readonly [author: string | null, content: string]>
}

/** The conversation that begins with the text. */
const conversation = async (beginning: string): Promise<Shown | undefined> => {
  const { body } = await team.owner("GET", "/api/conversations?channel=messenger&limit=100")
  for (const { id, state } of body.data.conversations) {
    const found = await team.owner("GET", `/api/conversations/${id}/messages`)
    const messages = found.body.data.messages.map((each: { author: string | null; content: string }) => [
      each.author,
      each.content
    ])
    if (messages[0]?.[1] === beginning) return { id, state, messages }
  }
  return undefined
}

const settled = async () => {
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
}

const sentTo = (psid: string) => graph.taken.filter(({ to }) => to === psid)

describe("A Page on Messenger", () => {
  it("answers a customer once, and its own echo neither counts nor comes back", async () => {
    expect(await deliver({ messaging: [said("psid_1", "m_1", "Where is my order?")] })).toEqual({
      dedupedCount: 0,
      enqueued: 1
    })
    await until(
      async () => sentTo("psid_1").length,
      (count) => count === 1
    )
    await settled()
    const [sent] = sentTo("psid_1")
    expect(sent).toMatchObject({ path: `/v25.0/${page}/messages`, token: `Bearer ${accessToken}` })
    expect(sent?.outboxId).toMatch(/^out_/u)
    const { outboxId = "", text = "" } = sent ?? {}
    // By the metadata that it was sent with; by the provider's id of it; and once more.
    for (const own of [
      echo("psid_1", "m_unknown", text, { metadata: outboxId, app_id: 42 }),
      echo("psid_1", "m_out.1", text),
      echo("psid_1", "m_out.1", text)
    ]) {
      expect(await deliver({ messaging: [own] })).toEqual({ dedupedCount: 0, enqueued: 0 })
    }
    await settled()
    const shown = await conversation("Where is my order?")
    expect(shown?.state).toBe("AI_ACTIVE")
    expect(shown?.messages.map(([author]) => author)).toEqual([null, "agent"])
    expect(sentTo("psid_1")).toHaveLength(1)
  }, 90_000)

  it("is silent once a human has written in its inbox, until the conversation is given back", async () => {
    const human = echo("psid_1", "m_human", "Grace here, I will look into it.")
    expect(await deliver({ messaging: [human, human] })).toEqual({ dedupedCount: 1, enqueued: 1 })
    await settled()
    await deliver({ messaging: [said("psid_1", "m_2", "Thank you")] })
    await settled()
    const shown = await conversation("Where is my order?")
    expect(shown?.state).toBe("HUMAN_ACTIVE")
    expect(shown?.messages.slice(2)).toEqual([
      ["human", "Grace here, I will look into it."],
      [null, "Thank you"]
    ])
    expect(sentTo("psid_1")).toHaveLength(1)
    expect((await team.owner("POST", `/api/conversations/${shown?.id}/release`)).status).toBe(200)
    await deliver({ messaging: [said("psid_1", "m_3", "One more thing")] })
    await until(
      async () => sentTo("psid_1").length,
      (count) => count === 2
    )
    await settled()
  }, 90_000)

  it("stores what another app's thread holds and answers none of it; statuses are not counted", async () => {
    expect(
      await deliver({
        standby: [said("psid_2", "m_4", "In another app's thread")],
        messaging: [
          {
            sender: { id: "psid_1" },
            recipient: { id: page },
            delivery: { mids: ["m_out.1"], watermark: Date.now() }
          },
          { sender: { id: "psid_1" }, recipient: { id: page }, timestamp: 1, read: { watermark: Date.now() } }
        ]
      })
    ).toEqual({ dedupedCount: 0, enqueued: 1 })
    await settled()
    const shown = await conversation("In another app's thread")
    expect(shown?.messages).toEqual([[null, "In another app's thread"]])
    expect(sentTo("psid_2")).toEqual([])
    expect(spoke.output()).not.toContain(accessToken)
  }, 90_000)
})
