/**
 * Events out while their senders are killed: processes that answer and processes that work are ended by SIGKILL at random
 * moments while turns are made, against a hostile receiver. `SPOKE_EVENT_KILLS` kills, from the seed `SPOKE_EVENT_SEED`;
 * `npm run test:events` makes a thousand.
 */
import { setTimeout as delay } from "node:timers/promises"
import * as Pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { randomOf } from "../../faults/Random.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { freshDatabase } from "../Fleet.ts"
import { production, removeFolder, requester, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam, type Team } from "../Team.ts"
import { type Call, startReceiver, wrongCertificate } from "./HostileReceiver.ts"

const maxKills = Number(process.env["SPOKE_EVENT_KILLS"] ?? 6)
const seed = Number(process.env["SPOKE_EVENT_SEED"] ?? 1)
const random = randomOf(seed)
const certificate = wrongCertificate()
/** How long a process lives before it is killed, in milliseconds. */
const lifetime = { least: 200, most: 1_500 }
/** Of the kills, a start and a life each, and of what is sent afterwards. */
const timeout = 300_000 + maxKills * 20_000
const roles = ["api", "worker", "worker", "worker"] as const
const conversations = 6
/** Milliseconds without a delivery after which those that are left are missing. */
const maxQuiet = 60_000

describe.skipIf(production || binaries === undefined || certificate === null)(
  "Events of killed processes",
  () => {
    const folder = temporaryFolder()
    let receiver: Awaited<ReturnType<typeof startReceiver>>
    let database: Pg.Pool
    let open: (role: string) => Promise<Spoke>
    /** Is never killed: it answers what the test itself asks. */
    let steady: Spoke
    let team: Team

    beforeAll(async () => {
      if (certificate === null) throw new Error("There is no certificate.")
      receiver = await startReceiver(random, certificate)
      const databaseUrl = await freshDatabase()
      database = new Pg.Pool({ connectionString: databaseUrl, max: 2 })
      const variables = {
        DATABASE_URL: databaseUrl,
        SPOKE_DATABASE_POOL: "4",
        SPOKE_SECRET: "a secret of these tests, thirty-two bytes",
        SPOKE_OPERATOR_TOKEN: "operator",
        SPOKE_FETCH_ALLOW: "127.0.0.1"
      }
      open = (role) => start(folder, variables, ["--role", role])
      steady = await open("api")
      team = await makeTeam(steady)
    }, 120_000)

    afterAll(async () => {
      await steady.kill()
      await database.end()
      receiver.stop()
      removeFolder(folder)
    })

    const rows = async <Row extends Pg.QueryResultRow>(sql: string) =>
      (await database.query<Row>(sql, [team.tenantId])).rows

    const endpoint = async (url: string) => {
      const events = ["conversation.started", "turn.settled"]
      const made = await team.owner("POST", "/api/webhook-endpoints", { url, events })
      expect(made.status).toBe(201)
      return String(made.body.data.webhook.id)
    }

    /** In which order, by conversation, the events of an endpoint happened. */
    const happened = async (endpointId: string) => {
      const all = await rows<{ event: string; conversation: string; endpoint: string }>(
        `select event_id as event, conversation_id as conversation, endpoint_id as endpoint
       from webhook_deliveries where tenant_id = $1 order by seq`
      )
      const places = new Map<string, ReadonlyArray<string>>()
      for (const one of all) {
        if (one.endpoint !== endpointId) continue
        places.set(one.conversation, [...(places.get(one.conversation) ?? []), one.event])
      }
      return places
    }

    /** Calls for an event while one before it was not taken yet, or after one behind it was sent. */
    const outOfOrder = (calls: ReadonlyArray<Call>, places: ReadonlyMap<string, ReadonlyArray<string>>) => {
      const taken = new Set<string>()
      const furthest = new Map<string, number>()
      return calls.filter(({ conversationId, id, taken: isTaken }) => {
        const order = places.get(conversationId) ?? []
        const place = order.indexOf(id)
        const isEarly = order.slice(0, place).some((before) => !taken.has(before))
        const isLate = place < (furthest.get(conversationId) ?? 0)
        furthest.set(conversationId, Math.max(place, furthest.get(conversationId) ?? 0))
        if (isTaken) taken.add(id)
        return place === -1 || isEarly || isLate
      })
    }

    /** Until nothing waits; fails when nothing more is sent for a while. */
    const allSent = async (hasten: () => Promise<void>) => {
      let fewest = Number.POSITIVE_INFINITY
      for (let changed = Date.now(); ; await delay(1_000)) {
        // What waits for its next attempt is sent at once; what a killed worker held comes back with its lease.
        await hasten()
        const [found] = await rows<{ pending: number }>(
          "select count(*)::int as pending from webhook_deliveries where tenant_id = $1 and status = 'pending'"
        )
        const pending = found?.pending ?? 0
        if (pending === 0) return
        if (pending < fewest) [fewest, changed] = [pending, Date.now()]
        if (Date.now() - changed > maxQuiet) throw new Error(`${pending} deliveries are not sent.`)
      }
    }

    it(
      `are all told, under one id and in order, after ${maxKills} kills`,
      async () => {
        const begun = Date.now()
        const hook = await endpoint(`${receiver.url}/hook`)
        const gone = await endpoint(`${receiver.url}/gone`)
        const wrong = await endpoint(`${receiver.wrongUrl}/late`)
        const { secret: key } = await team.key()
        const acknowledged: Array<string> = []
        const killed = { api: 0, worker: 0 }
        let answering = steady
        let isOver = false

        const live = async (role: "api" | "worker") => {
          while (!isOver) {
            const process = await open(role)
            if (role === "api") answering = { ...process, request: requester(process.url, "") }
            await delay(lifetime.least + random.below(lifetime.most - lifetime.least))
            if (role === "api") answering = steady
            if (!isOver) killed[role]++
            if (killed.api + killed.worker >= maxKills) isOver = true
            await process.kill()
          }
        }
        const talk = async () => {
          let conversationId: string | undefined
          while (!isOver) {
            const body = { message: "Hello", ...(conversationId === undefined ? {} : { conversationId }) }
            // Whoever answered may have been killed: then nothing was promised.
            const answer = await answering.request("POST", "/v1/chat", { key, body }).catch(() => null)
            if (answer?.status === 200) {
              acknowledged.push(answer.body.data.runId)
              conversationId = String(answer.body.data.conversationId)
            }
            if (random.next() < 0.05) conversationId = undefined
            await delay(500 + random.below(2_500))
          }
        }
        const gates = { reactivated: 0 }
        /** Makes the webhook that answers 410 active again, with what it has missed. */
        const restore = async () => {
          const found = await team.owner("GET", `/api/webhook-endpoints/${gone}`)
          // It may have been disabled and made active again, without what was cancelled meanwhile.
          const cancelled = await rows(
            `select from webhook_deliveries d where tenant_id = $1 and endpoint_id = '${gone}' and status = 'cancelled'
               and not exists (select from webhook_deliveries o where o.tenant_id = d.tenant_id
                 and o.endpoint_id = d.endpoint_id and o.event_id = d.event_id and o.status in ('pending', 'delivered'))`
          )
          if (found.body.data.webhook.status === "active" && cancelled.length === 0) return
          await team.owner("PATCH", `/api/webhook-endpoints/${gone}`, { status: "active" })
          const from = new Date(begun - 60_000).toISOString()
          const replayed = await team.owner("POST", `/api/webhook-endpoints/${gone}/replay`, { from })
          expect([replayed.status, replayed.body.data?.nextFrom]).toEqual([200, null])
          gates.reactivated++
        }
        const tend = async () => {
          for (; !isOver; await delay(2_000)) await restore()
        }
        await Promise.all([...roles.map(live), ...Array.from({ length: conversations }, talk), tend()])

        receiver.state.isHostile = false
        const workers = await Promise.all([open("worker"), open("worker")])
        try {
          // Turns of a killed process are ended by the others.
          await until(
            () =>
              rows<{ id: string }>("select id from agent_runs where tenant_id = $1 and status = 'running'"),
            (running) => running.length === 0,
            120_000
          )
          await restore()
          for (const [id, path] of [
            [hook, "/hook"],
            [wrong, "/late"]
          ] as const)
            await team.owner("PATCH", `/api/webhook-endpoints/${id}`, { url: `${receiver.url}${path}` })
          await allSent(async () => {
            // A worker may still have stored the last answer 410, after which the webhook has to be sent what it missed.
            await restore()
            for (const id of [hook, gone, wrong])
              await team.owner("PATCH", `/api/webhook-endpoints/${id}`, { status: "active" })
          })
        } finally {
          await Promise.all(workers.map((worker) => worker.kill()))
        }

        const runs = (await rows<{ id: string }>("select id from agent_runs where tenant_id = $1")).map(
          ({ id }) => id
        )
        expect(acknowledged.filter((id) => !runs.includes(id))).toEqual([])
        const begunConversations = await rows<{ id: string }>(
          "select id from conversations where tenant_id = $1"
        )
        const expected = [
          ...runs.map((id) => `turn.settled ${id}`),
          ...begunConversations.map(({ id }) => `conversation.started ${id}`)
        ].toSorted()
        const nameOf = ({ conversationId, runId, type }: Call) => `${type} ${runId ?? conversationId}`

        for (const path of ["/hook", "/late"]) {
          const calls = receiver.callsTo(path)
          const told = new Set(calls.filter(({ taken }) => taken).map(nameOf))
          expect([...told].toSorted()).toEqual(expected)
          expect(outOfOrder(calls, await happened(path === "/hook" ? hook : wrong))).toEqual([])
        }
        // What happened while it was disabled was never to be sent there.
        const kept = await happened(gone)
        const takenThere = new Set(
          receiver
            .callsTo("/gone")
            .filter(({ taken }) => taken)
            .map(({ id }) => id)
        )
        expect([...kept.values()].flat().filter((id) => !takenThere.has(id))).toEqual([])

        const all = ["/hook", "/gone", "/late"].flatMap((path) => receiver.callsTo(path))
        const ids = new Map<string, Set<string>>()
        for (const call of all) ids.set(nameOf(call), (ids.get(nameOf(call)) ?? new Set()).add(call.id))
        expect([...ids.values()].filter((of) => of.size > 1)).toEqual([])
        expect(new Set(all.map(({ id }) => id)).size).toBe(ids.size)
        expect([receiver.state.followedRedirects, receiver.state.callsWithWrongCertificate]).toEqual([0, 0])
        expect(killed.api + killed.worker).toBe(maxKills)
        const first = ["/hook", "/gone", "/late"].map(
          (path) => new Set(receiver.callsTo(path).map(({ id }) => id)).size
        )
        const repeats = all.length - first.reduce((sum, count) => sum + count, 0)
        const seconds = Math.round((Date.now() - begun) / 1_000)
        process.stderr.write(
          `${killed.api + killed.worker} kills (${killed.api} of processes that answer), seed ${seed}: ${acknowledged.length} ` +
            `of ${runs.length} turns acknowledged, ${expected.length} events, ${all.length} calls, ${repeats} of them ` +
            `repeats, disabled by 410 and replayed ${gates.reactivated} times, ${seconds} s\n`
        )
      },
      timeout
    )
  }
)
