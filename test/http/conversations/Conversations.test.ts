/** The routes of conversations on a real database, with keys of two agents of one tenant and one of another. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { expect } from "vitest"
import { KeyStore } from "../../../src/capabilities/KeyStore.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import type { AgentScope, SessionUser } from "../../../src/domain/accounts/Access.ts"
import { newId, TenantId, UserId } from "../../../src/domain/Ids.ts"
import { SessionAuth } from "../../../src/http/Auth.ts"
import { HostedConversationsApi } from "../../../src/http/hosted/conversations/ConversationsApi.ts"
import { ConversationsHandlers } from "../../../src/http/hosted/conversations/ConversationsHandlers.ts"
import * as KeyAuth from "../../../src/http/KeyAuth.ts"
import { ImportsApi } from "../../../src/http/operator/ImportsApi.ts"
import { ImportsHandlers } from "../../../src/http/operator/ImportsHandlers.ts"
import * as OperatorAuth from "../../../src/http/operator/OperatorAuth.ts"
import { ConversationsApi } from "../../../src/http/public/conversations/ConversationsApi.ts"
import * as PublicHandlers from "../../../src/http/public/conversations/ConversationsHandlers.ts"
import { ConversationImports } from "../../../src/store/conversations/ConversationImports.ts"
import { ConversationStore } from "../../../src/store/conversations/Conversations.ts"
import { LegacyMessages } from "../../../src/store/conversations/LegacyMessages.ts"
import { Conversations } from "../../../src/usecases/conversations/Conversations.ts"
import { ImportConversations } from "../../../src/usecases/conversations/ImportConversations.ts"
import { LegacyKeys } from "../../../src/usecases/conversations/LegacyKeys.ts"
import { agent } from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { inboxView } from "./InboxServer.ts"
import { liveKey, noVisitors, rateLimits } from "../PublicServer.ts"
import * as TestServer from "../TestServer.ts"
import { openGate } from "../OpenGate.ts"

const Surface = HttpApi.make("spoke").add(ConversationsApi).add(HostedConversationsApi).add(ImportsApi)

/** A key is the words `tenant agent`, and a session the tenant's id. */
const keyStore = Layer.succeed(KeyStore, {
  find: (secret: Redacted.Redacted) => {
    const [tenantId = "", agentId = ""] = Redacted.value(secret).split("/")
    return Effect.succeed(
      Option.some({
        ...liveKey({ permissions: ["chat"] }),
        tenantId: TenantId.make(tenantId),
        agentId: agentId as never
      })
    )
  },
  invalidate: () => Effect.void
})

const current: { user: SessionUser } = {
  user: {
    userId: UserId.make("mbr_1"),
    tenantId: TenantId.make("ten_1"),
    email: "a@b.test",
    role: "viewer",
    session: null
  }
}
const session = Layer.succeed(
  SessionAuth,
  Effect.sync(() => current.user)
)

const useCases = Layer.mergeAll(Conversations.Default, ImportConversations.Default, LegacyKeys.Default).pipe(
  Layer.provide(
    Layer.mergeAll(ConversationImports.Default, ConversationStore.Default, LegacyMessages.Default)
  )
)

const server = TestServer.layer(
  HttpApiBuilder.api(Surface).pipe(
    Layer.provide(Layer.mergeAll(PublicHandlers.layer, ConversationsHandlers, ImportsHandlers)),
    Layer.provide(Layer.mergeAll(KeyAuth.layer(Surface), session)),
    Layer.provide(OperatorAuth.layer(Option.some(Redacted.make("operator")))),
    Layer.provide(Layer.mergeAll(keyStore, rateLimits, noVisitors, openGate)),
    Layer.provide(DerivedKeys.layer([Redacted.make("the master secret of these tests, 32 bytes")]))
  )
).pipe(Layer.provideMerge(Layer.merge(useCases, inboxView)))

const onFreshData = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, effect).pipe(Effect.provide(server))

const as = ({ agentId, tenantId }: AgentScope) => ({ "x-api-key": `${tenantId}/${agentId}` })

const get = (path: string, scope: AgentScope) =>
  Effect.flatMap(TestServer.TestServer, ({ call }) => call("GET", path, { headers: as(scope) }))

const hosted = (path: string, { tenantId }: AgentScope) =>
  Effect.flatMap(TestServer.TestServer, ({ call }) => {
    current.user = { ...current.user, tenantId }
    return call("GET", path)
  })

/** A conversation with that many messages, the first ones from before there were keys. */
const conversation = (
  scope: AgentScope,
  count: number,
  options: { channel?: string; unkeyed?: number } = {}
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const id = yield* newId.conversation
    const endUserId = yield* newId.endUser
    const { channel = "api", unkeyed = 0 } = options
    yield* sql`insert into end_users (id, tenant_id) values (${endUserId}, ${scope.tenantId})`
    yield* sql`
      insert into conversations (id, tenant_id, agent_id, end_user_id, channel, message_count, legacy_count)
      values (${id}, ${scope.tenantId}, ${scope.agentId}, ${endUserId}, ${channel}, ${count - unkeyed}, ${unkeyed})`
    yield* sql`
      insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content, created_at)
      select ${id} || '_' || n, ${scope.tenantId}, ${id}, ${scope.agentId}, case when n > ${unkeyed}::int then n - ${unkeyed}::int end,
        case when n % 2 = 1 then 'user' else 'assistant' end, 'Message "' || n || '"',
        timestamptz '2024-05-01T09:30:00Z' + n * interval '1 second'
      from generate_series(1, ${count}::int) n`
    return { id, endUserId }
  }).pipe(Effect.orDie)

const walk = (path: string, scope: AgentScope) =>
  Effect.gen(function* () {
    const rows: Array<{ readonly id: string; readonly content: string }> = []
    const sizes: Array<number> = []
    let cursor: string | null = ""
    while (cursor !== null) {
      const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`
      const data = TestServer.expectData(yield* get(`${path}${query}`, scope))
      expect(data.hasMore ?? data.nextCursor !== null).toBe(data.nextCursor !== null)
      const page = data.messages ?? data.conversations
      rows.push(...page)
      sizes.push(page.length)
      cursor = data.nextCursor
    }
    return { rows, sizes }
  })

eachEngineLive("GET /v1/conversations", (it) => {
  it.effect("lists API conversations of the key's agent, newest first, 20 per page by default", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      yield* conversation(scope, 1, { channel: "widget" })
      yield* conversation(yield* agent(), 1)
      const made = yield* Effect.forEach(Array.from({ length: 23 }), () => conversation(scope, 2))
      const first = TestServer.expectData(yield* get("/v1/conversations", scope))
      expect([first.conversations.length, typeof first.nextCursor]).toEqual([20, "string"])
      const ids = made
        .map(({ id }) => id)
        .toSorted()
        .toReversed()
      const { rows, sizes } = yield* walk("/v1/conversations?limit=10", scope)
      expect([rows.map(({ id }) => id), sizes]).toEqual([ids, [10, 10, 3]])
      const [item] = first.conversations
      expect(Object.keys(item).toSorted()).toEqual([
        "agentId",
        "createdAt",
        "endUserId",
        "id",
        "messageCount",
        "updatedAt"
      ])
      expect([item.agentId, item.messageCount]).toEqual([scope.agentId, 2])
      const [mine] = made
      const filtered = TestServer.expectData(
        yield* get(`/v1/conversations?endUserId=${mine?.endUserId}`, scope)
      )
      expect(filtered).toMatchObject({ conversations: [{ id: mine?.id }], nextCursor: null })
      expect(
        TestServer.expectData(yield* get("/v1/conversations?endUserId=usr_none", scope)).conversations
      ).toEqual([])
    }).pipe(onFreshData)
  )

  it.effect("refuses limits outside 1 to 100, and cursors of other lists", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const other = yield* agent()
      yield* Effect.forEach([1, 2, 3], () => conversation(scope, 3))
      const { nextCursor } = TestServer.expectData(yield* get("/v1/conversations?limit=1", scope))
      const { id } = yield* conversation(scope, 3)
      for (const query of [
        "limit=0",
        "limit=101",
        "limit=-1",
        "limit=x",
        "limit=1.5",
        "limit=",
        "cursor=x",
        "cursor="
      ]) {
        TestServer.expectError(yield* get(`/v1/conversations?${query}`, scope), 400, "VALIDATION_ERROR")
      }
      const cursor = encodeURIComponent(nextCursor)
      const changed = `${cursor.slice(0, -2)}${cursor.endsWith("AA") ? "BB" : "AA"}`
      const refusals = [
        get(`/v1/conversations?cursor=${changed}`, scope),
        get(`/v1/conversations?cursor=${cursor}`, other),
        get(`/v1/conversations?endUserId=usr_1&cursor=${cursor}`, scope),
        get(`/v1/conversations/${id}/messages?cursor=${cursor}`, scope),
        hosted(`/api/conversations?cursor=${cursor}`, scope)
      ]
      for (const refusal of refusals) TestServer.expectError(yield* refusal, 400, "VALIDATION_ERROR")
      expect((yield* get(`/v1/conversations?limit=2&cursor=${cursor}`, scope)).status).toBe(200)
    }).pipe(onFreshData)
  )
})

eachEngineLive("GET /v1/conversations/:id/messages", (it) => {
  it.effect("pages from the first message to the last, 50 per page by default, at most 1,000", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const { id } = yield* conversation(scope, 2_101)
      const path = `/v1/conversations/${id}/messages`
      const first = TestServer.expectData(yield* get(path, scope))
      expect([first.messages.length, first.hasMore, first.messages[0]]).toEqual([
        50,
        true,
        { id: `${id}_1`, role: "user", content: 'Message "1"', createdAt: "2024-05-01T09:30:01.000Z" }
      ])
      const { rows, sizes } = yield* walk(`${path}?limit=${Number.MAX_SAFE_INTEGER}`, scope)
      expect(sizes).toEqual([1_000, 1_000, 101])
      expect(rows.map((message) => message.id)).toEqual(
        Array.from({ length: 2_101 }, (_, n) => `${id}_${n + 1}`)
      )
      const whole = TestServer.expectData(yield* get(`/v1/conversations/${id}`, scope))
      expect(whole.messages).toEqual(rows)
      expect(Object.keys(whole).toSorted()).toEqual(["agentId", "createdAt", "endUserId", "id", "messages"])
    }).pipe(onFreshData)
  )

  it.effect(
    "refuses limits that are not positive safe integers, and cursors of another conversation or agent",
    () =>
      Effect.gen(function* () {
        const scope = yield* agent()
        const one = yield* conversation(scope, 5)
        const two = yield* conversation(scope, 5)
        const path = `/v1/conversations/${one.id}/messages`
        for (const limit of ["0", "-1", "1.5", "1e3", "9007199254740992", "ten", ""]) {
          TestServer.expectError(yield* get(`${path}?limit=${limit}`, scope), 400, "VALIDATION_ERROR")
        }
        const { nextCursor } = TestServer.expectData(yield* get(`${path}?limit=2`, scope))
        const cursor = encodeURIComponent(nextCursor)
        for (const refused of [
          `/v1/conversations/${two.id}/messages?cursor=${cursor}`,
          `${path}?cursor=2`,
          `${path}?cursor=${cursor}A`,
          `${path}?cursor=A${cursor}`
        ]) {
          TestServer.expectError(yield* get(refused, scope), 400, "VALIDATION_ERROR")
        }
        TestServer.expectError(
          yield* get(`${path}?cursor=${cursor}`, yield* agent()),
          400,
          "VALIDATION_ERROR"
        )
        TestServer.expectError(
          yield* hosted(`/api/conversations/${one.id}/messages?cursor=${cursor}`, scope),
          400,
          "VALIDATION_ERROR"
        )
        const next = TestServer.expectData(yield* get(`${path}?cursor=${cursor}`, scope))
        expect(next.messages.map(({ id }: { id: string }) => id)).toEqual(
          [3, 4, 5].map((n) => `${one.id}_${n}`)
        )
        expect([next.nextCursor, next.hasMore]).toEqual([null, false])
      }).pipe(onFreshData)
  )

  it.effect("is 503 PAGINATION_NOT_READY until older messages are in their order, and then omits none", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const { id } = yield* conversation(scope, 9, { unkeyed: 6 })
      const other = yield* conversation(scope, 1)
      for (const path of [`/v1/conversations/${id}/messages`, `/v1/conversations/${id}`]) {
        const answer = yield* get(path, scope)
        TestServer.expectError(answer, 503, "PAGINATION_NOT_READY")
        expect(answer.headers.get("retry-after")).toBe("1")
        TestServer.expectError(yield* hosted(path.replace("/v1", "/api"), scope), 503, "PAGINATION_NOT_READY")
      }
      expect((yield* get(`/v1/conversations/${other.id}/messages`, scope)).status).toBe(200)
      yield* Effect.flatMap(LegacyKeys, ({ run }) => run)
      const { rows } = yield* walk(`/v1/conversations/${id}/messages?limit=4`, scope)
      expect(rows.map((message) => message.id)).toEqual(Array.from({ length: 9 }, (_, n) => `${id}_${n + 1}`))
      expect(
        TestServer.expectData(yield* get("/v1/conversations", scope)).conversations[1].messageCount
      ).toBe(9)
    }).pipe(onFreshData)
  )

  it.effect("and the conversation itself are 404 for every other agent, tenant and channel", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const other = yield* agent()
      const own = yield* conversation(scope, 1)
      const widget = yield* conversation(scope, 1, { channel: "widget" })
      for (const suffix of ["", "/messages"]) {
        expect((yield* get(`/v1/conversations/${own.id}${suffix}`, scope)).status).toBe(200)
        const refusals = [
          get(`/v1/conversations/${own.id}${suffix}`, other),
          get(`/v1/conversations/${widget.id}${suffix}`, scope),
          get(`/v1/conversations/cnv_none${suffix}`, scope),
          get(`/v1/conversations/%00x${suffix}`, scope),
          hosted(`/api/conversations/${own.id}${suffix}`, other)
        ]
        for (const refusal of refusals) TestServer.expectError(yield* refusal, 404, "NOT_FOUND")
        expect((yield* hosted(`/api/conversations/${widget.id}${suffix}`, scope)).status).toBe(200)
      }
    }).pipe(onFreshData)
  )
})

eachEngineLive("GET /api/conversations", (it) => {
  it.effect(
    "lists every channel's conversations of the tenant with state and channel, filtered by either",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const scope = yield* agent()
        const other = yield* agent()
        yield* conversation(other, 1)
        const api = yield* conversation(scope, 1)
        const whatsapp = yield* conversation(scope, 1, { channel: "whatsapp" })
        const widget = yield* conversation(scope, 1, { channel: "widget" })
        yield* sql`update conversations set state = 'HUMAN_REQUESTED' where id = ${whatsapp.id}`
        const ids = (query: string, by = scope) =>
          Effect.map(hosted(`/api/conversations?${query}`, by), (answer) =>
            TestServer.expectData(answer)
              .conversations.map(({ id }: { id: string }) => id)
              .toSorted()
          )
        expect(yield* ids("")).toEqual([api.id, whatsapp.id, widget.id].toSorted())
        expect(yield* ids("channel=whatsapp")).toEqual([whatsapp.id])
        expect(yield* ids("state=HUMAN_REQUESTED")).toEqual([whatsapp.id])
        expect(yield* ids("state=AI_ACTIVE&channel=widget")).toEqual([widget.id])
        expect(yield* ids(`agentId=${scope.agentId}&channel=api`)).toEqual([api.id])
        expect(yield* ids(`agentId=${scope.agentId}`, other)).toEqual([])
        const one = TestServer.expectData(yield* hosted("/api/conversations?limit=1&channel=whatsapp", scope))
        expect(one.conversations[0]).toMatchObject({
          state: "HUMAN_REQUESTED",
          channel: "whatsapp",
          messageCount: 1
        })
        const whole = TestServer.expectData(yield* hosted(`/api/conversations/${whatsapp.id}`, scope))
        expect(whole).toMatchObject({
          state: "HUMAN_REQUESTED",
          channel: "whatsapp",
          messages: [{ role: "user" }]
        })
        for (const query of ["state=SLEEPING", "channel=fax", "limit=0"]) {
          TestServer.expectError(yield* hosted(`/api/conversations?${query}`, scope), 400, "VALIDATION_ERROR")
        }
        const page = TestServer.expectData(yield* hosted("/api/conversations?limit=1", scope))
        const cursor = encodeURIComponent(page.nextCursor)
        for (const refusal of [
          hosted(`/api/conversations?state=CLOSED&cursor=${cursor}`, scope),
          hosted(`/api/conversations?cursor=${cursor}`, other)
        ]) {
          TestServer.expectError(yield* refusal, 400, "VALIDATION_ERROR")
        }
      }).pipe(onFreshData)
  )
})

eachEngineLive("POST /api/operator/import/conversations", (it) => {
  const post = (body: string, headers: Readonly<Record<string, string>>, query = "") =>
    Effect.flatMap(TestServer.TestServer, ({ call }) =>
      call("POST", `/api/operator/import/conversations${query}`, { headers, body })
    )
  const operator = { authorization: "Bearer operator", "content-type": "application/x-ndjson" }

  it.effect("is for the operator only, reports line by line, and accepts at most 16 MiB", () =>
    Effect.gen(function* () {
      const scope = yield* agent()
      const line = JSON.stringify({
        id: "1",
        messages: [{ role: "user", content: "Hi \ud800\u0000", createdAt: "2020-01-01T00:00:00Z" }]
      })
      TestServer.expectError(yield* post(line, { ...operator, authorization: "" }), 401, "UNAUTHORIZED")
      const query = `?agentId=${scope.agentId}`
      const report = {
        imported: 1,
        messages: 1,
        repeated: 0,
        problems: [{ line: 2, message: expect.any(String) }]
      }
      expect(TestServer.expectData(yield* post(`${line}\n{}`, operator, query))).toEqual(report)
      yield* Effect.flatMap(LegacyKeys, ({ run }) => run)
      const [made] = TestServer.expectData(yield* get("/v1/conversations", scope)).conversations
      expect(made).toMatchObject({
        createdAt: "2020-01-01T00:00:00.000Z",
        updatedAt: "2020-01-01T00:00:00.000Z"
      })
      const { messages } = TestServer.expectData(yield* get(`/v1/conversations/${made.id}`, scope))
      expect(messages).toEqual([
        {
          id: expect.stringMatching(/^msg_/),
          role: "user",
          content: "Hi \ufffd",
          createdAt: "2020-01-01T00:00:00.000Z"
        }
      ])
      const large = yield* post("x".repeat(16 * 1_048_576 + 1), operator, query)
      TestServer.expectError(large, 413, "PAYLOAD_TOO_LARGE")
    }).pipe(onFreshData)
  )
})
