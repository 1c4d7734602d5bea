/** What becomes of the parts of a tenant that moves: copies that differ, long turns, jobs, events, channels. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as MoveTenant from "../../../src/app/moves/MoveTenant.ts"
import { overHttp, type Side } from "../../../src/app/moves/Side.ts"
import { MoveRequest } from "../../../src/domain/accounts/TenantMove.ts"
import { TenantId } from "../../../src/domain/Ids.ts"
import { type GraphStub, startGraph } from "../../servers/GraphStub.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import * as Deliveries from "../Deliveries.ts"
import { ask, csrf, makeTenant, type Owner } from "../routes/RouteWorld.ts"
import { removeFolder, type Spoke, temporaryFolder, until } from "../Spoke.ts"
import { runSuccessfully, onServer, query, serve, type Variables } from "./Installation.ts"
import { nothingLost, startTraffic, lostOrDoubled } from "./Traffic.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"
const appSecret = "app-secret-of-the-moves"

const isRequest = Schema.is(MoveRequest)
const tagOf = (request: unknown) => (isRequest(request) ? request._tag : null)

describe.skipIf(skipped)("A tenant that moves", () => {
  const folder = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  /** How often each event was delivered, by its id, and whose run it is of. */
  const events = new Map<string, { times: number; readonly runId: string }>()
  const receiver = Http.createServer((request, response) => {
    let text = ""
    request.on("data", (chunk: Buffer) => (text += chunk.toString()))
    request.on("end", () => {
      const { data } = JSON.parse(text)
      const id = String(request.headers["webhook-id"])
      events.set(id, { times: (events.get(id)?.times ?? 0) + 1, runId: data.runId })
      response.writeHead(204).end()
    })
  })
  let graph: GraphStub
  let stub: ModelStub.ModelStub
  let origin: { readonly spoke: Spoke; readonly variables: Variables }
  let destination: { readonly spoke: Spoke; readonly variables: Variables }
  let owner: Owner
  let key = ""
  let agentId = ""

  const own = async (path: string, body: unknown) => {
    const { status, text } = await ask(origin.spoke, "POST", path, {
      cookie: owner.cookie,
      headers: csrf,
      body
    })
    if (status >= 300) throw new Error(`${status} ${text}`)
    return JSON.parse(text).data
  }

  beforeAll(async () => {
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve))
    graph = await startGraph(() => "taken")
    stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    const shared = {
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_CHAT_MODEL: "gpt-4.1-mini",
      SPOKE_EMBEDDING_MODEL: "offline",
      SPOKE_FETCH_ALLOW: "127.0.0.1",
      CHANNEL_APP_SECRET: appSecret,
      GRAPH_API_URL: graph.url
    }
    const opened = async (name: string) => {
      const variables = await onServer(folder, name, shared)
      return { variables, spoke: await serve(variables) }
    }
    origin = await opened("origin")
    destination = await opened("destination")
    owner = await makeTenant(origin.spoke, "mine")
    agentId = (await own("/api/agents", { name: "Ada" })).agent.id
    key = (await own(`/api/agents/${agentId}/keys`, { name: "K", permissions: ["*"] })).secret
    await own("/api/webhook-endpoints", {
      url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`,
      events: ["turn.settled"]
    })
    await own(`/api/agents/${agentId}/channels`, {
      channel: "whatsapp",
      externalId: "pn_1",
      accessToken: "EAAB-canary"
    })
  }, 180_000)

  afterAll(async () => {
    await Promise.all([origin.spoke.kill(), destination.spoke.kill()])
    receiver.closeAllConnections()
    receiver.close()
    graph.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    removeFolder(folder)
  })

  const token = Redacted.make("operator")
  const installations = (around: (side: Side) => Side = (side) => side) =>
    Effect.gen(function* () {
      const id = TenantId.make(owner.tenantId)
      const both: MoveTenant.Installations = {
        origin: around(yield* overHttp("origin", id, origin.spoke.url, token)),
        destination: around(yield* overHttp("destination", id, destination.spoke.url, token)),
        originAt: origin.spoke.url,
        destinationAt: destination.spoke.url,
        streams: 2,
        report: () => Effect.void
      }
      return both
    })

  const move = (
    options: { readonly keepTurns: boolean; readonly seconds: number },
    around?: (side: Side) => Side
  ) =>
    Effect.runPromise(
      Effect.either(
        Effect.flatMap(installations(around), (both) =>
          MoveTenant.move(both, { keepTurns: options.keepTurns, maxPause: Duration.seconds(options.seconds) })
        )
      ).pipe(Effect.provide(FetchHttpClient.layer))
    )

  const command = (...flags: ReadonlyArray<string>) =>
    runSuccessfully(
      ["tenant", "move", owner.tenantId, "--to", destination.spoke.url, "--max-pause", "10", ...flags],
      {
        SPOKE_URL: origin.spoke.url,
        SPOKE_OPERATOR_TOKEN: "operator",
        SPOKE_TO_OPERATOR_TOKEN: "operator"
      }
    )

  const turn = (spoke: Spoke, message: string) => ask(spoke, "POST", "/v1/chat", { key, body: { message } })

  /** Writes past the guards of the destination, once the copy is compared. */
  const forging =
    (text: string) =>
    (side: Side): Side => {
      let isDone = false
      return {
        ...side,
        ask: (request) => {
          if (isDone || tagOf(request) !== "Sample" || !side.name.startsWith("origin"))
            return side.ask(request)
          isDone = true
          return Effect.zipRight(
            Effect.promise(() =>
              query(
                destination.variables,
                `begin; select set_config('spoke.applying', '${owner.tenantId}', true); ${text}; commit`
              )
            ),
            side.ask(request)
          )
        }
      }
    }

  it("stays where it is when a row of the copy is another, is missing or is too many", async () => {
    expect((await turn(origin.spoke, "Before")).status).toBe(200)
    const forgeries = [
      [`update messages set content = 'forged' where tenant_id = '${owner.tenantId}'`, "not the same"],
      [`delete from messages where tenant_id = '${owner.tenantId}'`, "missing"],
      [
        `insert into inbox_items (tenant_id, id, kind, name, content) values ('${owner.tenantId}', 'lbl_x', 'label', 'x', '{}')`,
        "instead of 0"
      ]
    ] as const
    for (const [text, words] of forgeries) {
      const refused = await move({ keepTurns: false, seconds: 10 }, forging(text))
      expect(refused).toMatchObject({ left: { reason: "differs", message: expect.stringContaining(words) } })
      expect((await turn(origin.spoke, `Still here: ${words}`)).status).toBe(200)
      expect((await turn(destination.spoke, "Not here")).status).toBe(503)
      const { stdout } = await command("--rollback")
      expect(stdout).toContain(`is served at ${origin.spoke.url}`)
      // A refusal is repeated for as long as its retry-after says, a second.
      await until(
        () => turn(destination.spoke, "Not here"),
        ({ status }) => status === 401,
        2_000
      )
      const left = `select (select count(*) from messages where tenant_id = '${owner.tenantId}')::int as rows`
      expect(await query(destination.variables, left)).toEqual([{ rows: 0 }])
    }
  }, 300_000)

  it("waits for turns that run, and ends those that run longer than every pause only where that is allowed", async () => {
    const words = Array.from({ length: 240 }, (_, place) => `word${place}`).join(" ")
    stub.script.push({ text: words, gap: 250 })
    const long = ask(origin.spoke, "POST", "/v1/chat", { key, body: { message: "A long one" } }).catch(
      () => null
    )
    await until(
      () => query(origin.variables, "select id from agent_runs where status = 'running'"),
      (rows) => rows.length === 1
    )
    const kept = await move({ keepTurns: true, seconds: 1 })
    expect(kept).toMatchObject({
      left: { reason: "refused", message: expect.stringContaining("--keep-turns") }
    })
    expect((await turn(origin.spoke, "Short")).status).toBe(200)
    const ended = await move({ keepTurns: false, seconds: 2 })
    expect(ended).toMatchObject({ right: { pausedMillis: expect.any(Number) } })
    expect((await turn(destination.spoke, "There")).status).toBe(200)
    const runs = await query(
      destination.variables,
      `select status, (select count(*) from messages m where m.tenant_id = r.tenant_id and m.content = r.user_message)::int as messages
       from agent_runs r where user_message = 'A long one'`
    )
    expect(runs).toEqual([{ status: "failed", messages: 1 }])
    const refused = await long
    // The answer that it has got by then, or none.
    if (refused !== null) expect(refused.status).toBe(500)
    await command("--rollback")
    expect((await turn(origin.spoke, "Back")).status).toBe(200)
  }, 400_000)

  it("has its events delivered once each, and its repeated requests answered once, at either side", async () => {
    events.clear()
    const turns = startTraffic({ key, name: "event", url: origin.spoke.url, everyMillis: 100, retries: true })
    await until(
      () => Promise.resolve(turns.acknowledged()),
      (count) => count > 20
    )
    const idempotent = {
      key,
      body: { message: "Once" },
      headers: { "idempotency-key": "of-the-moves" }
    }
    const first = await ask(origin.spoke, "POST", "/v1/chat", idempotent)
    await command()
    // A refusal from before the change of sides may be repeated for a second.
    const second = await until(
      () => ask(destination.spoke, "POST", "/v1/chat", idempotent),
      ({ headers, status }) => status !== 503 || headers.get("retry-after") === null
    )
    expect([first, second].map(({ status, text }) => (status === 200 ? "" : text))).toEqual(["", ""])
    expect(JSON.parse(second.text).data.runId).toBe(JSON.parse(first.text).data.runId)
    const before = turns.acknowledged()
    await until(
      () => Promise.resolve(turns.acknowledged()),
      (count) => count > before + 20
    )
    await command("--rollback")
    const asked = await turns.stop()
    expect(asked.filter(({ acknowledged }) => !acknowledged)).toEqual([])
    expect(await lostOrDoubled(origin.variables, owner.tenantId, asked)).toEqual(nothingLost)
    const runs = await query(
      origin.variables,
      `select r.id from agent_runs r where r.tenant_id = '${owner.tenantId}' and r.status = 'complete' and r.user_message like 'event %'`
    )
    const told = () => new Set([...events.values()].map(({ runId }) => runId))
    await until(
      () => Promise.resolve(runs.filter(({ id }) => !told().has(String(id))).length),
      (missing) => missing === 0,
      60_000
    )
    expect([...events.values()].filter(({ times }) => times > 1)).toEqual([])
  }, 300_000)

  it("is answered once for every message of a channel, also for those that reach the origin afterwards", async () => {
    const contacts = Array.from({ length: 8 }, (_, place) => String(491_700_000_200 + place))
    const write = async (place: Spoke, from: string, number: number) => {
      const body = Deliveries.whatsappText({
        from,
        id: `wamid.${from}.${number}`,
        text: `Question ${number} of ${from}`
      })
      const response = await Deliveries.deliver(place, "whatsapp", appSecret, body)
      expect(response.status).toBe(200)
    }
    const repliesOf = (contact: string) => graph.taken.filter(({ to }) => to === contact).length
    await Promise.all(contacts.map((contact) => write(origin.spoke, contact, 0)))
    // Some of them are answered by now, and some wait for a worker.
    await command()
    await Promise.all(contacts.map((contact) => write(origin.spoke, contact, 1)))
    // It is delivered again, as providers do, to the other side.
    await write(destination.spoke, contacts[0] ?? "", 1)
    await command()
    const unanswered = () =>
      query(
        destination.variables,
        `select m.id from messages m where m.tenant_id = '${owner.tenantId}' and m.role = 'user' and m.channel_message_id is not null
           and m.answered_by is null`
      )
    await until(
      () =>
        query(
          destination.variables,
          `select id from messages where tenant_id = '${owner.tenantId}' and channel_message_id like 'wamid.%.1'`
        ),
      (rows) => rows.length === contacts.length,
      60_000
    )
    await until(unanswered, (rows) => rows.length === 0, 60_000)
    await until(
      () =>
        query(destination.variables, "select id from channel_outbox where state in ('pending', 'sending')"),
      (rows) => rows.length === 0,
      60_000
    )
    const sent = await query(
      destination.variables,
      `select count(*)::int as parts, count(*) filter (where resent)::int as resent from channel_outbox where tenant_id = '${owner.tenantId}'`
    )
    expect(sent).toEqual([{ parts: graph.taken.length, resent: 0 }])
    for (const contact of contacts) {
      expect(repliesOf(contact)).toBeGreaterThan(0)
      expect(repliesOf(contact)).toBeLessThan(3)
    }
    await command("--confirm")
    const left = `select (select count(*) from channel_inbox)::int as events, (select count(*) from tenant_moves)::int as moves,
      (select count(*) from queue_jobs where payload ->> 'tenantId' = '${owner.tenantId}')::int as jobs`
    expect(await query(origin.variables, left)).toEqual([{ events: 0, moves: 0, jobs: 0 }])
    expect((await turn(destination.spoke, "After")).status).toBe(200)
  }, 300_000)
})
