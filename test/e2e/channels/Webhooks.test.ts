import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { afterAll, describe, expect, it } from "vitest"
import * as Deliveries from "../Deliveries.ts"
import { storeOf } from "../Engines.ts"
import { removeFolder, start, temporaryFolder } from "../Spoke.ts"

const secret = "app-secret-of-the-crash"

const deliver = async (url: string, id: string) => {
  const body = Deliveries.whatsappText({ from: "491700000001", id, text: id, timestamp: "1767225600" })
  const response = await Deliveries.deliver({ url }, "whatsapp", secret, body)
  return { status: response.status, json: JSON.parse(await response.text()) }
}

describe("A process killed (-9) during a burst of webhooks", () => {
  const dataDir = temporaryFolder()
  afterAll(() => removeFolder(dataDir))

  it("has lost nothing that it answered with 200: message, claim and job are there", async () => {
    const spoke = await start(dataDir, { CHANNEL_APP_SECRET: secret })
    const answered: Array<string> = []
    let next = 0
    let alive = true
    let reachedSixty = () => {}
    const reached = new Promise<void>((resolve) => (reachedSixty = resolve))
    const connection = async () => {
      while (alive) {
        const id = `wamid.${next++}`
        try {
          const { status, json } = await deliver(spoke.url, id)
          expect([status, json.data?.enqueued]).toEqual([200, 1])
          answered.push(id)
          if (answered.length === 60) reachedSixty()
        } catch (error) {
          // The connection was cut in the middle: what became of it is not known.
          if (alive) throw error
        }
      }
    }
    const burst = Promise.all(Array.from({ length: 20 }, connection))
    await Promise.race([reached, burst])
    alive = false
    await spoke.kill()
    await burst
    const rows = await Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      return yield* sql<{ messageId: string; claims: number; jobs: number }>`
        select message_id as "messageId",
          (select count(*)::int from dedupe_keys where key = 'inbound:whatsapp:' || message_id) as claims,
          (select count(*)::int from queue_jobs where payload ->> 'inboxId' = channel_inbox.id) as jobs
        from channel_inbox`
    }).pipe(Effect.provide(storeOf(dataDir)), Effect.scoped, Effect.runPromise)
    const kept = new Map(rows.map((row) => [row.messageId, row]))
    expect(answered.length).toBeGreaterThanOrEqual(60)
    expect(answered.filter((id) => !kept.has(id))).toEqual([])
    expect(rows.filter(({ claims, jobs }) => claims !== 1 || jobs !== 1)).toEqual([])
    const again = await start(dataDir, { CHANNEL_APP_SECRET: secret })
    const [first = ""] = answered
    expect((await deliver(again.url, first)).json.data).toEqual({
      received: true,
      deduped: true,
      dedupedCount: 1,
      enqueued: 0
    })
    expect((await deliver(again.url, "wamid.new")).json.data.enqueued).toBe(1)
    await again.kill()
  }, 90_000)
})
