import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { eachEngineLive } from "../../TestDatabase.ts"
import { call, signedIn } from "../accounts/AccountsServer.ts"
import { withServer, start, whatsapp } from "./ChannelServer.ts"

const refusal = "The provider refused the channel's access (code 190)."

/** A turn that ended `minutes` ago, with the events of its trace. */
const turn = (
  agentId: string,
  minutes: number,
  status: "complete" | "failed",
  events: ReadonlyArray<readonly [type: string, payload: object]>
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const id = `run_${String(10_000 - minutes)}`
    yield* sql`
      insert into agent_runs (tenant_id, id, agent_id, instance_id, user_message_id, user_message, period_start, status,
        started_at, completed_at)
      select tenant_id, ${id}, id, 'one', 'msg_1', 'Hello', now(), ${status},
        now() - make_interval(mins => ${minutes}::int), now() - make_interval(mins => ${minutes}::int)
      from agents where id = ${agentId}`
    for (const [sequence, [type, payload]] of events.entries()) {
      yield* sql`
        insert into agent_run_events (tenant_id, run_id, sequence, type, status, label, payload, at)
        select tenant_id, ${id}, ${sequence + 1}, ${type}, ${status}, 'An event', ${JSON.stringify(payload)}::jsonb,
          now() - make_interval(mins => ${minutes}::int)
        from agents where id = ${agentId}`
    }
  })

const refused = ["run.failed", { code: "TURN_FAILED", provider: "key_refused" }] as const
const toolFailed = (tool: string) =>
  ["tool.failed", { tool, code: "TOOL_FAILED", message: "TOOL_FAILED: status 401" }] as const
const toolAnswered = (tool: string) => ["tool.completed", { tool, output: "yes" }] as const

eachEngineLive("Problems of agents", (it) => {
  it.effect("list failing channels with time and reason, until the provider accepts a new token", () =>
    withServer(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const { agentId, channels, cookie } = yield* start
        const problems = Effect.map(
          call("GET", "/api/agent-problems", { cookie }),
          ({ data }) => data.problems
        )
        const made = yield* call("POST", channels, { cookie, body: whatsapp })
        expect(yield* problems).toEqual([])
        const { id } = made.data.channel
        yield* sql`update channels set failures = 7, failing_since = now() - interval '2 hours' where id = ${id}`
        const failing = {
          agentId,
          agentName: "Helper",
          kind: "channel",
          target: id,
          name: "whatsapp:106540352242922",
          since: expect.any(String)
        }
        expect(yield* problems).toEqual([{ ...failing, reason: null }])
        yield* sql`
          insert into end_users (tenant_id, id) select tenant_id, 'usr_1' from agents where id = ${agentId}`
        yield* sql`
          insert into conversations (tenant_id, id, agent_id, end_user_id, channel)
          select tenant_id, 'cnv_1', id, 'usr_1', 'whatsapp' from agents where id = ${agentId}`
        const part = (outboxId: string, state: string, error: string | null) => sql`
          insert into channel_outbox (tenant_id, id, conversation_id, channel_id, message_id, part, author, epoch, body,
            state, last_error)
          select tenant_id, ${outboxId}, 'cnv_1', ${id}, ${outboxId}, 1, 'agent', 0, 'Hello', ${state}, ${error}
          from agents where id = ${agentId}`
        yield* part("out_1", "failed", "The provider could not be reached.")
        yield* part("out_2", "failed", refusal)
        yield* part("out_3", "pending", null)
        expect(yield* problems).toEqual([{ ...failing, reason: refusal }])

        const stranger = yield* signedIn("eve@example.com")
        expect((yield* call("GET", "/api/agent-problems", { cookie: stranger.cookie })).data).toEqual({
          problems: []
        })
        // A channel that is switched off fails nobody.
        yield* sql`update channels set active = false where id = ${id}`
        expect(yield* problems).toEqual([])
        yield* sql`update channels set active = true where id = ${id}`
        const body = { accessToken: "EAA-a-new-token" }
        expect((yield* call("PATCH", `/api/channels/${id}`, { cookie, body })).status).toBe(200)
        expect(yield* problems).toEqual([])
      })
    )
  )

  it.effect("list a model and tools that failed in the last turns, until they work again", () =>
    withServer(
      Effect.gen(function* () {
        const { agentId, cookie } = yield* start
        const problems = Effect.map(call("GET", "/api/agent-problems", { cookie }), ({ data }) =>
          data.problems.map(({ kind, name, reason, since }: Record<string, string>) => [
            kind,
            name,
            reason,
            Math.round((Date.now() - Date.parse(since ?? "")) / 60_000)
          ])
        )
        yield* turn(agentId, 12_000, "failed", [refused])
        expect(yield* problems).toEqual([])
        yield* turn(agentId, 60, "complete", [toolAnswered("orders"), toolFailed("stock")])
        yield* turn(agentId, 50, "complete", [toolFailed("orders"), toolAnswered("stock")])
        yield* turn(agentId, 40, "complete", [toolFailed("orders")])
        const orders = ["tool", "orders", "TOOL_FAILED: status 401", 50]
        expect(yield* problems).toEqual([orders])
        yield* turn(agentId, 30, "failed", [refused])
        yield* turn(agentId, 20, "failed", [refused])
        // Somebody who takes over is no failure.
        yield* turn(agentId, 10, "failed", [["run.failed", { code: "TAKEN_OVER" }]])
        expect(yield* problems).toEqual([orders, ["model", null, "key_refused", 30]])
        yield* turn(agentId, 5, "complete", [toolAnswered("orders")])
        expect(yield* problems).toEqual([])
      })
    )
  )
})
