/** Turns whose process is killed (-9) at any point: what the database says afterwards adds up. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as ModelStub from "../../servers/ModelStub.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { serverUrl } from "../../TestDatabase.ts"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam } from "../Team.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"
/** Before the model, between its deltas, around the settlement, and after it. */
const kills = [0, 5, 15, 30, 60, 100, 160, 230, 300, 400]

describe.skipIf(skipped)("A process killed (-9) at ten points of a turn", () => {
  const scope = Effect.runSync(Scope.make())
  const folder = temporaryFolder()
  let stub: ModelStub.ModelStub
  let admin: Pg.Client
  let variables: Readonly<Record<string, string>> = {}
  let spoke: Spoke

  const rows = async (sql: string) => (await admin.query(sql)).rows

  beforeAll(async () => {
    stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    stub.otherwise = { text: "One two three four five six seven eight.", gap: 25 }
    const server = new URL(Redacted.value(await Effect.runPromise(serverUrl)))
    const first = new Pg.Client({ connectionString: server.href })
    await first.connect()
    await first.query("create database turn_faults")
    await first.end()
    server.pathname = "/turn_faults"
    variables = {
      DATABASE_URL: server.href,
      SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
      SPOKE_OPERATOR_TOKEN: "operator",
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_EMBEDDING_MODEL: "offline"
    }
    spoke = await start(folder, variables)
    admin = new Pg.Client({ connectionString: server.href })
    await admin.connect()
  }, 60_000)

  afterAll(async () => {
    await spoke.kill()
    await admin.end()
    removeFolder(folder)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  it("leaves traces that tell how each turn ended, consistent conversations, and turns counted once", async () => {
    const team = await makeTeam(spoke)
    const { secret: key } = await team.key({ permissions: ["*"] })
    const { body } = await spoke.request("POST", "/v1/chat", { key, body: { message: "First" } })
    const { conversationId } = body.data
    for (const wait of kills) {
      const cut = spoke
        .request("POST", "/v1/chat", { key, body: { message: `Killed after ${wait}`, conversationId } })
        .catch(() => "cut off" as const)
      await new Promise((resolve) => setTimeout(resolve, wait))
      await spoke.kill()
      await cut
      // What the killed process owned is known to be dead once its lease is over; the test does not wait 20 s for that.
      await admin.query("update instances set lease_until = now() - interval '1 second'")
      spoke = await start(folder, variables)
    }
    const { status } = await spoke.request("POST", "/v1/chat", {
      key,
      body: { message: "Last", conversationId }
    })
    expect(status).toBe(200)
    const running = () => rows("select id from agent_runs where status = 'running'")
    expect(await until(running, (left) => left.length === 0, 30_000)).toEqual([])

    for (const { id, state } of await rows("select id, status as state from agent_runs")) {
      const trace = await spoke.request("GET", `/v1/agent-runs/${id}?limit=100`, { key })
      expect(trace.body.data.status).toBe(state)
      expect(trace.body.data.events.at(-1).type).toBe(state === "complete" ? "run.completed" : "run.failed")
    }
    const positions = await rows("select position::int from messages order by position")
    expect(positions.map(({ position }) => position)).toEqual(positions.map((_, place) => place + 1))
    const wrong = await rows(`
      select r.id from agent_runs r
      left join messages asked on asked.id = r.user_message_id
      left join messages answered on answered.id = r.message_id and answered.role = 'assistant'
      where asked.id is null or (r.status = 'complete') <> (answered.id is not null)`)
    expect(wrong).toEqual([])
    const [sums] = await rows(`
      select (select message_count::int from conversations) = (select count(*)::int from messages) as counted,
        (select sum(turns)::int from agent_usage) = (select count(*)::int from agent_runs where status = 'complete') as agent,
        (select sum(turns)::int from tenant_usage where turns > 0) = (select sum(turns)::int from agent_usage) as tenant`)
    expect(sums).toEqual({ counted: true, agent: true, tenant: true })
  }, 180_000)

  it("answers 409 CONVERSATION_NOT_ACTIVE, streamed and not, while a human has the conversation", async () => {
    const team = await makeTeam(spoke)
    const { secret: key } = await team.key({ permissions: ["chat"] })
    const { body } = await spoke.request("POST", "/v1/chat", { key, body: { message: "First" } })
    const { conversationId } = body.data
    for (const state of ["HUMAN_REQUESTED", "HUMAN_ACTIVE", "CLOSED"]) {
      await admin.query("update conversations set state = $1 where id = $2", [state, conversationId])
      for (const path of ["/v1/chat", "/v1/chat/stream"]) {
        for (const persist of [true, false]) {
          const refused = await spoke.request("POST", path, {
            key,
            body: { message: "Now?", conversationId, persist }
          })
          expect([refused.status, refused.body.error.code]).toEqual([409, "CONVERSATION_NOT_ACTIVE"])
        }
      }
    }
  }, 60_000)

  it("answers 409 to a turn that waits while a human takes over, also to its repeats, and leaves its Idempotency-Key unused", async () => {
    const team = await makeTeam(spoke)
    const { secret: key } = await team.key({ permissions: ["chat"] })
    const { body } = await spoke.request("POST", "/v1/chat", { key, body: { message: "First" } })
    const { conversationId } = body.data
    const usual = stub.otherwise
    stub.otherwise = { text: "One two three four five six seven eight.", gap: 500 }
    const ask = (message: string, path = "/v1/chat") =>
      spoke.request("POST", path, {
        key,
        body: { message, conversationId },
        headers: { "idempotency-key": message }
      })
    const running = async (count: number) =>
      until(
        () =>
          rows(
            `select id from agent_runs where conversation_id = '${conversationId}' and status = 'running'`
          ),
        (found) => found.length === count
      )
    const first = ask("Answering")
    await running(1)
    const second = ask("Waiting")
    await running(2)
    const repeats = ["/v1/chat", "/v1/chat/stream"].map((path) => ask("Waiting", path))
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect((await team.owner("POST", `/api/conversations/${conversationId}/takeover`)).status).toBe(200)
    const codeOf = ({ body, status }: Awaited<typeof first>) => [status, body.error?.code]
    expect(codeOf(await first)).toEqual([500, "TURN_FAILED"])
    for (const answer of await Promise.all([second, ...repeats]))
      expect(codeOf(answer)).toEqual([409, "CONVERSATION_NOT_ACTIVE"])
    stub.otherwise = usual
    expect((await team.owner("POST", `/api/conversations/${conversationId}/release`)).status).toBe(200)
    expect((await ask("Waiting")).status).toBe(200)
  }, 60_000)
})
