/**
 * Versions of an agent on two API processes that are killed (-9) while they are published and used: a turn has one version
 * from its first call of the model to its last, a conversation keeps that of its share, and a publish is whole or not there.
 */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as delay } from "node:timers/promises"
import * as Pg from "pg"
import { afterAll, beforeAll, expect, it } from "vitest"
import { interfaces } from "../../servers/ModelStubWire.ts"
import { withRedis } from "../../servers/RedisServer.ts"
import { type Fleet, startFleet } from "../Fleet.ts"
import { removeFolder, requester, type Spoke, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam, type Team } from "../Team.ts"

const publishes = 6
/** Milliseconds that the tool takes, so that a publish may fall between two calls of the model. */
const toolTime = 40

const bodyOf = async (request: Http.IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const listen = async (server: Http.Server): Promise<string> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

withRedis("An agent's versions, with API processes that are killed", () => {
  const folder = temporaryFolder()
  /** The versions that the model was told in each turn. */
  const told = new Map<string, Set<string>>()
  /** How often it was asked in each. */
  const calls = new Map<string, number>()
  const wire = interfaces["/chat/completions"]
  // Each turn calls the tool once, and then answers with the version of its instructions.
  const model = Http.createServer(async (request, response) => {
    const body = await bodyOf(request)
    const turn = /turn-\d+/u.exec(body)?.[0] ?? "none"
    const version = /VERSION-\d+/u.exec(body)?.[0] ?? "none"
    told.set(turn, (told.get(turn) ?? new Set()).add(version))
    calls.set(turn, (calls.get(turn) ?? 0) + 1)
    const reply = body.includes('"role":"tool"')
      ? { text: `Answered by ${version}.` }
      : { calls: [{ name: "lookup", arguments: "{}" }] }
    const { begin, end, middle } = wire.frames(reply)
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end([...begin, ...middle, ...end].join(""))
  })
  const tool = Http.createServer((_, response) => {
    setTimeout(() => response.setHeader("content-type", "application/json").end('{"found":true}'), toolTime)
  })
  let fleet: Fleet
  let database: Pg.Client
  let team: Team
  let spoke: Spoke
  let key = ""
  let turns = 0

  const chat = async (conversationId?: string) => {
    const message = `turn-${turns++}`
    const body = { message, ...(conversationId === undefined ? {} : { conversationId }) }
    const answer = await spoke.request("POST", "/v1/chat", { key, body }).catch(() => null)
    return answer?.status === 200 ? { ...answer.body.data, message } : null
  }

  const kill = async (place: number) => {
    await fleet.processes[place]?.kill()
    fleet.processes[place] = await fleet.open(place)
  }

  beforeAll(async () => {
    const toolUrl = await listen(tool)
    fleet = await startFleet(folder, {
      SPOKE_FETCH_ALLOW: "127.0.0.1",
      OPENAI_BASE_URL: `${await listen(model)}/v1`,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_EMBEDDING_MODEL: "offline"
    })
    database = new Pg.Client({ connectionString: fleet.databaseUrl })
    await database.connect()
    const [first] = fleet.processes
    if (first === undefined) throw new Error("The fleet is empty.")
    spoke = { ...first, url: fleet.balancer.url, request: requester(fleet.balancer.url, "") }
    team = await makeTeam(spoke)
    key = (await team.key({ permissions: ["*"] })).secret
    const made = await team.owner("POST", `/api/agents/${team.agentId}/tools`, {
      name: "lookup",
      description: "Looks something up.",
      parameters: { type: "object", properties: {} },
      http: { method: "GET", url: `${toolUrl}/lookup` }
    })
    expect(made.status).toBe(201)
  }, 120_000)

  afterAll(async () => {
    await fleet.close()
    await database.end()
    for (const server of [model, tool]) {
      server.closeAllConnections()
      server.close()
    }
    removeFolder(folder)
  })

  const stored = async () => {
    const { rows } = await database.query<{ version: number; instructions: string; greeting: string }>(
      `select a.published_version as version, a.instructions, v.settings ->> 'greeting' as greeting
       from agents a join agent_versions v on v.tenant_id = a.tenant_id and v.agent_id = a.id and v.version = a.published_version
       where a.id = $1`,
      [team.agentId]
    )
    const [agent] = rows
    if (agent === undefined) throw new Error("The agent is gone.")
    return agent
  }

  it("a publish is whole or not there, stays once it was answered, and no turn changes its version on the way", async () => {
    let over = false
    const answered: Array<{ readonly message: string; readonly runId: string }> = []
    const talk = async () => {
      while (!over) {
        const answer = await chat()
        if (answer !== null) answered.push(answer)
        else await delay(50)
      }
    }
    const talking = [talk(), talk(), talk()]
    for (let number = 1; number <= publishes; number++) {
      const wanted = `VERSION-${number}`
      const change = team
        .owner("PATCH", `/api/agents/${team.agentId}`, { instructions: wanted, greeting: wanted })
        .then(({ status }) => status)
        .catch(() => 0)
      if (number % 2 === 0) {
        // At another moment of the request each time.
        await delay((number * 7) % 30)
        await kill((number / 2) % 2)
      }
      const status = await change
      const { greeting, instructions } = await stored()
      expect(greeting).toBe(instructions)
      if (status === 200) expect(instructions).toBe(wanted)
    }
    await until(
      async () => answered.length,
      (count) => count >= 20,
      60_000
    )
    over = true
    await Promise.all(talking)
    expect([...told].filter(([, versions]) => versions.size !== 1)).toEqual([])
    // They were asked twice each, or this would show nothing.
    expect(answered.filter(({ message }) => (calls.get(message) ?? 0) < 2)).toEqual([])
    const { rows } = await database.query<{ id: string; instructions: string }>(
      `select r.id, v.settings ->> 'instructions' as instructions
       from agent_runs r join agent_versions v on v.tenant_id = r.tenant_id and v.agent_id = r.agent_id and v.version = r.agent_version`
    )
    const instructionsOf = new Map(rows.map(({ id, instructions }) => [id, instructions]))
    for (const { message, runId } of answered)
      expect([...(told.get(message) ?? [])]).toEqual([
        instructionsOf.get(runId)?.match(/VERSION-\d+/u)?.[0] ?? "none"
      ])
    const used = new Set([...told.values()].flatMap((versions) => [...versions]))
    expect(used.size).toBeGreaterThan(2)
  }, 240_000)

  it("a conversation keeps the version of its share on every process, and after each of them was killed", async () => {
    const { version } = await stored()
    const split = await team.owner("PUT", `/api/agents/${team.agentId}/split`, {
      version: version - 1,
      share: 0.5
    })
    expect(split.status).toBe(200)
    const conversations: Array<string> = []
    while (conversations.length < 12) {
      const answer = await chat()
      if (answer !== null) conversations.push(answer.conversationId)
    }
    for (const place of [0, 1]) {
      await Promise.all([
        kill(place),
        ...conversations.map(async (conversationId) => {
          while ((await chat(conversationId)) === null) await delay(50)
        })
      ])
    }
    const { rows } = await database.query<{ id: string; versions: Array<number> }>(
      `select conversation_id as id, array_agg(distinct agent_version) as versions
       from agent_runs where conversation_id = any ($1) group by 1`,
      [conversations]
    )
    expect(rows).toHaveLength(conversations.length)
    expect(rows.filter(({ versions }) => versions.length !== 1)).toEqual([])
    expect(new Set(rows.flatMap(({ versions }) => versions))).toEqual(new Set([version - 1, version]))
  }, 120_000)
})
