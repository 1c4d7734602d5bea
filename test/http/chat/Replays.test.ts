/** Stored turns run again, over HTTP: by a session, or by the key of the agent. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import type { Caller, ReadScope, SessionUser } from "../../../src/domain/accounts/Access.ts"
import { ExternalEndUserId } from "../../../src/domain/chat/ChatTurn.ts"
import { KeyId, TenantId, UserId } from "../../../src/domain/Ids.ts"
import { CallerAuth } from "../../../src/http/Auth.ts"
import { ReplaysApi } from "../../../src/http/hosted/chat/ReplaysApi.ts"
import { ReplaysHandlers } from "../../../src/http/hosted/chat/ReplaysHandlers.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { RecordedRunStore } from "../../../src/store/chat/RecordedRuns.ts"
import { AuditTrail } from "../../../src/usecases/accounts/AuditTrail.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { Replays } from "../../../src/usecases/chat/replay/Replays.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { chunk, request, says, Script, turnLayer } from "../../usecases/chat/TurnHarness.ts"
import * as TestServer from "../TestServer.ts"

const user: SessionUser = {
  userId: UserId.make("mbr_1"),
  tenantId: TenantId.make("ten_1"),
  email: "a@b.test",
  role: "agent",
  session: null
}
const current: { caller: Caller } = { caller: { _tag: "User", user } }
const caller = Layer.succeed(
  CallerAuth,
  Effect.sync(() => current.caller)
)

const server = TestServer.layer(
  HttpApiBuilder.api(HttpApi.make("spoke").add(ReplaysApi)).pipe(
    Layer.provide(ReplaysHandlers),
    Layer.provide(caller)
  )
).pipe(
  Layer.provideMerge(Layer.merge(Replays.Default, AuditTrail.Default)),
  Layer.provideMerge(
    Layer.mergeAll(turnLayer(), AgentStore.Default, RecordedRunStore.Default, SqlAudit.layerSql)
  )
)

const onFreshData = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(effect, server))

const replay = (agentId: string, body: unknown) =>
  Effect.flatMap(TestServer.TestServer, (test) =>
    test.call("POST", `/api/agents/${agentId}/replays`, { body })
  )

const asUser = ({ tenantId }: ReadScope) =>
  Effect.sync(() => {
    current.caller = { _tag: "User", user: { ...user, tenantId } }
  })

const asKey = (scope: ReadScope) =>
  Effect.sync(() => {
    const key = { ...scope, keyId: KeyId.make("key_1"), permissions: ["trace_read" as const] }
    current.caller = { _tag: "Key", key }
  })

/** A turn for the person with that external id, or for an anonymous one. */
const askFor = (externalEndUserId?: string) =>
  Effect.gen(function* () {
    const scope = yield* Fixtures.agent()
    const { chunks, reply } = yield* Script
    yield* Ref.set(chunks, [chunk(1)])
    yield* Ref.set(reply, says("Fact number 1. [1]"))
    const { runId } = yield* (yield* ChatTurn).complete(
      scope,
      request({
        message: "What is fact one?",
        includeRealtimeToken: false,
        ...(externalEndUserId === undefined ? {} : { externalEndUserId })
      })
    )
    return { scope, runId: String(runId) }
  })
const asked = askFor()

eachEngineLive("POST /api/agents/:id/replays", (it) => {
  it.scoped("returns the stored and the new reply to the team and to the agent's key, and audits both", () =>
    Effect.gen(function* () {
      const { runId, scope } = yield* asked
      const { reply } = yield* Script
      yield* asUser(scope)
      const { runs } = TestServer.expectData(yield* replay(scope.agentId, { runIds: [runId, runId] }))
      const outcome = {
        reply: "Fact number 1. [1]",
        citations: [expect.objectContaining({ index: 1, sourceId: "src_1", text: "Fact number 1." })],
        failure: null,
        inputTokens: 11,
        outputTokens: 1
      }
      expect(runs).toEqual([{ runId, outcome: "same", reason: null, before: outcome, after: outcome }])
      yield* asKey(scope)
      yield* Ref.set(reply, says("Nothing."))
      const changed = TestServer.expectData(yield* replay(scope.agentId, { runIds: [runId] }))
      expect(changed.runs).toMatchObject([
        { outcome: "changed", after: { reply: "Nothing.", citations: [] } }
      ])
      const sql = yield* SqlClient.SqlClient
      const entries = yield* sql`select action, target, actor_id as actor from audit_entries order by id`
      expect(entries).toEqual([
        { action: "agent_run.replay", target: runId, actor: "mbr_1" },
        { action: "agent_run.replay", target: runId, actor: "key_1" }
      ])
    }).pipe(onFreshData)
  )

  it.scoped("is 404 with the token of another visitor", () =>
    Effect.gen(function* () {
      const { runId, scope } = yield* askFor("ada")
      yield* asKey({ ...scope, visitor: ExternalEndUserId.make("ada") })
      TestServer.expectData(yield* replay(scope.agentId, { runIds: [runId] }))
      yield* asKey({ ...scope, visitor: ExternalEndUserId.make("bob") })
      TestServer.expectError(yield* replay(scope.agentId, { runIds: [runId] }), 404, "NOT_FOUND")
    }).pipe(onFreshData)
  )

  it.scoped("is 404 for another tenant's runs, and 400 for an invalid list of runs", () =>
    Effect.gen(function* () {
      const { runId, scope } = yield* asked
      const other = yield* Fixtures.agent()
      for (const as of [asUser, asKey]) {
        yield* as(other)
        TestServer.expectError(yield* replay(scope.agentId, { runIds: [runId] }), 404, "NOT_FOUND")
        TestServer.expectError(yield* replay(other.agentId, { runIds: [runId] }), 404, "NOT_FOUND")
      }
      yield* asUser(scope)
      TestServer.expectError(yield* replay(scope.agentId, { runIds: [runId], version: 9 }), 404, "NOT_FOUND")
      for (const runIds of [[], Array.from({ length: 21 }, (_, place) => `run_${place}`), runId])
        TestServer.expectError(yield* replay(scope.agentId, { runIds }), 400, "VALIDATION_ERROR")
    }).pipe(onFreshData)
  )
})
