/** What somebody said is found nowhere once it is erased, too old, or was never to be kept: in all tables, over all routes. */
import { createServer } from "node:http"
import * as Path from "node:path"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type ModelPart, ModelRuntime } from "../../src/capabilities/ModelRuntime.ts"
import { exportTo } from "../../src/app/backup/Export.ts"
import { fromRecord } from "../../src/app/config/Config.ts"
import { ExpiredRows } from "../../src/store/accounts/ExpiredRows.ts"
import { RetentionStore } from "../../src/store/accounts/Retention.ts"
import { AgentStore } from "../../src/store/agents/Agents.ts"
import { UnusedPassages } from "../../src/store/chat/UnusedPassages.ts"
import { FindingStore } from "../../src/store/knowledge/Findings.ts"
import { RetentionLimits } from "../../src/usecases/accounts/Retention.ts"
import { Findings } from "../../src/usecases/knowledge/Findings.ts"
import { type Hosted, makeHosted } from "../../bench/company/Hosted.ts"
import { filesBelow } from "../Archives.ts"
import { layerHashing } from "../HashingEmbedder.ts"

/** Repeats the question, as bad models do. */
const parrot = Layer.succeed(ModelRuntime, {
  defaultModel: "scripted",
  contextWindow: 32_000,
  readsPassages: false,
  acceptsImages: false,
  readable: () => [],
  reply: ({ prompt, question, responseSchema }) => {
    const [asked] = /canary\w+/u.exec(JSON.stringify(prompt)) ?? [question]
    const delta = responseSchema === undefined ? `You ask about ${asked}.` : JSON.stringify({ answer: asked })
    const parts: ReadonlyArray<ModelPart> = [
      { _tag: "TextDelta", delta },
      { _tag: "Finish", reason: "stop", inputTokens: 7, outputTokens: 2 }
    ]
    return Stream.fromIterable(parts)
  }
})

describe("A canary", () => {
  let hosted: Hosted
  let run: <A, E>(effect: Effect.Effect<A, E, SqlClient.SqlClient>) => Promise<A>
  let received = 0
  /** Sends back what it gets, as some receivers do. */
  const receiver = createServer((request, response) => {
    received += 1
    request.pipe(response.writeHead(200))
  })

  const capture = Layer.effectDiscard(
    Effect.map(Effect.context<SqlClient.SqlClient>(), (context) => {
      run = (effect) => Effect.runPromise(Effect.provide(effect, context))
    })
  )

  const open = async () => {
    hosted = await makeHosted(Layer.merge(layerHashing(), capture), parrot, { fetchAllow: ["127.0.0.1"] })
  }
  beforeAll(async () => {
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve))
    await open()
  })
  afterAll(async () => {
    await hosted.close()
    receiver.close()
  })

  const sql = <A extends object>(text: string) =>
    run(Effect.flatMap(SqlClient.SqlClient, (client) => client.unsafe<A>(text)))

  /** The tables with a row that contains `text`, of all tables that there are. Bytes count as text in UTF-8. */
  const tablesWith = async (text: string) => {
    const tables = await sql<{ readonly name: string }>(
      "select quote_ident(tablename) as name from pg_tables where schemaname = 'public' order by 1"
    )
    const hex = Buffer.from(text).toString("hex")
    const found = await sql<{ readonly name: string }>(
      tables
        .map(
          ({ name }) => `select '${name}' as name where exists
            (select from ${name} t where to_jsonb(t)::text ilike '%${text}%' or to_jsonb(t)::text like '%${hex}%')`
        )
        .join(" union all ")
    )
    return found.map(({ name }) => name)
  }

  /** What a background fiber does once a minute. */
  const sweepRetention = Effect.flatMap(RetentionLimits, ({ sweep }) => sweep).pipe(
    Effect.provide(
      RetentionLimits.Default.pipe(
        Layer.provide([ExpiredRows.Default, RetentionStore.Default, UnusedPassages.Default])
      )
    )
  )
  const sweepFindings = Effect.flatMap(Findings, ({ sweep }) => sweep).pipe(
    Effect.provide(Layer.provide(Findings.Default, Layer.merge(FindingStore.Default, AgentStore.Default)))
  )

  /** A person whose canary gets into everything that is made from turns. */
  const prepared = async (canary: string) => {
    const made = await hosted.agent()
    const address = receiver.address()
    const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`
    const events = ["turn.settled", "conversation.started", "feedback.given", "message.sent"]
    await hosted.good("POST", "/api/webhook-endpoints", { url, events, payload: "full" })
    const before = received
    await made.source("TEXT", "Hours", { text: "# Hours\n\nThe shop opens at nine o'clock in the morning." })
    const { conversationId, endUserId, runId } = await made.chat(
      `When does the shop open in the morning, near the ${canary}?`,
      `${canary}@example.com`
    )
    const repeated = { message: `Is it open near the ${canary}?`, conversationId }
    const replies = [
      await made.ask(repeated, { "idempotency-key": "open" }),
      await made.ask(repeated, { "idempotency-key": "open" })
    ]
    expect(new Set(replies.map(({ runId: id }) => id)).size).toBe(1)
    await hosted.good("POST", `/api/conversations/${conversationId}/notes`, { content: `Note on ${canary}` })
    const one = { runIds: [runId] }
    await hosted.good("POST", `${made.path}/cases/from-run`, { runId })
    const { correction } = await hosted.good("POST", `${made.path}/corrections`, one)
    expect(correction.question).toContain(canary)
    expect(correction.answer).toContain(canary)
    const preview = `/api/corrections/${correction.id}/preview`
    await made.ended((await hosted.good("POST", preview, {})).correction.preview.experimentId)
    await hosted.good("POST", `${made.path}/replays`, one)
    for (const body of [one, {}]) {
      const { experiment } = await hosted.good("POST", `${made.path}/experiments`, body)
      await made.ended(experiment.id)
    }
    await hosted.good("GET", `/api/insights?agentId=${made.id}`)
    await hosted.good("GET", `${made.path}/impact`)
    await expect.poll(() => received, { timeout: 20_000 }).toBeGreaterThanOrEqual(before + 2)
    await expect
      .poll(() => tablesWith(canary), { timeout: 20_000 })
      .toEqual(
        expect.arrayContaining([
          "agent_runs",
          "conversation_entries",
          "corrections",
          "end_users",
          "experiment_results",
          "messages",
          "test_cases",
          "webhook_deliveries"
        ])
      )
    return { ...made, conversationId, endUserId, preview, runId }
  }

  it("of an erased person is in no table", async () => {
    const { endUserId, preview } = await prepared("canaryerased")
    // It may still run.
    await hosted.good("POST", preview, {})
    await hosted.good("DELETE", `/api/end-users/${endUserId}`)
    expect(await tablesWith("canaryerased")).toEqual([])
  })

  it("of a conversation that has become too old is in no table but that of the person's own id", async () => {
    const { conversationId } = await prepared("canaryaged")
    await sql(`update conversations set created_at = now() - interval '9 days', updated_at = now() - interval '9 days',
      changed_at = null where id = '${conversationId}'`)
    await sql(
      `update messages set created_at = now() - interval '9 days' where conversation_id = '${conversationId}'`
    )
    await hosted.good("PATCH", "/api/retention", { conversations: 7 })
    await sql("update tenant_retention set due_at = now()")
    await run(sweepRetention)
    expect(await tablesWith("canaryaged")).toEqual(["end_users"])
  })

  it("of a turn that is not to be kept is in no table, while it is answered and afterwards", async () => {
    const { ask } = await hosted.agent()
    const { reply } = await ask({ message: "Where is the canaryunkept?", persist: false })
    expect(reply).toContain("canaryunkept")
    expect(await tablesWith("canaryunkept")).toEqual([])
  })

  it("of a deleted source is in no table, also where its passages contradicted others", async () => {
    const made = await hosted.agent()
    const opens = (hour: string) => ({
      text: `# Opening hours\n\nThe canarysource shop in the old harbour opens at ${hour} in the morning.`
    })
    const sources = [
      await made.source("TEXT", "Hours", opens("9:00")),
      await made.source("TEXT", "Harbour", opens("11:00"))
    ]
    await run(sweepFindings)
    expect(await tablesWith("canarysource")).toEqual(
      expect.arrayContaining(["chunks", "passage_findings", "sources"])
    )
    const { findings } = await hosted.good("GET", `${made.path}/findings`)
    await hosted.good("POST", `${made.path}/findings/${findings[0].id}/dismiss`)
    await hosted.good("DELETE", `/api/sources/${sources[0]}`)
    await expect
      .poll(() => tablesWith("canarysource"), { timeout: 120_000 })
      .not.toContain("passage_findings")
    await hosted.good("DELETE", `/api/sources/${sources[1]}`)
    await expect.poll(() => tablesWith("canarysource"), { timeout: 120_000 }).toEqual([])
  }, 400_000)

  it("of a deleted agent is in no table but that of the person's own id", async () => {
    const { path } = await prepared("canaryagent")
    await hosted.good("DELETE", path)
    await expect.poll(() => tablesWith("canaryagent"), { timeout: 20_000 }).toEqual(["end_users"])
  })

  it("of a deleted tenant is in no table, and nothing else of the tenant", async () => {
    const { id } = await prepared("canarytenant")
    const [owner] = await sql<{ readonly tenant: string }>(
      `select tenant_id as tenant from agents where id = '${id}'`
    )
    expect(await sql("select 1 from run_passages")).not.toEqual([])
    await sql(`delete from tenants where id = '${owner?.tenant}'`)
    expect(await tablesWith("canarytenant")).toEqual([])
    expect(await sql("select 1 from passages")).toEqual([])
  })

  it("of an erased person or of a deleted file is in no export, and those that are kept are", async () => {
    await hosted.close()
    await open()
    const kept = await prepared("canarykept")
    await kept.file("harbour.md", "# Harbour\n\nThe canaryharbour is open at night.")
    const removed = await prepared("canaryremoved")
    const lighthouse = await removed.file("light.md", "# Light\n\nThe canarylighthouse is closed.")
    await hosted.good("DELETE", `/api/end-users/${removed.endUserId}`)
    await hosted.good("DELETE", `/api/sources/${lighthouse}`)
    await expect.poll(() => tablesWith("canarylighthouse"), { timeout: 120_000 }).toEqual([])

    expect(await hosted.text(`${kept.path}/cases/export`)).toContain("canarykept")
    expect(await hosted.text(`${removed.path}/cases/export`)).not.toContain("canaryremoved")

    await hosted.stop()
    const folder = Path.join(hosted.folder, "archive")
    await Effect.runPromise(
      Effect.flatMap(fromRecord({ SPOKE_DATA_DIR: hosted.folder }, false), (settings) =>
        exportTo(settings, folder, { withSecret: false, streams: 1, tenant: null })
      )
    )
    const files = filesBelow(folder)
    // Bytes in rows are hexadecimal.
    const all = files.map(({ bytes }) => bytes.toString()).join("\n")
    const counts = (text: string) =>
      all.split(text).length + all.split(Buffer.from(text).toString("hex")).length - 2
    expect([counts("canarykept"), counts("canaryharbour")].map((count) => count > 0)).toEqual([true, true])
    expect(files.filter(({ name }) => name.startsWith("originals/")).length).toBeGreaterThan(0)
    expect([counts("canaryremoved"), counts("canarylighthouse")]).toEqual([0, 0])
  }, 400_000)
})
