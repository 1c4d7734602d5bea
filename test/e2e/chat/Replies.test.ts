import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Fate, type GraphStub, startGraph } from "../../servers/GraphStub.ts"
import * as Deliveries from "../Deliveries.ts"
import { storeOf } from "../Engines.ts"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam } from "../Team.ts"

const secret = "app-secret-of-the-replies"
const contacts = 15
/** Of the first messages' first calls; all others are taken. */
const fates: ReadonlyArray<Fate> = ["busy", "lost", "limited", "cut"]

describe("Replies through WhatsApp", () => {
  const dataDir = temporaryFolder()
  let graph: GraphStub
  let spoke: Spoke

  beforeAll(async () => {
    graph = await startGraph((message, call) => (call === 1 ? fates[message - 1] : undefined) ?? "taken")
    spoke = await start(dataDir, { CHANNEL_APP_SECRET: secret, GRAPH_API_URL: graph.url })
  }, 60_000)

  afterAll(async () => {
    await spoke.kill()
    graph.close()
    removeFolder(dataDir)
  })

  const deliver = async (contact: number) => {
    const body = Deliveries.whatsappText({
      from: `49170000000${contact}`,
      id: `wamid.${contact}`,
      text: `Question of ${contact}`
    })
    const response = await Deliveries.deliver(spoke, "whatsapp", secret, body)
    expect(response.status).toBe(200)
  }

  it("reach everybody once; twice only those whose first answer was lost, and they are marked", async () => {
    const team = await makeTeam(spoke)
    const made = await team.owner("POST", `/api/agents/${team.agentId}/channels`, {
      channel: "whatsapp",
      externalId: "pn_1",
      accessToken: "EAAB-canary"
    })
    expect(made.status).toBe(201)
    // Each comes three times.
    await Promise.all(Array.from({ length: contacts * 3 }, (_, place) => deliver(place % contacts)))
    const reached = async () => new Set(graph.taken.map(({ to }) => to)).size
    await until(reached, (count) => count === contacts, 45_000)
    const queued = async () => {
      const headers = { authorization: `Bearer ${spoke.operatorToken}` }
      const { body } = await spoke.request("GET", "/api/operator/queues", { key: null, headers })
      const queues: ReadonlyArray<{ name: string; waiting: number; active: number; delayed: number }> =
        body.data.queues
      const ours = queues.filter(({ name }) => name.startsWith("channel-"))
      return ours.reduce((sum, { active, delayed, waiting }) => sum + active + delayed + waiting, 0)
    }
    await until(queued, (count) => count === 0, 30_000)
    expect(
      graph.taken.every(
        ({ path, token }) => path === "/v25.0/pn_1/messages" && token === "Bearer EAAB-canary"
      )
    ).toBe(true)
    expect(spoke.output()).not.toContain("EAAB-canary")
    expect(await spoke.stop()).toBe(0)
    const rows = await Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      return yield* sql<{ id: string; state: string; resent: boolean; attempts: number }>`
        select id, state, resent, attempts from channel_outbox order by id`
    }).pipe(Effect.provide(storeOf(dataDir)), Effect.scoped, Effect.runPromise)
    expect(rows.length).toBe(contacts)
    expect(rows.filter(({ state }) => state !== "sent")).toEqual([])
    // One answer was lost, one call was cut: the sender cannot tell them apart.
    expect(rows.filter(({ resent }) => resent)).toHaveLength(2)
    for (const { id, resent } of rows) {
      const times = graph.taken.filter(({ outboxId }) => outboxId === id).length
      expect(times === 1 || (resent && times === 2)).toBe(true)
    }
    expect(graph.taken.length).toBe(contacts + 1)
    expect(graph.calls()).toBe(contacts + fates.length)
  }, 90_000)
})
