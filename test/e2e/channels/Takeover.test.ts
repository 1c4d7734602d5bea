/**
 * The fence between a human of the team and the agent, across processes: customers write again and again
 * while humans take over, each at a moment of its own, in the middle of replies that are being written and of others that
 * the provider has refused for now. What it was given tells whether the agent ever spoke over a human.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { setTimeout as delay } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type GraphStub, startGraph } from "../../servers/GraphStub.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import * as Deliveries from "../Deliveries.ts"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam, type Team } from "../Team.ts"

const secret = "app-secret-of-the-takeovers"
const contacts = Array.from({ length: 24 }, (_, place) => String(491_700_000_100 + place))
/** Messages of each contact, and milliseconds between two of them. */
const messagesOfEach = 6
const between = 500
/** Contacts whose replies the provider refuses until their human has written. */
const alwaysRefused = 3
const hello = "Ada here, a human."
/** Milliseconds: a call that was begun before the human wrote has come to the provider by then, a repeated one has not. */
const underWay = 1_000

/** Between 0 and 1, the same for the same place. */
const chance = (place: number) => ((place * 7_919) % 101) / 101

describe("Humans who take over while the agent answers", () => {
  const dataDir = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  /** Contacts for whom the provider takes nothing until their human has written. */
  const refused = new Set<string>()
  let graph: GraphStub
  let spoke: Spoke
  let team: Team

  beforeAll(async () => {
    // Every other message is refused once, and tried again two seconds later.
    graph = await startGraph((message, call, to) =>
      refused.has(to) || (message % 2 === 1 && call === 1) ? "busy" : "taken"
    )
    const model = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    model.otherwise = { text: "One two three four five six seven eight.", gap: 50 }
    spoke = await start(dataDir, {
      CHANNEL_APP_SECRET: secret,
      GRAPH_API_URL: graph.url,
      OPENAI_BASE_URL: model.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_EMBEDDING_MODEL: "offline"
    })
    team = await makeTeam(spoke)
    const made = await team.owner("POST", `/api/agents/${team.agentId}/channels`, {
      channel: "whatsapp",
      externalId: "pn_1",
      accessToken: "EAAB-canary"
    })
    expect(made.status).toBe(201)
  }, 60_000)

  afterAll(async () => {
    await spoke.kill()
    graph.close()
    removeFolder(dataDir)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  const write = async (from: string, number: number) => {
    const id = `wamid.${from}.${number}`
    const body = Deliveries.whatsappText({ from, id, text: `Question ${number} of ${from}` })
    const response = await Deliveries.deliver(spoke, "whatsapp", secret, body)
    expect(response.status).toBe(200)
  }

  interface Said {
    readonly role: string
    readonly content: string
    readonly author: string | null
  }

  const transcript = async (id: string): Promise<ReadonlyArray<Said>> =>
    (await team.owner("GET", `/api/conversations/${id}/messages`)).body.data.messages

  /** The conversations there are, by contact. */
  const conversations = async () => {
    const { body } = await team.owner("GET", "/api/conversations?channel=whatsapp&limit=100")
    const found = new Map<string, string>()
    for (const { id } of body.data.conversations) {
      const contact = /of (\d+)$/u.exec((await transcript(id))[0]?.content ?? "")?.[1]
      if (contact !== undefined) found.set(contact, id)
    }
    return found
  }

  const unfinished = async () => {
    const headers = { authorization: `Bearer ${spoke.operatorToken}` }
    const { body } = await spoke.request("GET", "/api/operator/queues", { key: null, headers })
    const queues: ReadonlyArray<{ name: string; waiting: number; active: number; delayed: number }> =
      body.data.queues
    return queues
      .filter(({ name }) => name.startsWith("channel-"))
      .reduce((sum, { active, delayed, waiting }) => sum + active + delayed + waiting, 0)
  }

  it("are never spoken over: after a human's message none of the agent's is stored, and none goes out", async () => {
    // Everybody is answered once, so that there is something to take over.
    await Promise.all(contacts.map((contact) => write(contact, 0)))
    const known = await until(conversations, ({ size }) => size === contacts.length)
    await until(unfinished, (count) => count === 0)
    expect(new Set(graph.taken.map(({ to }) => to))).toEqual(new Set(contacts))
    const before = graph.taken.length
    const ofAgent = (contact: string) =>
      graph.taken.filter(({ text, to }) => to === contact && text !== hello).length
    const storedOfAgent = async (contact: string) =>
      (await transcript(known.get(contact) ?? "")).filter(({ author }) => author === "agent").length
    /** What the agent had said to each a moment after its human. */
    const spoken = new Map<string, number>()
    for (const contact of contacts.slice(0, alwaysRefused)) refused.add(contact)

    await Promise.all([
      ...contacts.map(async (contact) => {
        for (let number = 1; number <= messagesOfEach; number++) {
          await write(contact, number)
          await delay(between)
        }
      }),
      ...contacts.map(async (contact, place) => {
        // Some while a stored reply waits for the provider, some as soon as the agent has said something more, which it may
        // be about to do again, and some whenever.
        if (refused.has(contact))
          await until(
            () => storedOfAgent(contact),
            (count) => count > 1
          )
        else if (place % 3 === 0)
          await until(
            async () => ofAgent(contact),
            (count) => count > 1
          )
        else await delay(chance(place) * messagesOfEach * between)
        const said = await team.owner("POST", `/api/conversations/${known.get(contact)}/messages`, {
          content: hello
        })
        expect(said.status).toBe(201)
        refused.delete(contact)
        await delay(underWay)
        spoken.set(contact, ofAgent(contact))
      })
    ])
    await until(unfinished, (count) => count === 0)

    let answeredFirst = 0
    let takenBack = 0
    for (const [contact, id] of known) {
      const authors = (await transcript(id)).map(({ author }) => author)
      const human = authors.indexOf("human")
      expect([contact, human > 0, authors.slice(human).includes("agent")]).toEqual([contact, true, false])
      // At the provider, in its own order.
      const texts = graph.taken.filter(({ to }) => to === contact).map(({ text }) => text)
      expect([contact, texts.filter((text) => text === hello).length, texts.at(-1)]).toEqual([
        contact,
        1,
        hello
      ])
      expect([contact, ofAgent(contact)]).toEqual([contact, spoken.get(contact)])
      // What is not the human's is what the agent is stored to have said.
      expect(texts.length - 1).toBeLessThanOrEqual(authors.filter((author) => author === "agent").length)
      if (texts.length - 1 < authors.filter((author) => author === "agent").length) takenBack++
      if (texts.length > 2) answeredFirst++
      const state = (await team.owner("GET", `/api/conversations/${id}`)).body.data.state
      expect(state).toBe("HUMAN_ACTIVE")
    }
    // The agent and the humans were at it at the same time, or nothing has been shown.
    expect(answeredFirst).toBeGreaterThan(0)
    expect(takenBack).toBeGreaterThanOrEqual(alwaysRefused)
    expect(graph.taken.length - before).toBeGreaterThan(contacts.length)
  }, 180_000)
})
