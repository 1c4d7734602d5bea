/** A team's work on conversations, apart from replies, over HTTP. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import type { AgentScope, SessionUser } from "../../../src/domain/accounts/Access.ts"
import { ConversationId, TenantId, UserId } from "../../../src/domain/Ids.ts"
import { SessionAuth } from "../../../src/http/Auth.ts"
import { InboxItemsApi } from "../../../src/http/hosted/conversations/InboxItemsApi.ts"
import { InboxItemsHandlers } from "../../../src/http/hosted/conversations/InboxItemsHandlers.ts"
import { InboxViewApi } from "../../../src/http/hosted/conversations/InboxViewApi.ts"
import { InboxViewHandlers } from "../../../src/http/hosted/conversations/InboxViewHandlers.ts"
import { InboxWorkApi } from "../../../src/http/hosted/conversations/InboxWorkApi.ts"
import { InboxWorkHandlers } from "../../../src/http/hosted/conversations/InboxWorkHandlers.ts"
import { TakeoverApi } from "../../../src/http/hosted/conversations/TakeoverApi.ts"
import { TakeoverHandlers } from "../../../src/http/hosted/conversations/TakeoverHandlers.ts"
import { InboxItemStore } from "../../../src/store/conversations/InboxItems.ts"
import { InboxListStore } from "../../../src/store/conversations/InboxList.ts"
import { InboxWorkStore } from "../../../src/store/conversations/InboxWork.ts"
import { AuditTrail } from "../../../src/usecases/accounts/AuditTrail.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { Handoff } from "../../../src/usecases/conversations/Handoff.ts"
import { InboxItems } from "../../../src/usecases/conversations/InboxItems.ts"
import { InboxWork } from "../../../src/usecases/conversations/InboxWork.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { ownershipLayer } from "../../usecases/channels/InboundHarness.ts"
import { request } from "../../usecases/chat/TurnHarness.ts"
import { inboxView } from "./InboxServer.ts"
import * as TestServer from "../TestServer.ts"

const current: { user: SessionUser } = {
  user: {
    userId: UserId.make("mbr_1"),
    tenantId: TenantId.make("ten_1"),
    email: "ada@team.test",
    role: "agent",
    session: null
  }
}
const session = Layer.succeed(
  SessionAuth,
  Effect.sync(() => current.user)
)

const server = TestServer.layer(
  HttpApiBuilder.api(
    HttpApi.make("spoke").add(InboxViewApi).add(InboxWorkApi).add(InboxItemsApi).add(TakeoverApi)
  ).pipe(
    Layer.provide(Layer.mergeAll(InboxViewHandlers, InboxWorkHandlers, InboxItemsHandlers, TakeoverHandlers)),
    Layer.provide(session),
    Layer.provide(DerivedKeys.layer([Redacted.make("the master secret of these tests, 32 bytes")]))
  )
).pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      inboxView,
      AuditTrail.Default,
      InboxWork.Default.pipe(Layer.provide(Layer.merge(InboxListStore.Default, InboxWorkStore.Default))),
      InboxItems.Default.pipe(Layer.provide(InboxItemStore.Default))
    )
  ),
  Layer.provideMerge(Layer.merge(ownershipLayer(), SqlAudit.layerSql))
)

const onFreshData = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(effect, server))

const call = (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(TestServer.TestServer, (test) =>
    test.call(method, path, { headers, ...(body === undefined ? {} : { body }) })
  )

const member = Effect.fn(function* ({ tenantId }: Pick<AgentScope, "tenantId">, id: string, role = "agent") {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    insert into users (id, tenant_id, email, role, inbox_read_at)
    values (${id}, ${tenantId}, ${`${id}@team.test`}, ${role}, now() - interval '1 hour')`
})

const as = ({ tenantId }: Pick<AgentScope, "tenantId">, userId = "mbr_1") =>
  Effect.sync(() => {
    current.user = { ...current.user, tenantId, userId: UserId.make(userId) }
  })

/** An answered conversation, and two members of the team, the first of them signed in. */
const talked = Effect.gen(function* () {
  const scope = yield* Fixtures.agent()
  yield* as(scope)
  yield* member(scope, "mbr_1")
  yield* member(scope, "mbr_2")
  const chat = yield* ChatTurn
  const question = request({ message: "Is the workshop open?", externalEndUserId: "grace@example.com" })
  const { conversationId = ConversationId.make("none") } = yield* chat.complete(scope, question)
  return { scope, chat, conversationId, path: `/api/conversations/${conversationId}` }
})

const listed = (query = "") =>
  Effect.map(call("GET", `/api/inbox${query}`), ({ json }) => json.data.conversations)
const recent = (path: string) => Effect.map(call("GET", `${path}/recent`), ({ json }) => json.data)
const unread = Effect.map(call("GET", "/api/inbox/unread"), ({ json }) => json.data.unread)

const kinds = (entries: ReadonlyArray<{ readonly kind: string; readonly position: number }>) =>
  entries.map(({ kind, position }) => `${kind} ${position}`)

eachEngineLive("The inbox of a team", (it) => {
  it.scoped("shows the customer's question, and whether each member has read it", () =>
    Effect.gen(function* () {
      const { conversationId, path, scope } = yield* talked
      expect(yield* listed()).toMatchObject([{ question: "Is the workshop open?", unread: true }])
      const { messages } = yield* recent(path)
      expect((yield* call("POST", `${path}/read`, { messageId: messages.at(-1).id })).status).toBe(200)
      expect(yield* listed()).toMatchObject([{ unread: false }])
      expect(yield* listed("?unread=true")).toEqual([])
      yield* as(scope, "mbr_2")
      expect(yield* listed("?unread=true")).toMatchObject([{ id: conversationId, unread: true }])
      expect((yield* call("POST", "/api/inbox/read")).json.data).toEqual({ unread: 0 })
      expect(yield* listed()).toMatchObject([{ unread: false }])
      yield* (yield* ChatTurn).complete(scope, request({ message: "And tomorrow?", conversationId }))
      expect(yield* listed()).toMatchObject([{ question: "And tomorrow?", unread: true }])
      expect((yield* call("POST", `${path}/read`, { messageId: "msg_none" })).status).toBe(404)
    }).pipe(onFreshData)
  )

  it.scoped(
    "shows a message as unread that arrives after everything was read, even if it was written before",
    () =>
      Effect.gen(function* () {
        const { chat, conversationId, scope } = yield* talked
        yield* call("POST", "/api/inbox/read")
        expect(yield* listed("?unread=true")).toEqual([])
        yield* chat.complete(scope, request({ message: "Sent from the train", conversationId }))
        yield* (yield* Handoff).request(scope, conversationId, { by: "person", reason: "Asked." })
        const sql = yield* SqlClient.SqlClient
        yield* sql`update messages set created_at = now() - interval '2 hours' where content = 'Sent from the train'`
        expect(yield* listed()).toMatchObject([{ id: conversationId, unread: true }])
        expect(yield* listed("?unread=true")).toMatchObject([{ id: conversationId }])
        expect(yield* unread).toBe(1)
        yield* call("POST", "/api/inbox/read")
        expect(yield* unread).toBe(0)
      }).pipe(onFreshData)
  )

  it.scoped("counts the member's unread conversations: answered by humans, and not assigned to others", () =>
    Effect.gen(function* () {
      const { conversationId, path, scope } = yield* talked
      expect(yield* unread).toBe(0)
      yield* (yield* Handoff).request(scope, conversationId, {
        by: "person",
        reason: "The person asked for a human."
      })
      expect(yield* unread).toBe(1)
      yield* call("PUT", `${path}/assignee`, { userId: "mbr_2" })
      expect(yield* unread).toBe(0)
      yield* as(scope, "mbr_2")
      expect(yield* unread).toBe(1)
      const { messages } = yield* recent(path)
      yield* call("POST", `${path}/read`, { messageId: messages.at(-1).id })
      expect(yield* unread).toBe(0)
    }).pipe(onFreshData)
  )

  it.scoped("lists by last activity, page by page, and the team's tests only on request", () =>
    Effect.gen(function* () {
      const { chat, conversationId, scope } = yield* talked
      const others = yield* Effect.forEach(["b", "c", "d"], (who) =>
        Effect.map(
          chat.complete(scope, request({ message: `From ${who}`, externalEndUserId: who })),
          (turn) => turn.conversationId
        )
      )
      yield* chat.complete(scope, request({ message: "Me again", conversationId }))
      const sql = yield* SqlClient.SqlClient
      yield* sql`update conversations set channel = 'test' where id = ${others[0]}`
      const ids = (rows: ReadonlyArray<{ readonly id: string }>) => rows.map(({ id }) => id)
      expect(ids(yield* listed())).toEqual([conversationId, others[2], others[1]])
      const first = yield* call("GET", "/api/inbox?limit=2")
      const cursor = encodeURIComponent(first.json.data.nextCursor)
      expect(ids(yield* listed(`?limit=2&cursor=${cursor}`))).toEqual([others[1]])
      expect(ids(yield* listed("?channel=test"))).toEqual([others[0]])
    }).pipe(onFreshData)
  )

  it.scoped("shows takeovers, releases, assignments and closings in the thread, each after its message", () =>
    Effect.gen(function* () {
      const { conversationId, path, scope } = yield* talked
      yield* (yield* Handoff).request(scope, conversationId, {
        by: "person",
        reason: "The person asked for a human."
      })
      yield* call("PUT", `${path}/assignee`, { userId: "mbr_2" })
      yield* call("PUT", `${path}/assignee`, { userId: "mbr_2" })
      yield* call("POST", `${path}/takeover`)
      yield* call("POST", `${path}/messages`, { content: "Mind the step." })
      yield* call("POST", `${path}/release`)
      yield* call("PUT", `${path}/assignee`, { userId: null })
      yield* call("POST", `${path}/close`)
      const { conversation, entries, messages } = yield* recent(path)
      expect(kinds(entries)).toEqual([
        "requested 2",
        "assigned 3",
        "taken 3",
        "released 4",
        "unassigned 4",
        "closed 4"
      ])
      const ada = { id: "mbr_1", email: "mbr_1@team.test" }
      const grace = { id: "mbr_2", email: "mbr_2@team.test" }
      expect(entries.slice(0, 3)).toMatchObject([
        { by: null, content: "The person asked for a human." },
        { by: ada, subject: grace },
        { by: ada }
      ])
      expect(messages.at(-1)).toMatchObject({ content: "Mind the step.", by: ada, position: 4 })
      expect(conversation).toMatchObject({ assignee: null })
    }).pipe(onFreshData)
  )

  it.scoped("gives each page of a thread the events between its messages, once", () =>
    Effect.gen(function* () {
      const { chat, conversationId, path, scope } = yield* talked
      yield* call("POST", `${path}/notes`, { content: "First" })
      for (const message of ["2", "3"]) yield* chat.complete(scope, request({ message, conversationId }))
      yield* call("POST", `${path}/notes`, { content: "Second" })
      const newest = (yield* call("GET", `${path}/recent?limit=2`)).json.data
      const older = (yield* call("GET", `${path}/recent?limit=2&before=${newest.messages[0].id}`)).json.data
      const oldest = (yield* call("GET", `${path}/recent?limit=2&before=${older.messages[0].id}`)).json.data
      expect([newest, older, oldest].map(({ entries }) => kinds(entries))).toEqual([
        ["note 6"],
        [],
        ["note 2"]
      ])
    }).pipe(onFreshData)
  )

  it.scoped(
    "assigns conversations to members who may answer, filters by assignee, and unassigns a removed member's",
    () =>
      Effect.gen(function* () {
        const { conversationId, path, scope } = yield* talked
        yield* member(scope, "mbr_viewer", "viewer")
        for (const [userId, code] of [
          ["mbr_viewer", "VALIDATION_ERROR"],
          ["mbr_none", "NOT_FOUND"]
        ]) {
          expect((yield* call("PUT", `${path}/assignee`, { userId })).json.error.code).toBe(code)
        }
        expect(yield* listed("?assignee=none")).toHaveLength(1)
        yield* call("PUT", `${path}/assignee`, { userId: "mbr_1" })
        expect(yield* listed("?assignee=none")).toEqual([])
        expect(yield* listed("?assignee=me")).toMatchObject([{ id: conversationId }])
        expect(yield* listed("?assignee=mbr_2")).toEqual([])
        const sql = yield* SqlClient.SqlClient
        yield* sql`delete from users where id = 'mbr_1'`
        expect(yield* listed("?assignee=none")).toMatchObject([{ id: conversationId, assignee: null }])
        expect((yield* recent(path)).entries).toMatchObject([{ by: { id: "mbr_1", email: null } }])
      }).pipe(onFreshData)
  )

  it.scoped(
    "labels conversations, shows it in the thread, filters by label, and removes a deleted label",
    () =>
      Effect.gen(function* () {
        const { path, scope } = yield* talked
        const make = (name: string) => call("POST", "/api/inbox/labels", { name, tone: "good" })
        const { id } = (yield* make("Refund")).json.data.label
        expect((yield* make("refund")).status).toBe(409)
        expect((yield* make(" ")).status).toBe(400)
        expect((yield* call("PUT", `${path}/labels`, { labelIds: [id, "lbl_none"] })).status).toBe(404)
        expect(yield* listed()).toMatchObject([{ labelIds: [] }])
        yield* call("PUT", `${path}/labels`, { labelIds: [id] })
        expect(yield* listed(`?label=${id}`)).toMatchObject([{ labelIds: [id] }])
        expect((yield* recent(path)).entries).toMatchObject([{ kind: "labelled", content: "Refund" }])
        const other = yield* Fixtures.agent()
        yield* as(other)
        expect((yield* call("DELETE", `/api/inbox/labels/${id}`)).status).toBe(404)
        expect((yield* call("PUT", `${path}/labels`, { labelIds: [] })).status).toBe(404)
        yield* as(scope)
        expect((yield* call("DELETE", `/api/inbox/labels/${id}`)).status).toBe(200)
        expect(yield* listed()).toMatchObject([{ labelIds: [] }])
      }).pipe(onFreshData)
  )

  it.scoped("hides notes from customers and models, and lets only their author remove them", () =>
    Effect.gen(function* () {
      const { chat, conversationId, path, scope } = yield* talked
      const made = yield* call("POST", `${path}/notes`, { content: "  Owes us forty euros. " })
      expect(made.status).toBe(201)
      expect(made.json.data.entry).toMatchObject({
        kind: "note",
        content: "Owes us forty euros.",
        by: { id: "mbr_1" }
      })
      yield* chat.complete(scope, request({ message: "Anything else?", conversationId }))
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select 1 from messages where content like '%forty%'`).toEqual([])
      expect(yield* sql`select 1 from agent_run_events where payload::text like '%forty%'`).toEqual([])
      const note = `${path}/notes/${made.json.data.entry.id}`
      yield* as(scope, "mbr_2")
      expect((yield* call("DELETE", note)).status).toBe(404)
      yield* as(scope)
      expect((yield* call("DELETE", note)).status).toBe(200)
      expect((yield* recent(path)).entries).toEqual([])
      expect((yield* call("POST", `${path}/notes`, { content: "x".repeat(10_001) })).status).toBe(400)
    }).pipe(onFreshData)
  )

  it.scoped("records a repeated note too, because the entry of the first request may be missing", () =>
    Effect.gen(function* () {
      const { path } = yield* talked
      const sql = yield* SqlClient.SqlClient
      const add = call("POST", `${path}/notes`, { content: "Owes us." }, { "idempotency-key": "note" })
      yield* add
      yield* sql`delete from audit_entries`
      expect((yield* add).status).toBe(201)
      expect(yield* sql`select action from audit_entries`).toEqual([{ action: "conversation.note" }])
      expect((yield* recent(path)).entries).toHaveLength(1)
    }).pipe(onFreshData)
  )

  it.scoped("adds a note once per Idempotency-Key of a member, also if repeats are concurrent", () =>
    Effect.gen(function* () {
      const { path, scope } = yield* talked
      const add = (content: string, key: string) =>
        Effect.map(
          call("POST", `${path}/notes`, { content }, { "idempotency-key": key }),
          ({ json, status }) => [status, json.data?.entry.id ?? json.error.code]
        )
      const added = yield* Effect.forEach(
        Array.from({ length: 4 }),
        () => add(" Owes us forty euros.", "one"),
        {
          concurrency: 4
        }
      )
      expect(new Set(added.map(([status, id]) => `${status} ${id}`)).size).toBe(1)
      expect(added[0]?.[0]).toBe(201)
      expect(yield* add("Something else.", "one")).toEqual([409, "CONFLICT"])
      expect(yield* add("Owes us forty euros.", "two words")).toEqual([400, "VALIDATION_ERROR"])
      const others = [yield* add("Owes us forty euros.", "two")]
      yield* as(scope, "mbr_2")
      others.push(yield* add("Owes us forty euros.", "one"))
      expect(others.map(([status]) => status)).toEqual([201, 201])
      expect((yield* recent(path)).entries.map(({ id }: { readonly id: string }) => id).toSorted()).toEqual(
        [added[0], ...others].map((one) => one?.[1]).toSorted()
      )
    }).pipe(onFreshData)
  )

  it.scoped("searches messages, notes and people of the tenant by the beginnings of words", () =>
    Effect.gen(function* () {
      const { conversationId, path, scope } = yield* talked
      yield* call("POST", `${path}/notes`, { content: "Prefers bicycles" })
      const found = (q: string) => Effect.map(listed(`?q=${encodeURIComponent(q)}`), (rows) => rows.length)
      for (const q of ["workshop", "work open", "WORKSHOP?", "grace@exa", "example.com", "bicy"]) {
        expect([q, yield* found(q)]).toEqual([q, 1])
      }
      for (const q of ["shop", "workshop closed", "'", "\\", "!!!", "a' | 'b", "%"]) {
        expect([q, yield* found(q)]).toEqual([q, 0])
      }
      const other = yield* Fixtures.agent()
      yield* as(other)
      expect(yield* found("workshop")).toBe(0)
      yield* as(scope)
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from end_users`
      for (const table of ["conversation_entries", "conversation_reads", "conversation_labels"]) {
        expect(yield* sql`select 1 from ${sql(table)} where conversation_id = ${conversationId}`).toEqual([])
      }
    }).pipe(onFreshData)
  )

  it.scoped("stores a message with any words", () =>
    Effect.gen(function* () {
      const { chat, conversationId, scope } = yield* talked
      const long = "x".repeat(3_000)
      const pieces = [
        long,
        `${long}' \\ "`,
        "it's",
        "日本語のテキスト",
        "http://a.b/c?d=e&f='g'",
        "a \u2028 \t b"
      ]
      for (const message of pieces) yield* chat.complete(scope, request({ message, conversationId }))
      expect(yield* listed(`?q=${"x".repeat(100)}`)).toHaveLength(1)
    }).pipe(onFreshData)
  )

  it.scoped("accepts typing signals of the team only in the tenant's own open conversations", () =>
    Effect.gen(function* () {
      const { path, scope } = yield* talked
      expect((yield* call("POST", `${path}/typing`)).status).toBe(200)
      yield* as(yield* Fixtures.agent())
      expect((yield* call("POST", `${path}/typing`)).status).toBe(404)
      yield* as(scope)
      yield* call("POST", `${path}/close`)
      expect((yield* call("POST", `${path}/typing`)).status).toBe(404)
    }).pipe(onFreshData)
  )

  it.scoped("stores views and canned replies for the team", () =>
    Effect.gen(function* () {
      yield* talked
      const filter = { assignee: "me", state: "HUMAN_ACTIVE" }
      const view = yield* call("POST", "/api/inbox/views", { name: "Mine", filter })
      expect(view.json.data.view).toMatchObject({ name: "Mine", filter })
      const made = yield* call("POST", "/api/inbox/replies", { shortcut: "hi", content: "Hello {{name}}" })
      const { id } = made.json.data.reply
      expect(
        (yield* call("POST", "/api/inbox/replies", { shortcut: "two words", content: "x" })).status
      ).toBe(400)
      yield* call("PUT", `/api/inbox/replies/${id}`, { shortcut: "hey", content: "Good day" })
      expect((yield* call("GET", "/api/inbox/items")).json.data).toEqual({
        labels: [],
        views: [{ id: view.json.data.view.id, name: "Mine", filter }],
        replies: [{ id, shortcut: "hey", content: "Good day" }]
      })
      expect((yield* call("DELETE", `/api/inbox/views/${view.json.data.view.id}`)).status).toBe(200)
      expect((yield* call("DELETE", `/api/inbox/replies/${id}`)).status).toBe(200)
      expect((yield* call("DELETE", `/api/inbox/replies/${id}`)).status).toBe(404)
    }).pipe(onFreshData)
  )

  it.scoped("shows the end user of a conversation, and their other conversations", () =>
    Effect.gen(function* () {
      const { chat, path, scope } = yield* talked
      const again = request({ message: "Do you sell bells?", externalEndUserId: "grace@example.com" })
      yield* chat.complete(scope, again)
      const { person } = (yield* call("GET", `${path}/person`)).json.data
      expect(person).toMatchObject({
        externalId: "grace@example.com",
        contacts: [],
        conversationCount: 2,
        others: [{ question: "Do you sell bells?", channel: "api", state: "AI_ACTIVE" }]
      })
    }).pipe(onFreshData)
  )
})
