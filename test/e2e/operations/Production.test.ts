/**
 * What is promised of several processes on one PostgreSQL and one Redis: whatever was
 * accepted is there in the end, whichever of them is killed, and whatever becomes of Redis.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as delay } from "node:timers/promises"
import { Redis } from "ioredis"
import * as Pg from "pg"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type GraphStub, startGraph } from "../../servers/GraphStub.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import { startRedis, withRedis } from "../../servers/RedisServer.ts"
import * as Deliveries from "../Deliveries.ts"
import { type Fleet, startFleet } from "../Fleet.ts"
import { removeFolder, requester, type Spoke, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam, type Team } from "../Team.ts"

const appSecret = "app-secret-of-production"
/** Milliseconds of load between two blows. */
const meanwhile = 1_000
/** Of each kind of work, at least. */
const minAccepted = 5

withRedis("Two API processes and two workers, one PostgreSQL, one Redis", () => {
  const folder = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  const site = Http.createServer((request, response) => {
    response.setHeader("content-type", "text/plain; charset=utf-8")
    response.end(`The shelf of part ${request.url} is in the second hall.`)
  })
  let fleet: Fleet
  let graph: GraphStub
  let model: ModelStub.ModelStub
  let database: Pg.Client
  let spoke: Spoke
  let team: Team
  let key = ""

  const rows = async (sql: string): Promise<ReadonlyArray<Record<string, unknown>>> =>
    (await database.query(sql)).rows

  beforeAll(async () => {
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
    graph = await startGraph(() => "taken")
    model = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    fleet = await startFleet(folder, {
      SPOKE_FETCH_ALLOW: "127.0.0.1",
      CHANNEL_APP_SECRET: appSecret,
      GRAPH_API_URL: graph.url,
      OPENAI_BASE_URL: model.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_EMBEDDING_MODEL: "offline",
      SPOKE_DRAIN_DELAY: "500 millis"
    })
    database = new Pg.Client({ connectionString: fleet.databaseUrl })
    await database.connect()
    const [first] = fleet.processes
    if (first === undefined) throw new Error("The fleet is empty.")
    spoke = { ...first, url: fleet.balancer.url, request: requester(fleet.balancer.url, "") }
    team = await makeTeam(spoke)
    key = (await team.key({ permissions: ["*"] })).secret
    const made = await team.owner("POST", `/api/agents/${team.agentId}/channels`, {
      channel: "whatsapp",
      externalId: "pn_1",
      accessToken: "EAAB-canary"
    })
    expect(made.status).toBe(201)
  }, 120_000)

  afterAll(async () => {
    await fleet.close()
    await database.end()
    graph.close()
    site.close()
    removeFolder(folder)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  const deliver = async (id: string) => {
    const body = Deliveries.whatsappText({ from: "491700000001", id, text: id, timestamp: "1767225600" })
    return (await Deliveries.deliver(spoke, "whatsapp", appSecret, body)).status
  }

  /** Sends requests until it is stopped, and records those that were accepted; a request that was cut off counts as not accepted. */
  const load = () => {
    let over = false
    const accepted = {
      sources: new Array<string>(),
      turns: new Array<{ readonly conversationId: string; readonly message: string }>(),
      webhooks: new Array<string>()
    }
    let number = 0
    const stream = async (ask: (number: number) => Promise<void>) => {
      while (!over) {
        await ask(number++).catch(() => delay(50))
        await delay(20)
      }
    }
    const talk = () => {
      let conversationId: string | undefined
      return async (place: number) => {
        const message = `Where is part ${place}?`
        const { body, status } = await spoke.request("POST", "/v1/chat", {
          key,
          body: { message, ...(conversationId === undefined ? {} : { conversationId }) }
        })
        if (status !== 200) return
        conversationId = place % 5 === 0 ? undefined : body.data.conversationId
        accepted.turns.push({ conversationId: body.data.conversationId, message })
      }
    }
    const streams = [
      stream(talk()),
      stream(talk()),
      stream(async (place) => {
        const config = { fileUrl: `http://127.0.0.1:${(site.address() as AddressInfo).port}/${place}.txt` }
        const body = { type: "FILE", name: `Part ${place}`, config }
        const made = await spoke.request("POST", "/v1/sources", { key, body })
        if (made.status === 201) accepted.sources.push(made.body.data.source.id)
        await delay(200)
      }),
      stream(async (place) => {
        // As a provider does: again and again, until it is taken; now and then once too often.
        const id = `wamid.${place}`
        while ((await deliver(id).catch(() => 0)) !== 200) await delay(50)
        accepted.webhooks.push(id)
        if (place % 3 === 0) await deliver(id)
        await delay(100)
      })
    ]
    return {
      /** When `minAccepted` of each kind were accepted, also on a busy machine. */
      stop: async () => {
        await until(
          async () => Object.values(accepted).map(({ length }) => length),
          (counts) => counts.every((count) => count >= minAccepted)
        )
        over = true
        await Promise.all(streams)
        return accepted
      }
    }
  }

  const nothing = async (sql: string) => {
    expect(
      await until(
        () => rows(sql),
        (left) => left.length === 0,
        90_000
      )
    ).toEqual([])
  }

  const expectAll = async (accepted: Awaited<ReturnType<ReturnType<typeof load>["stop"]>>) => {
    await nothing("select id, status from sources where status in ('PENDING', 'PROCESSING')")
    await nothing("select id from channel_inbox where state = 'queued'")
    await nothing("select id from agent_runs where status = 'running'")
    await nothing("select id, queue from queue_jobs where state <> 'completed' and queue <> 'embedding'")

    const ready = (await rows("select id from sources where status = 'READY'")).map(({ id }) => id)
    expect(accepted.sources.filter((id) => !ready.includes(id))).toEqual([])
    const said = new Set(
      (await rows("select conversation_id || ' ' || content as said from messages where role = 'user'")).map(
        ({ said }) => said
      )
    )
    const lost = accepted.turns.filter((turn) => !said.has(`${turn.conversationId} ${turn.message}`))
    expect(lost).toEqual([])
    // Once each, however many processes delivered it.
    const heard = (
      await rows(
        "select channel_message_id as id from messages where channel_message_id is not null and role = 'user'"
      )
    ).map(({ id }) => String(id))
    expect([...heard].sort()).toEqual([...new Set(heard)].sort())
    expect(accepted.webhooks.filter((id) => !heard.includes(id))).toEqual([])
    // Counted: each turn that was answered, and each that failed once the model was called, which is what follows the
    // search; a turn that was swept, or failed before, was given back.
    const [sums] = await rows(`
      with ended as (
        select r.id, r.status,
          coalesce(bool_or(e.type = 'retrieval.completed'), false) as asked,
          coalesce(bool_or(e.type = 'run.failed' and e.label = 'The process that ran the turn stopped'), false) as swept
        from agent_runs r left join agent_run_events e on e.run_id = r.id group by r.tenant_id, r.id
      )
      select count(*) filter (where status = 'complete')::int as complete,
        count(*) filter (where status = 'complete' or asked and not swept)::int as due,
        count(*) filter (where swept)::int as swept,
        (select sum(turns)::int from agent_usage) as counted,
        (select sum(turns)::int from tenant_usage) as reserved
      from ended`)
    expect(sums).toMatchObject({ counted: sums?.["due"], reserved: sums?.["due"] })
    expect(sums?.["complete"]).toBeGreaterThanOrEqual(accepted.turns.length)
  }

  it("lose no accepted work when any one of them is killed (-9) under load", async () => {
    const running = load()
    // Workers first: what they held comes back while the others fall.
    for (const place of [2, 3, 0, 1]) {
      await delay(meanwhile)
      await fleet.processes[place]?.kill()
      fleet.processes[place] = await fleet.open(place)
    }
    await delay(meanwhile)
    await expectAll(await running.stop())
  }, 240_000)

  it("lose no accepted webhook and no job when Redis is emptied, or killed and started anew without its data", async () => {
    const running = load()
    const client = new Redis(fleet.redis.url)
    client.on("error", () => {})
    for (let times = 0; times < 3; times++) {
      await delay(meanwhile / 2)
      await client.flushall()
    }
    client.disconnect()
    await fleet.redis.stop()
    await delay(meanwhile)
    const again = await startRedis(fleet.redis.port)
    await delay(meanwhile)
    await expectAll(await running.stop())
    await until(
      () => spoke.request("GET", "/readyz", { key: null }),
      ({ body }) => body.data.checks.every(({ ok }: { readonly ok: boolean }) => ok),
      30_000
    )
    await again.stop()
  }, 240_000)

  it("are restarted one after the other without a failed request, and streams come to their end", async () => {
    model.otherwise = { text: "One two three four five six seven eight nine ten.", gap: 100 }
    const failures: Array<unknown> = []
    let over = false
    let answered = 0
    const ask = async () => {
      while (!over) {
        const { status } = await spoke
          .request("GET", "/v1/sources?limit=1", { key })
          .catch((cause) => ({ status: String(cause) }))
        if (status === 200) answered++
        else failures.push(status)
      }
    }
    const listen = async () => {
      while (!over) {
        const text = await fetch(`${spoke.url}/v1/chat/stream`, {
          method: "POST",
          headers: { "x-api-key": key, "content-type": "application/json" },
          body: JSON.stringify({ message: "Count to ten." })
        })
          .then((response) => response.text())
          .catch((cause) => String(cause))
        if (text.includes("[DONE]") && text.includes("ten.")) answered++
        else failures.push(text)
      }
    }
    const clients = [ask(), ask(), listen(), listen()]
    const asked = [...fleet.processes]
    for (const place of [0, 1]) {
      await delay(meanwhile)
      const old = fleet.processes[place]
      const fresh = await fleet.open(place)
      // As a balancer that asks /readyz: the new one is in before the old one is told to go.
      fleet.processes[place] = fresh
      asked.push(fresh)
      expect(await old?.stop()).toBe(0)
    }
    await delay(meanwhile)
    over = true
    await Promise.all(clients)
    const complaints = asked.flatMap(({ output }) =>
      output()
        .split("\n")
        .filter((line) => line.includes("failed unexpectedly"))
    )
    expect({ failures, complaints }).toEqual({ failures: [], complaints: [] })
    expect(answered).toBeGreaterThan(10)
  }, 120_000)
})
