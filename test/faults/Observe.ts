/** Reads what there is once all is quiet: pages, searches and keys over HTTP, everything else from the database. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { layerEmbedded } from "../../src/store/Database.ts"
import type { Found, History } from "./History.ts"
import { ask } from "./Operations.ts"
import type { World } from "./World.ts"

type Json = ReturnType<typeof JSON.parse>
type Rows = <Row>(sql: string) => Promise<ReadonlyArray<Row>>

interface Jobs {
  /** Not ended yet. */
  readonly open: number
  /** Another text whenever any has begun or ended. */
  readonly counts: string
}

/** What the operator sees of queues: the same for every kind of database. */
const jobsOf = async (world: World): Promise<Jobs> => {
  const headers = { authorization: `Bearer ${world.operatorToken}` }
  const { body, status } = await ask(world.url(), "queues", {
    method: "GET",
    path: "/api/operator/queues",
    headers
  })
  if (status !== 200) return { open: Infinity, counts: "" }
  const queues: ReadonlyArray<{ waiting: number; active: number; delayed: number }> = body.data.queues
  return {
    open: queues.reduce((sum, { active, delayed, waiting }) => sum + active + delayed + waiting, 0),
    counts: JSON.stringify(queues)
  }
}

/** Turns of processes that were killed: they are ended once the lease of their process is over. */
const runningTurns = async ({ postgres }: World): Promise<number> => {
  if (postgres === null) return 0
  const [row] = await postgres.run<{ n: number }>(
    "select count(*)::int as n from agent_runs where status = 'running'"
  )
  return row?.n ?? 0
}

/** Waits until no job is queued and no turn runs, or until neither has changed for `stallTimeoutMs`. */
export const quiet = async (world: World, stallTimeoutMs: number): Promise<void> => {
  let end = Date.now() + stallTimeoutMs
  let last = ""
  let quietChecks = 0
  while (Date.now() < end && quietChecks < 4) {
    const { counts, open } = await jobsOf(world)
    quietChecks = open + (await runningTurns(world)) === 0 ? quietChecks + 1 : 0
    if (counts !== last) end = Date.now() + stallTimeoutMs
    last = counts
    await delay(500)
  }
}

const walk = async (world: World, path: string, field: string): Promise<ReadonlyArray<string>> => {
  const seen: Array<string> = []
  let cursor: string | null = null
  do {
    const query: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`
    const { body, status } = await ask(world.url(), "walk", {
      method: "GET",
      path: `${path}?limit=7${query}`,
      headers: { "x-api-key": world.agentKey }
    })
    if (status !== 200) throw new Error(`The walk of ${path} was answered ${status}.`)
    seen.push(...body.data[field].map(({ id }: { id: string }) => id))
    cursor = body.data.nextCursor
  } while (cursor !== null)
  return seen
}

type Online = Pick<Found, "revoked" | "retrievable" | "walked">

export const observeOnline = async (world: World, history: History): Promise<Online> => {
  const conversations = await walk(world, "/v1/conversations", "conversations")
  const messages = new Map<string, ReadonlyArray<string>>()
  for (const id of conversations)
    messages.set(id, await walk(world, `/v1/conversations/${id}/messages`, "messages"))
  const search = (key: string, query: string) =>
    ask(world.url(), "retrieve", {
      method: "POST",
      path: "/v1/retrieve",
      headers: { "x-api-key": key },
      body: { query, topK: 20 }
    })
  const revoked = new Map<string, number>()
  for (const { keyId } of history.revocations) revoked.set(keyId, (await search(keyId, "granite")).status)
  const retrievable: Array<string> = []
  for (const { mark, status } of history.deletions) {
    if (status < 200 || status >= 300) continue
    const { body } = await search(world.agentKey, `The lighthouse ${mark}`)
    const chunks: ReadonlyArray<Json> = body?.data?.chunks ?? []
    if (chunks.some(({ text }) => String(text).includes(`lighthouse ${mark} was`))) retrievable.push(mark)
  }
  return { revoked, retrievable, walked: { conversations, messages } }
}

const read = async (rows: Rows, world: World): Promise<Omit<Found, keyof Online>> => {
  const one = async (sql: string) => (await rows<{ n: number }>(sql))[0]?.n ?? 0
  const tenant = `'${world.team.tenantId}'`
  const messages = await rows<Found["messages"][number]>(`
    select id, conversation_id as "conversationId", position::int, role, author, content,
      channel_message_id as "channelMessageId", answered_by as "answeredBy",
      (extract(epoch from created_at) * 1000)::float8 as "createdAt"
    from messages where agent_id = '${world.team.agentId}' order by conversation_id, position`)
  const taken = new Map<string, number>()
  for (const { outboxId } of world.graph.taken) taken.set(outboxId, (taken.get(outboxId) ?? 0) + 1)
  return {
    messages,
    runs: await rows(`
      select r.id, r.status, r.message_id as "messageId", r.user_message_id as "userMessageId",
        (select type from agent_run_events e where e.run_id = r.id order by sequence desc limit 1) as last
      from agent_runs r where tenant_id = ${tenant}`),
    sources: await rows(
      `select id, name, status, last_error as "lastError" from sources where tenant_id = ${tenant}`
    ),
    ingestionJobs: await rows(`select id, status, error from ingestion_jobs`),
    jobs: await rows(`select id, queue, state from queue_jobs where state in ('waiting', 'active')`),
    inbox: await rows(
      `select message_id as "messageId", state from channel_inbox where message_id is not null`
    ),
    outbox: await rows(`select id, state, resent, last_error as "lastError" from channel_outbox`),
    taken,
    reserved: await one(
      `select coalesce(sum(turns), 0)::int as n from tenant_usage where tenant_id = ${tenant}`
    ),
    counted: await one(
      `select coalesce(sum(turns), 0)::int as n from agent_usage where agent_id = '${world.team.agentId}'`
    ),
    granted: await one(
      `select coalesce(sum(granted), 0)::int as n from tenant_credits where tenant_id = ${tenant}`
    ),
    plan:
      (await rows<{ plan: string }>(`select plan from subscriptions where tenant_id = ${tenant}`))[0]?.plan ??
      null,
    listed: (
      await rows<{ id: string }>(
        `select id from conversations where agent_id = '${world.team.agentId}' and channel = 'api'`
      )
    ).map(({ id }) => id)
  }
}

/** Reads the database of a world whose processes have ended. */
export const observeStored = (world: World): Promise<Omit<Found, keyof Online>> => {
  const { postgres } = world
  if (postgres !== null)
    return read(async <Row>(sql: string) => (await postgres.run(sql)) as ReadonlyArray<Row>, world)
  return Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const runtime = yield* Effect.runtime()
    const { runPromise } = yield* Effect.promise(() => import("effect/Runtime"))
    const rows: Rows = async <Row>(text: string) =>
      (await runPromise(runtime)(sql.unsafe(text))) as unknown as ReadonlyArray<Row>
    return yield* Effect.promise(() => read(rows, world))
  }).pipe(
    Effect.provide(layerEmbedded({ dataDir: Path.join(world.dataDir) })),
    Effect.scoped,
    Effect.runPromise
  )
}
