/** Reads of the dashboard's inbox over HTTP, for conversations held over the API. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { ArtifactStore } from "../../../src/capabilities/ArtifactStore.ts"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import { ModelError } from "../../../src/capabilities/ModelRuntime.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import type { AgentScope, SessionUser } from "../../../src/domain/accounts/Access.ts"
import { TenantId, UserId } from "../../../src/domain/Ids.ts"
import { SessionAuth } from "../../../src/http/Auth.ts"
import { HostedConversationsApi } from "../../../src/http/hosted/conversations/ConversationsApi.ts"
import { ConversationsHandlers } from "../../../src/http/hosted/conversations/ConversationsHandlers.ts"
import { InboxViewApi } from "../../../src/http/hosted/conversations/InboxViewApi.ts"
import { InboxViewHandlers } from "../../../src/http/hosted/conversations/InboxViewHandlers.ts"
import { AgentRunStore } from "../../../src/store/chat/AgentRuns.ts"
import { InboxListStore } from "../../../src/store/conversations/InboxList.ts"
import { InboxWorkStore } from "../../../src/store/conversations/InboxWork.ts"
import { InboxViewStore } from "../../../src/store/conversations/InboxView.ts"
import { WidgetMessageStore } from "../../../src/store/chat/WidgetMessages.ts"
import { AuditTrail } from "../../../src/usecases/accounts/AuditTrail.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { RealtimeAccess } from "../../../src/usecases/chat/RealtimeAccess.ts"
import { Conversations } from "../../../src/usecases/conversations/Conversations.ts"
import { InboxView } from "../../../src/usecases/conversations/InboxView.ts"
import * as Fixtures from "../../Fixtures.ts"
import { bucket, duringOutage } from "../../MemoryArtifacts.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { channelOf, ownershipLayer } from "../../usecases/channels/InboundHarness.ts"
import { request, says, Script, settings } from "../../usecases/chat/TurnHarness.ts"
import { channels } from "./InboxServer.ts"
import * as TestServer from "../TestServer.ts"

const current: { user: SessionUser } = {
  user: {
    userId: UserId.make("mbr_1"),
    tenantId: TenantId.make("ten_1"),
    email: "a@b.test",
    role: "agent",
    session: null
  }
}
const session = Layer.succeed(
  SessionAuth,
  Effect.sync(() => current.user)
)

const server = TestServer.layer(
  HttpApiBuilder.api(HttpApi.make("spoke").add(InboxViewApi).add(HostedConversationsApi)).pipe(
    Layer.provide(Layer.merge(InboxViewHandlers, ConversationsHandlers)),
    Layer.provide(session)
  )
).pipe(
  Layer.provideMerge(Layer.mergeAll(InboxView.Default, Conversations.Default, channels)),
  Layer.provideMerge(Layer.mergeAll(AuditTrail.Default, RealtimeAccess.Default)),
  Layer.provideMerge(
    Layer.mergeAll(
      AgentRunStore.Default,
      DerivedKeys.layer([Redacted.make("the master secret of these tests, 32 bytes")]),
      InboxViewStore.Default,
      InboxListStore.Default,
      InboxWorkStore.Default,
      WidgetMessageStore.Default,
      ownershipLayer(),
      settings(),
      SqlAudit.layerSql,
      bucket
    )
  )
)

const onFreshData = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(effect, server))

const as = ({ tenantId }: AgentScope) =>
  Effect.sync(() => {
    current.user = { ...current.user, tenantId }
  })

const call = (method: string, path: string) =>
  Effect.flatMap(TestServer.TestServer, (test) => test.call(method, path))

const contents = (messages: ReadonlyArray<{ readonly content: string }>) =>
  messages.map(({ content }) => content)

/** An API conversation of three answered questions. */
const talked = Effect.gen(function* () {
  const scope = yield* Fixtures.agent()
  yield* as(scope)
  const chat = yield* ChatTurn
  const first = request({ message: "One?", externalEndUserId: "ada@example.com" })
  const { conversationId } = yield* chat.complete(scope, first)
  for (const message of ["Two?", "Three?"]) yield* chat.complete(scope, request({ message, conversationId }))
  return { scope, conversationId, path: `/api/conversations/${conversationId}` }
})

eachEngineLive("The dashboard's inbox", (it) => {
  it.scoped("shows the delivery status of a message in its channel, and why it was not delivered", () =>
    Effect.gen(function* () {
      const { conversationId, path, scope } = yield* talked
      const sql = yield* SqlClient.SqlClient
      const channelId = yield* channelOf(scope)
      yield* sql`update conversations set channel = 'whatsapp', channel_id = ${channelId} where id = ${conversationId}`
      const last = (view: string) =>
        Effect.map(call("GET", `${path}/${view}`), ({ json }) => json.data.messages.at(-1).delivery)
      const told = Effect.tap(last("recent"), (delivery) =>
        Effect.map(last("messages"), (same) => expect(same).toEqual(delivery))
      )
      expect(yield* told).toBe(null)
      const part = (
        number: number,
        state: string,
        delivery: string | null,
        error: string | null = null
      ) => sql`
        insert into channel_outbox
          (id, tenant_id, conversation_id, channel_id, message_id, part, author, epoch, body, state, delivery, last_error)
        select ${`out_${number}`}, ${scope.tenantId}, ${conversationId}, ${channelId}, id, ${number}, 'agent', 0, 'x',
          ${state}, ${delivery}, ${error}
        from messages where conversation_id = ${conversationId} order by position desc limit 1`
      yield* part(1, "sent", "read")
      expect(yield* told).toEqual({ status: "read", reason: null })
      yield* part(2, "sent", "delivered")
      expect(yield* told).toEqual({ status: "delivered", reason: null })
      yield* part(3, "sending", null, "Busy.")
      expect(yield* told).toEqual({ status: "pending", reason: null })
      yield* part(4, "failed", null, "The window is closed.")
      expect(yield* told).toEqual({ status: "failed", reason: "The window is closed." })
      yield* sql`update channel_outbox set state = 'cancelled', delivery = null, last_error = null`
      expect(yield* told).toEqual({ status: "cancelled", reason: null })
    }).pipe(onFreshData)
  )

  it.scoped("returns files of the tenant's own conversations, in a form that no browser executes", () =>
    Effect.gen(function* () {
      const { path, scope } = yield* talked
      const sql = yield* SqlClient.SqlClient
      const artifact = yield* (yield* ArtifactStore).put(Buffer.from("<script>alert(1)</script>"))
      const files = [{ artifact, mimeType: "application/octet-stream", name: "a.html", size: 25 }]
      yield* sql`update messages set attachments = ${JSON.stringify(files)}::jsonb where position = 1`
      const { url } = yield* TestServer.TestServer
      const get = (ref: string) => Effect.promise(() => fetch(`${url}${path}/attachments/${ref}`))
      const found = yield* get(artifact)
      expect(found.status).toBe(200)
      expect(yield* Effect.promise(() => found.text())).toBe("<script>alert(1)</script>")
      expect(found.headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''a.html")
      expect(found.headers.get("x-content-type-options")).toBe("nosniff")
      expect((yield* get(artifact.replace(/.$/, (last) => (last === "0" ? "1" : "0")))).status).toBe(404)
      expect((yield* duringOutage(get(artifact))).status).toBe(503)
      yield* as({ ...scope, tenantId: TenantId.make("ten_other") })
      expect((yield* get(artifact)).status).toBe(404)
    }).pipe(onFreshData)
  )

  it.scoped("returns files of every type and name in a form that no browser executes", () =>
    Effect.gen(function* () {
      const { path } = yield* talked
      const sql = yield* SqlClient.SqlClient
      const artifact = yield* (yield* ArtifactStore).put(Buffer.from("<svg><script>alert(1)</script></svg>"))
      const { url } = yield* TestServer.TestServer
      const bytes = "application/octet-stream"
      const kinds: ReadonlyArray<readonly [mimeType: string, contentType: string, disposition: string]> = [
        ["image/png", "image/png", "inline"],
        ["image/jpeg", "image/jpeg", "inline"],
        ["image/svg+xml", bytes, "attachment"],
        ["image/svg+xml; charset=utf-8", bytes, "attachment"],
        ["text/html", bytes, "attachment"],
        ["text/xml", bytes, "attachment"],
        ["application/xml", bytes, "attachment"],
        ["application/xhtml+xml", bytes, "attachment"],
        ["application/javascript", bytes, "attachment"],
        ["application/x-shockwave-flash", bytes, "attachment"],
        ["multipart/x-mixed-replace; boundary=a", bytes, "attachment"],
        ["image/png\r\nx-made: up", bytes, "attachment"],
        ["", bytes, "attachment"],
        ["application/pdf", "application/pdf", "attachment"],
        ["video/mp4", "video/mp4", "attachment"]
      ]
      for (const [mimeType, contentType, disposition] of kinds) {
        const files = [{ artifact, mimeType, name: "a\r\nb;\"c'.svg", size: 25 }]
        yield* sql`update messages set attachments = ${JSON.stringify(files)}::jsonb where position = 1`
        const found = yield* Effect.promise(() => fetch(`${url}${path}/attachments/${artifact}`))
        expect([mimeType, found.status, found.headers.get("content-type")]).toEqual([
          mimeType,
          200,
          contentType
        ])
        expect(found.headers.get("content-disposition")).toBe(
          `${disposition}; filename*=UTF-8''a%0D%0Ab%3B%22c'.svg`
        )
        expect(found.headers.get("content-security-policy")).toBe("default-src 'none'; sandbox")
        expect(found.headers.get("x-content-type-options")).toBe("nosniff")
        expect(found.headers.get("x-made")).toBeNull()
      }
    }).pipe(onFreshData)
  )

  it.scoped("shows the end user of a conversation and the last message", () =>
    Effect.gen(function* () {
      const { conversationId } = yield* talked
      const { json, status } = yield* call("GET", "/api/inbox?state=AI_ACTIVE&channel=api")
      expect(status).toBe(200)
      expect(json.data).toMatchObject({
        conversations: [
          {
            id: conversationId,
            customer: "ada@example.com",
            preview: "Hello",
            messageCount: 6,
            channel: "api"
          }
        ],
        nextCursor: null
      })
      const none = yield* call("GET", "/api/inbox?state=CLOSED")
      expect(none.json.data.conversations).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped("reads a conversation from its end, page by page", () =>
    Effect.gen(function* () {
      const { path } = yield* talked
      const newest = yield* call("GET", `${path}/recent?limit=2`)
      expect(contents(newest.json.data.messages)).toEqual(["Three?", "Hello"])
      expect(newest.json.data).toMatchObject({ hasMore: true, conversation: { customer: "ada@example.com" } })
      const before = newest.json.data.messages[0].id
      const older = yield* call("GET", `${path}/recent?limit=4&before=${before}`)
      expect(contents(older.json.data.messages)).toEqual(["One?", "Hello", "Two?", "Hello"])
      expect(older.json.data.hasMore).toBe(false)
    }).pipe(onFreshData)
  )

  it.scoped("names the run of a reply, whose trace is shown and audited", () =>
    Effect.gen(function* () {
      const { path } = yield* talked
      const { json } = yield* call("GET", `${path}/recent?limit=2`)
      const [question, reply] = json.data.messages
      expect(question.runId).toBe(null)
      const trace = yield* call("GET", `/api/agent-runs/${reply.runId}?limit=100`)
      expect(trace.json.data).toMatchObject({ id: reply.runId, messageId: reply.id, status: "complete" })
      expect(trace.json.data.events.at(-1).type).toBe("run.completed")
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select action, target, actor_id as actor from audit_entries`).toEqual([
        { action: "agent_run.read", target: reply.runId, actor: "mbr_1" }
      ])
    }).pipe(onFreshData)
  )

  it.scoped("shows customers' ratings of replies: at the message, and their number in the list", () =>
    Effect.gen(function* () {
      const { path } = yield* talked
      const sql = yield* SqlClient.SqlClient
      yield* sql`
        insert into message_feedback (tenant_id, message_id, conversation_id, rating, comment)
        select tenant_id, id, conversation_id, case position when 2 then -1 else 1 end,
          case position when 2 then 'Wrong floor' end from messages where position in (2, 4)`
      const unhelpful = { rating: -1, comment: "Wrong floor", at: expect.stringMatching(/^\d{4}-.*Z$/) }
      const helpful = { ...unhelpful, rating: 1, comment: null }
      for (const view of ["recent", "messages"]) {
        const { json } = yield* call("GET", `${path}/${view}`)
        const feedback = json.data.messages.map((message: { readonly feedback: unknown }) => message.feedback)
        expect(feedback).toEqual([null, unhelpful, null, helpful, null, null])
      }
      const { json } = yield* call("GET", "/api/inbox")
      expect(json.data.conversations[0].ratings).toEqual({ helpful: 1, unhelpful: 1 })
    }).pipe(onFreshData)
  )

  it.scoped("shows a failed turn with its reason: at the message, in the list, and for the agent", () =>
    Effect.gen(function* () {
      const { conversationId, path, scope } = yield* talked
      const chat = yield* ChatTurn
      const { reply } = yield* Script
      const lastRun = Effect.map(
        call("GET", `/api/agents/${scope.agentId}/last-run`),
        ({ json }) => json.data.run
      )
      expect(yield* lastRun).toMatchObject({ status: "complete", failure: null })
      const refused = new ModelError({
        reason: "Rejected",
        message: "sk-secret",
        problem: "key_refused",
        retryable: false
      })
      yield* Ref.set(reply, () => Stream.fail(refused))
      yield* Effect.flip(chat.complete(scope, request({ message: "Four?", conversationId })))
      const failure = { code: "TURN_FAILED", provider: "key_refused" }
      const seen = Effect.map(call("GET", `${path}/recent`), ({ json }) => json.data)
      const list = Effect.map(call("GET", "/api/inbox"), ({ json }) => json.data.conversations[0])
      const failed = (yield* seen).messages.at(-1)
      expect(failed).toMatchObject({ content: "Four?", failure, runId: expect.stringMatching(/^run_/) })
      expect((yield* seen).messages.slice(0, -1).map(({ failure }: typeof failed) => failure)).toEqual(
        Array.from({ length: 6 }, () => null)
      )
      expect((yield* seen).conversation).toMatchObject({ failure })
      expect(yield* list).toMatchObject({ preview: "Four?", failure })
      expect(yield* lastRun).toMatchObject({ runId: failed.runId, status: "failed", failure })
      const trace = yield* call("GET", `/api/agent-runs/${failed.runId}?limit=100`)
      expect(trace.json.data.events.at(-1)).toMatchObject({ type: "run.failed", payload: failure })
      expect(JSON.stringify([yield* seen, yield* list, trace.json])).not.toContain("sk-secret")
      yield* Ref.set(reply, says("Hello"))
      yield* chat.complete(scope, request({ message: "Five?", conversationId }))
      expect(yield* list).toMatchObject({ failure: null })
      expect(yield* lastRun).toMatchObject({ failure: null })
      // It has no answer, whatever came later.
      expect((yield* seen).messages.at(-3)).toMatchObject({ content: "Four?", failure })
      yield* as(yield* Fixtures.agent())
      TestServer.expectError(yield* call("GET", `/api/agents/${scope.agentId}/last-run`), 404, "NOT_FOUND")
    }).pipe(onFreshData)
  )

  it.scoped("leaves out the team's test conversations unless they are requested", () =>
    Effect.gen(function* () {
      const { scope, path } = yield* talked
      const chat = yield* ChatTurn
      const started = yield* chat.start(scope, request({ message: "A test" }), "test")
      yield* Stream.runDrain(started.parts)
      const contentsOf = (place: string) =>
        Effect.map(call("GET", place), ({ json }) =>
          json.data.conversations.map(({ channel }: { readonly channel: string }) => channel)
        )
      for (const route of ["/api/inbox", "/api/conversations"]) {
        expect(yield* contentsOf(route)).toEqual(["api"])
        expect(yield* contentsOf(`${route}?channel=test`)).toEqual(["test"])
      }
      const { json } = yield* call("GET", "/api/inbox?channel=test")
      const own = `/api/conversations/${json.data.conversations[0].id}/recent`
      const seen = yield* call("GET", own)
      expect(contents(seen.json.data.messages)).toEqual(["A test", "Hello"])
      expect((yield* call("GET", `/api/agent-runs/${started.runId}?limit=1`)).status).toBe(200)
      expect((yield* call("GET", `${path}/recent`)).status).toBe(200)
    }).pipe(onFreshData)
  )

  it.scoped("opens the realtime socket of a conversation", () =>
    Effect.gen(function* () {
      const { conversationId, path } = yield* talked
      const { json } = yield* call("POST", `${path}/realtime`)
      const granted = yield* (yield* RealtimeAccess).verify(json.data.realtimeToken)
      expect(Option.map(granted, (grant) => grant.conversationId)).toEqual(Option.some(conversationId))
    }).pipe(onFreshData)
  )

  it.scoped("shows nothing of another tenant's", () =>
    Effect.gen(function* () {
      const { path } = yield* talked
      const { json } = yield* call("GET", `${path}/recent`)
      const runId = json.data.messages.at(-1).runId
      yield* as(yield* Fixtures.agent())
      expect((yield* call("GET", "/api/inbox")).json.data.conversations).toEqual([])
      TestServer.expectError(yield* call("GET", `${path}/recent`), 404, "NOT_FOUND")
      TestServer.expectError(yield* call("POST", `${path}/realtime`), 404, "NOT_FOUND")
      TestServer.expectError(yield* call("GET", `/api/agent-runs/${runId}`), 404, "NOT_FOUND")
    }).pipe(onFreshData)
  )
})
