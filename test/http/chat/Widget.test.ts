import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { WebSocket } from "undici"
import { expect } from "vitest"
import { ArtifactStore } from "../../../src/capabilities/ArtifactStore.ts"
import { ModelError, type ModelPart } from "../../../src/capabilities/ModelRuntime.ts"
import { WidgetSessions } from "../../../src/usecases/chat/widget/Sessions.ts"
import { bucket, duringOutage } from "../../MemoryArtifacts.ts"
import { counterValue } from "../../Counters.ts"
import { eachEngineLive } from "../../TestDatabase.ts"
import { says, Script } from "../../usecases/chat/TurnHarness.ts"
import { keyHeader } from "../PublicServer.ts"
import { expectData, expectError, type Options, TestServer } from "../TestServer.ts"
import { appUrl, seedDatabase, layer as WidgetServer } from "./WidgetServer.ts"

const ask = (method: string, path: string, options: Options = {}, key = "spk_chat") =>
  Effect.flatMap(TestServer, ({ call }) =>
    call(method, path, { ...options, headers: { ...keyHeader(key), ...options.headers } })
  )

const get = (path: string, key?: string) => ask("GET", path, {}, key)
const post = (path: string, body: unknown, key?: string) => ask("POST", path, { body }, key)

/** As a dashboard user; with the page's own origin unless `headers` say otherwise. */
const asUser = (role: string, method: string, path: string, options: Options = {}) =>
  Effect.flatMap(TestServer, ({ call }) =>
    call(method, path, {
      ...options,
      headers: { cookie: `spoke_session=${role}`, origin: appUrl, ...options.headers }
    })
  )

// oxlint-disable-next-line typescript/no-explicit-any -- tests look into it field by field
type Json = any

const framesOf = (text: string): ReadonlyArray<Json> =>
  text
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: {"))
    .map((frame): Json => JSON.parse(frame.slice("data: ".length)))

const resultOf = (text: string): Json => framesOf(text).find(({ type }) => type === "data-done")?.data.result

const chat = (body: unknown, key?: string) => post("/api/v1/chat/stream", body, key)

/** A turn in the session that is expected to go well; returns its result. */
const say = (sessionId: string, message = "Hi") =>
  Effect.map(chat({ sessionId, message }), ({ status, text }) => {
    expect(status).toBe(200)
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true)
    return resultOf(text)
  })

const init = (body: unknown = {}, key?: string) =>
  Effect.map(post("/api/sdk/init", body, key), (answer) => expectData(answer))

const query = (sessionId: string) => `sessionId=${encodeURIComponent(sessionId)}`

const stateIs = (conversationId: string, state: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`update conversations set state = ${state}, epoch = epoch + 1 where id = ${conversationId}`
  )

eachEngineLive("The widget", (it) => {
  it.layer(WidgetServer(bucket))((it) => {
    it.effect(
      "init creates a session with agent and end user, without conversation and token until the first message",
      () =>
        Effect.gen(function* () {
          const sql = yield* seedDatabase
          const session = yield* init()
          expect(session).toEqual({
            sessionId: expect.stringMatching(/^ses_[A-Za-z0-9_-]{43}$/),
            agent: { id: "agt_1", name: "Helper", greeting: "Hello! How can I help?" },
            endUserId: expect.stringMatching(/^usr_/),
            conversationId: null,
            realtimeToken: null,
            realtimeUrl: "ws://127.0.0.1/api/realtime"
          })
          const { conversationId, endUserId, reply } = yield* say(session.sessionId)
          expect([reply, endUserId]).toEqual(["Hello", session.endUserId])
          const again = yield* init({ sessionId: session.sessionId })
          expect(again).toEqual({ ...session, conversationId, realtimeToken: expect.any(String) })
          // The id itself is stored nowhere.
          const stored = yield* sql<{
            text: string
          }>`select row_to_json(s)::text as text from widget_sessions s`
          expect(stored.map(({ text }) => text).join()).not.toContain(session.sessionId)
          const [row] = yield* sql`select channel, end_user_id from conversations`
          expect(row).toEqual({ channel: "widget", end_user_id: session.endUserId })
        })
    )

    it.effect("a session's turns continue its conversation, and the model gets the history", () =>
      Effect.gen(function* () {
        yield* seedDatabase
        const { sessionId } = yield* init()
        const first = yield* say(sessionId, "My name is Ada")
        const second = yield* say(sessionId, "What is my name?")
        expect(second.conversationId).toBe(first.conversationId)
        const { requests } = yield* Script
        const asked = (yield* Ref.get(requests)).at(-1)
        expect(JSON.stringify(asked?.prompt)).toContain("My name is Ada")
        const messages = expectData(yield* get(`/api/sdk/messages?${query(sessionId)}`))
        expect(messages.messages.map(({ role, content, author }: Json) => [role, content, author])).toEqual([
          ["user", "My name is Ada", null],
          ["assistant", "Hello", "agent"],
          ["user", "What is my name?", null],
          ["assistant", "Hello", "agent"]
        ])
        expect(messages).toMatchObject({ nextCursor: null, hasMore: false })
      })
    )

    it.effect(
      "messages are listed in pages, oldest first, and a cursor is valid only for its conversation",
      () =>
        Effect.gen(function* () {
          yield* seedDatabase
          const [one, two] = [yield* init(), yield* init()]
          yield* say(one.sessionId, "First")
          yield* say(one.sessionId, "Second")
          yield* say(two.sessionId, "Other")
          const seen: Array<string> = []
          let cursor: string | null = ""
          while (cursor !== null) {
            const more: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`
            const page = expectData(yield* get(`/api/sdk/messages?limit=3&${query(one.sessionId)}${more}`))
            seen.push(...page.messages.map(({ content }: Json) => content))
            if (page.nextCursor !== null) {
              const elsewhere = `/api/sdk/messages?${query(two.sessionId)}&cursor=${encodeURIComponent(page.nextCursor)}`
              expectError(yield* get(elsewhere), 400, "VALIDATION_ERROR")
            }
            cursor = page.nextCursor
          }
          expect(seen).toEqual(["First", "Hello", "Second", "Hello"])
        })
    )

    it.effect("two tabs of a session never create two conversations", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        for (let round = 0; round < 5; round++) {
          const { sessionId } = yield* init()
          const results = yield* Effect.all(
            Array.from({ length: 6 }, (_, tab) => say(sessionId, `Tab ${tab}`)),
            { concurrency: "unbounded" }
          )
          expect(new Set(results.map(({ conversationId }) => conversationId)).size).toBe(1)
          const [{ count } = { count: 0 }] = yield* sql<{ count: number }>`
            select message_count::int as count from conversations where id = ${results[0]?.conversationId}`
          expect(count).toBe(12)
        }
        const [{ count } = { count: 0 }] = yield* sql<{ count: number }>`
          select count(*)::int as count from conversations`
        expect(count).toBe(5)
      })
    )

    it.effect("turns count against the budget of the key, in a session and without one", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        yield* sql`
          insert into budgets (tenant_id, id, key_id, period, limit_nano) values ('ten_1', 'bgt_1', 'key_1', 'day', 1000)`
        yield* sql`update subscriptions set has_budgets = true where tenant_id = 'ten_1'`
        const bill = { model: "one/a", inputTokens: 1, cachedInputTokens: 0, outputTokens: 1, cost: 500 }
        const { reply } = yield* Script
        yield* Ref.set(reply, () =>
          Stream.make<Array<ModelPart>>(
            { _tag: "TextDelta", delta: "Hello" },
            { _tag: "Finish", reason: "stop", inputTokens: 1, outputTokens: 1, bill }
          )
        )
        const { sessionId } = yield* init()
        yield* say(sessionId)
        expect((yield* chat({ message: "Hi" })).status).toBe(200)
        for (const body of [{ sessionId, message: "Hi" }, { message: "Hi" }]) {
          const refused = yield* chat(body)
          expectError(refused, 429, "TURN_LIMIT_EXCEEDED")
          expect(refused.json.error.details).toMatchObject({ budget: { of: "key", period: "day" } })
        }
      })
    )

    it.effect("a closed conversation is followed by a new one", () =>
      Effect.gen(function* () {
        yield* seedDatabase
        const { sessionId } = yield* init()
        const first = yield* say(sessionId)
        yield* stateIs(first.conversationId, "CLOSED")
        const second = yield* say(sessionId)
        expect(second.conversationId).not.toBe(first.conversationId)
        expect(second.endUserId).toBe(first.endUserId)
        const seen = expectData(yield* get(`/api/sdk/conversation?${query(sessionId)}`))
        expect(seen.conversation).toMatchObject({
          id: second.conversationId,
          state: "AI_ACTIVE",
          messageCount: 2
        })
      })
    )

    it.effect("while a human answers, messages are stored once and shown, and the model is not called", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const { endUserId, sessionId } = yield* init()
        const { conversationId } = yield* say(sessionId)
        for (const state of ["HUMAN_REQUESTED", "HUMAN_ACTIVE"]) {
          yield* stateIs(conversationId, state)
          const { headers, status, text } = yield* chat({ sessionId, message: `To a human: ${state}` })
          expect([status, headers.get("x-run-id"), headers.get("x-end-user-id")]).toEqual([
            200,
            null,
            endUserId
          ])
          expect(framesOf(text).map(({ type }) => type)).toEqual(["start", "finish", "data-done"])
          expect(resultOf(text)).toEqual({
            reply: "",
            conversationId,
            endUserId,
            citations: [],
            media: [],
            state
          })
        }
        const { messages } = expectData(yield* get(`/api/sdk/messages?${query(sessionId)}`))
        expect(messages.map(({ content }: Json) => content)).toEqual([
          "Hi",
          "Hello",
          "To a human: HUMAN_REQUESTED",
          "To a human: HUMAN_ACTIVE"
        ])
        const [turns] = yield* sql`select turns::int as turns from tenant_usage`
        expect(turns).toEqual({ turns: 1 })
      })
    )

    it.effect("a turn with persist false continues nothing and stores no message", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const { endUserId, sessionId } = yield* init()
        const { status, text } = yield* chat({ sessionId, message: "Hi", persist: false })
        expect([status, resultOf(text)]).toEqual([
          200,
          { reply: "Hello", endUserId, citations: [], media: [] }
        ])
        expect(yield* sql`select id from conversations`).toEqual([])
      })
    )

    it.effect("a turn that is refused begins no conversation", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        yield* sql`update subscriptions set turns_limit = 0`
        const { sessionId } = yield* init()
        expectError(yield* chat({ sessionId, message: "Hi" }), 429, "TURN_LIMIT_EXCEEDED")
        expect(yield* sql`select id from conversations`).toEqual([])
        const seen = expectData(yield* get(`/api/sdk/conversation?${query(sessionId)}`))
        expect(seen).toEqual({
          conversation: null,
          turn: null,
          realtimeToken: null,
          realtimeUrl: "ws://127.0.0.1/api/realtime"
        })
        const { messages } = expectData(yield* get(`/api/sdk/messages?${query(sessionId)}`))
        expect(messages).toEqual([])
      })
    )

    it.effect(
      "a missing sessionId is 400 where it is required, an unknown one or another agent's is 404",
      () =>
        Effect.gen(function* () {
          yield* seedDatabase
          const { sessionId } = yield* init()
          yield* say(sessionId)
          const routes: ReadonlyArray<(id: string | undefined, key: string) => ReturnType<typeof ask>> = [
            (id, key) => get(`/api/sdk/conversation${id === undefined ? "" : `?${query(id)}`}`, key),
            (id, key) => get(`/api/sdk/messages${id === undefined ? "" : `?${query(id)}`}`, key),
            (id, key) => get(`/api/sdk/attachments/00${id === undefined ? "" : `?${query(id)}`}`, key),
            (id, key) => post("/api/sdk/identify", { sessionId: id, externalEndUserId: "ada" }, key),
            (id, key) => post("/api/sdk/feedback", { sessionId: id, messageId: "msg_1", rating: 1 }, key),
            (id, key) => post("/api/sdk/handoff", { sessionId: id }, key)
          ]
          for (const route of routes) {
            expectError(yield* route(undefined, "spk_chat"), 400, "VALIDATION_ERROR")
            expectError(yield* route("ses_nothing", "spk_chat"), 404, "NOT_FOUND")
            expectError(yield* route(sessionId, "spk_other"), 404, "NOT_FOUND")
          }
          for (const key of ["spk_chat", "spk_other"]) {
            const id = key === "spk_chat" ? "ses_nothing" : sessionId
            expectError(yield* post("/api/sdk/init", { sessionId: id }, key), 404, "NOT_FOUND")
            expectError(yield* post("/api/sdk/voice/start", { sessionId: id }, key), 404, "NOT_FOUND")
            expectError(yield* chat({ sessionId: id, message: "Hi" }, key), 404, "NOT_FOUND")
          }
        })
    )

    it.effect("a file is 503 while the bucket does not answer, and 404 if it is no file of the session", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const artifact = yield* (yield* ArtifactStore).put(Buffer.from("%PDF-1.7"))
        const [session, other] = [yield* init(), yield* init()]
        yield* say(session.sessionId)
        yield* say(other.sessionId)
        const files = [{ artifact, mimeType: "application/pdf", name: "plan.pdf", size: 8 }]
        yield* sql`
          update messages m set attachments = ${JSON.stringify(files)}::jsonb from widget_sessions s
          where s.conversation_id = m.conversation_id and s.end_user_id = ${session.endUserId} and m.position = 1`
        const path = `/api/sdk/attachments/${artifact.replace("sha256:", "")}`
        const found = get(`${path}?${query(session.sessionId)}`)
        expect([(yield* found).status, (yield* found).text]).toEqual([200, "%PDF-1.7"])
        yield* Effect.gen(function* () {
          expectError(yield* found, 503, "SERVICE_UNAVAILABLE")
          expectError(yield* get(`${path}?${query(other.sessionId)}`), 404, "NOT_FOUND")
        }).pipe(duringOutage)
        expect((yield* found).status).toBe(200)
      })
    )

    it.effect("a session ends after 90 days without a request", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const { sessionId } = yield* init()
        yield* sql`update widget_sessions set used_at = now() - interval '89 days'`
        expectData(yield* get(`/api/sdk/conversation?${query(sessionId)}`))
        const [used] = yield* sql`select used_at > now() - interval '1 minute' as fresh from widget_sessions`
        expect(used).toEqual({ fresh: true })
        yield* sql`update widget_sessions set used_at = now() - interval '91 days'`
        expectError(yield* get(`/api/sdk/conversation?${query(sessionId)}`), 404, "NOT_FOUND")
        expectError(yield* chat({ sessionId, message: "Hi" }), 404, "NOT_FOUND")
      })
    )

    it.effect("a message counts as a request of its session, also in a conversation that has begun", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const { sessionId } = yield* init()
        yield* say(sessionId)
        yield* sql`update widget_sessions set used_at = now() - interval '89 days'`
        yield* say(sessionId)
        expect(
          yield* sql`select used_at > now() - interval '1 minute' as fresh from widget_sessions`
        ).toEqual([{ fresh: true }])
      })
    )

    it.effect("ended sessions are deleted, with anonymous end users without messages", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const [silent, spoken, named, fresh] = [
          yield* init(),
          yield* init(),
          yield* init({ externalEndUserId: "ada" }),
          yield* init()
        ]
        yield* say(spoken.sessionId)
        yield* sql`update widget_sessions set used_at = now() - interval '91 days' where end_user_id <> ${fresh.endUserId}`
        yield* (yield* WidgetSessions).prune
        const left = yield* sql<{ id: string }>`select id from end_users`
        expect(new Set(left.map(({ id }) => id))).toEqual(
          new Set([spoken.endUserId, named.endUserId, fresh.endUserId])
        )
        expect(left.map(({ id }) => id)).not.toContain(silent.endUserId)
        expect(yield* sql`select end_user_id as id from widget_sessions`).toEqual([{ id: fresh.endUserId }])
      })
    )

    it.effect("identify gives an anonymous end user the caller's id, with the conversation", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const known = yield* init({ externalEndUserId: " ada " })
        const anonymous = yield* init()
        const { conversationId } = yield* say(anonymous.sessionId)
        const body = { sessionId: anonymous.sessionId, externalEndUserId: "ada" }
        const named = expectData(yield* post("/api/sdk/identify", body))
        expect(named).toEqual({ endUserId: known.endUserId, conversationId })
        expect(expectData(yield* post("/api/sdk/identify", body))).toEqual(named)
        expect((yield* say(anonymous.sessionId)).conversationId).toBe(conversationId)
        const people = yield* sql`select id, external_id from end_users`
        expect(people).toEqual([{ id: known.endUserId, external_id: "ada" }])
        // The name opens nothing that was said before under it.
        expect((yield* init({ sessionId: known.sessionId })).conversationId).toBe(null)
        expectError(yield* post("/api/sdk/identify", { ...body, externalEndUserId: "eve" }), 409, "CONFLICT")
        expectError(
          yield* post("/api/sdk/identify", { ...body, externalEndUserId: "  " }),
          400,
          "VALIDATION_ERROR"
        )
      })
    )

    it.effect("identify leaves one open conversation of a channel if both end users had one", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const known = yield* init({ externalEndUserId: "ada" })
        const anonymous = yield* init()
        const { sessionId } = anonymous
        yield* sql`
          insert into channels (id, tenant_id, agent_id, channel, external_id, access_token)
          select 'chn_1', tenant_id, id, 'whatsapp', '1067', 'sealed' from agents limit 1`
        yield* sql`
          insert into conversations (id, tenant_id, agent_id, end_user_id, channel, channel_id)
          select 'cnv_' || p.id, h.tenant_id, h.agent_id, p.id, 'whatsapp', h.id from end_users p, channels h`
        const named = yield* post("/api/sdk/identify", { sessionId, externalEndUserId: "ada" })
        expect(expectData(named).endUserId).toBe(known.endUserId)
        const states = yield* sql`select state, end_user_id as id from conversations order by state`
        expect(states).toEqual([
          { state: "AI_ACTIVE", id: known.endUserId },
          { state: "CLOSED", id: known.endUserId }
        ])
      })
    )

    it.effect("many sessions that are identified with the same id concurrently become one end user", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const sessions = yield* Effect.all(Array.from({ length: 8 }, () => init()))
        const named = yield* Effect.forEach(
          sessions,
          ({ sessionId }) =>
            Effect.zipRight(
              say(sessionId),
              post("/api/sdk/identify", { sessionId, externalEndUserId: "ada" })
            ),
          { concurrency: "unbounded" }
        )
        expect(new Set(named.map((answer) => expectData(answer).endUserId)).size).toBe(1)
        const [row] = yield* sql`select count(*)::int as people,
          (select count(*)::int from conversations) as conversations from end_users`
        expect(row).toEqual({ people: 1, conversations: 8 })
      })
    )

    it.effect("feedback is stored for replies of the session's conversation, and the last one counts", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const [{ sessionId }, other] = [yield* init(), yield* init()]
        yield* say(sessionId)
        yield* say(other.sessionId)
        const { messages } = expectData(yield* get(`/api/sdk/messages?${query(sessionId)}`))
        const [question, reply] = messages
        const rate = (fields: Readonly<Record<string, unknown>>) =>
          post("/api/sdk/feedback", { sessionId, messageId: reply.id, rating: 1, ...fields })
        const before = [
          yield* counterValue("spoke_ratings_total", "up"),
          yield* counterValue("spoke_ratings_total", "down")
        ]
        expect(expectData(yield* rate({})).feedback).toEqual({
          messageId: reply.id,
          rating: 1,
          comment: null
        })
        const last = { rating: -1, comment: "Wrong floor" }
        expect(expectData(yield* rate(last)).feedback).toEqual({ messageId: reply.id, ...last })
        expect(yield* sql`select rating, comment from message_feedback`).toEqual([last])
        const rated = expectData(yield* get(`/api/sdk/messages?${query(sessionId)}`))
        expect(rated.messages.map(({ rating }: Json) => rating)).toEqual([null, -1])
        expectError(yield* rate({ messageId: question.id }), 404, "NOT_FOUND")
        expectError(yield* rate({ sessionId: other.sessionId }), 404, "NOT_FOUND")
        for (const rating of [0, 2, "1", null]) expectError(yield* rate({ rating }), 400, "VALIDATION_ERROR")
        const after = [
          yield* counterValue("spoke_ratings_total", "up"),
          yield* counterValue("spoke_ratings_total", "down")
        ]
        expect(after).toEqual(before.map((count) => count + 1))
      })
    )

    it.effect("a message without an answer is answered once when it is retried", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const { reply } = yield* Script
        const { sessionId } = yield* init()
        const turnOf = Effect.map(
          get(`/api/sdk/conversation?${query(sessionId)}`),
          (answer) => expectData(answer).turn
        )
        const contents = Effect.map(get(`/api/sdk/messages?${query(sessionId)}`), (answer) =>
          expectData(answer).messages.map(({ content }: Json) => content)
        )
        expect(yield* turnOf).toBe(null)
        yield* Ref.set(reply, () =>
          Stream.fail(new ModelError({ reason: "Rejected", message: "no", retryable: false }))
        )
        const failed = yield* chat({ sessionId, message: "Anyone?" })
        expect(framesOf(failed.text).at(-1)).toEqual({ type: "error", errorText: "TURN_FAILED" })
        const { messageId, status } = yield* turnOf
        expect([status, yield* contents]).toEqual(["failed", ["Anyone?"]])
        // What its process left behind when it stopped: known to have done nothing, as long as the agent has no tools.
        yield* sql`update agent_run_events set payload = '{"code": "PROCESS_STOPPED"}' where type = 'run.failed'`
        expect(yield* turnOf).toEqual({ messageId, status: "lost" })
        yield* sql`
          insert into tools (id, tenant_id, agent_id, name, definition) values ('tol_1', 'ten_1', 'agt_1', 'pay', '{}')`
        expect(yield* turnOf).toEqual({ messageId, status: "failed" })
        yield* sql`delete from tools`
        yield* Ref.set(reply, says("Here."))
        const again = (id: string, own = sessionId) => chat({ sessionId: own, message: "-", retryOf: id })
        const other = yield* init()
        yield* say(other.sessionId)
        expectError(yield* again(messageId, other.sessionId), 404, "NOT_FOUND")
        expectError(yield* again("msg_none"), 404, "NOT_FOUND")
        expectError(yield* chat({ message: "-", retryOf: messageId }), 400, "VALIDATION_ERROR")
        const answers = yield* Effect.all(
          Array.from({ length: 4 }, () => again(messageId)),
          { concurrency: "unbounded" }
        )
        expect(answers.map((answer) => answer.status).toSorted()).toEqual([200, 409, 409, 409])
        expect(yield* contents).toEqual(["Anyone?", "Here."])
        expect(yield* turnOf).toEqual({ messageId, status: "complete" })
        expectError(yield* again(messageId), 409, "CONVERSATION_NOT_ACTIVE")
        const { requests } = yield* Script
        const asked = (yield* Ref.get(requests)).filter(({ question }) => question === "Anyone?").at(-1)
        expect(JSON.stringify(asked?.prompt).split("Anyone?")).toHaveLength(2)
        yield* Ref.set(reply, says("Hello"))
      })
    )

    it.effect("a turn can be followed from its first part by anyone who may chat with its agent", () =>
      Effect.gen(function* () {
        yield* seedDatabase
        const sent = yield* chat({ message: "Hi" }, "spk_traced")
        const path = `/api/v1/chat/stream/${sent.headers.get("x-run-id")}`
        const followed = yield* get(path, "spk_traced")
        expect(resultOf(followed.text)).toEqual(resultOf(sent.text))
        expect(framesOf((yield* get(path)).text).some(({ data }) => data?.payload !== undefined)).toBe(false)
        const asOwn = yield* asUser("agent", "GET", `${path}?agentId=agt_1`)
        expect(resultOf(asOwn.text)).toEqual(resultOf(sent.text))
        expectError(yield* asUser("agent", "GET", path), 400, "VALIDATION_ERROR")
        expectError(yield* asUser("agent", "GET", `${path}?agentId=agt_2`), 404, "NOT_FOUND")
        expectError(yield* get(path, "spk_other"), 404, "NOT_FOUND")
        expectError(yield* get(path, "spk_retrieve"), 403, "FORBIDDEN")
      })
    )

    it.effect("messages of dashboard users are tests, and messages of visitors are not", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const body = { agentId: "agt_1", message: "Does it work?" }
        const tried = yield* asUser("agent", "POST", "/api/v1/chat/stream", { body })
        const { conversationId } = resultOf(tried.text)
        const again = yield* asUser("agent", "POST", "/api/v1/chat/stream", {
          body: { ...body, conversationId }
        })
        expect(resultOf(again.text).conversationId).toBe(conversationId)
        const init = yield* asUser("agent", "POST", "/api/sdk/init", { body: { agentId: "agt_1" } })
        const { sessionId } = expectData(init)
        yield* asUser("agent", "POST", "/api/v1/chat/stream", { body: { ...body, sessionId } })
        yield* chat({ message: "Hi" })
        const rows =
          yield* sql`select channel, count(*)::int as count from conversations group by 1 order by 1`
        expect(rows).toEqual([
          { channel: "test", count: 2 },
          { channel: "widget", count: 1 }
        ])
      })
    )

    it.effect("handoff notifies the customer in the language of the page, from any side", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const { sessionId } = yield* init()
        yield* say(sessionId, "I want to talk to a person")
        yield* post("/api/sdk/handoff", { sessionId, language: "de-AT" })
        const sentence = "Ein Mensch aus unserem Team übernimmt und antwortet hier, sobald es geht."
        const last = Effect.map(get(`/api/sdk/messages?${query(sessionId)}`), (answer) =>
          expectData(answer).messages.at(-1)
        )
        expect(yield* last).toMatchObject({ content: sentence, author: "system", notice: "handoff" })
        // A model that hands over without a word is given the same sentence.
        yield* sql`update messages set author = 'agent' where author = 'system'`
        expect(yield* last).toMatchObject({ content: sentence, author: "agent", notice: "handoff" })
      })
    )

    it.effect("handoff requests a human once, also before the first message, and notifies the customer", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        const { sessionId } = yield* init()
        const before = yield* counterValue("spoke_handoffs_total", "person")
        const asked = expectData(yield* post("/api/sdk/handoff", { sessionId, reason: "Refund" }))
        expect(asked).toMatchObject({
          conversation: { state: "HUMAN_REQUESTED" },
          realtimeToken: expect.any(String)
        })
        const again = expectData(yield* post("/api/sdk/handoff", { sessionId }))
        expect(again.conversation).toEqual(asked.conversation)
        expect(yield* counterValue("spoke_handoffs_total", "person")).toBe(before + 1)
        expect(yield* sql`select handoff_reason from conversations`).toEqual([{ handoff_reason: "Refund" }])
        const { messages } = expectData(yield* get(`/api/sdk/messages?${query(sessionId)}`))
        expect(messages).toMatchObject([{ role: "assistant", author: "system", notice: "handoff" }])
        expect((yield* say(sessionId)).state).toBe("HUMAN_REQUESTED")
      })
    )

    it.effect("handoff before the first message reports the conversation that it begins, once", () =>
      Effect.gen(function* () {
        const sql = yield* seedDatabase
        yield* sql`
          insert into webhook_endpoints (tenant_id, id, url, events, payload, secret)
          values ('ten_1', 'whk_1', 'https://receiver.example', '{conversation.started,handoff.requested}', 'thin', 'sealed')`
        const reported = sql<{ readonly type: string; readonly ids: object }>`
          select type, ids from webhook_deliveries order by seq`
        const { endUserId, sessionId } = yield* init()
        yield* post("/api/sdk/handoff", { sessionId })
        yield* post("/api/sdk/handoff", { sessionId })
        yield* say(sessionId)
        expect(yield* reported).toEqual([
          { type: "conversation.started", ids: { endUserId, channel: "widget" } },
          { type: "handoff.requested", ids: {} }
        ])
        const other = yield* init()
        yield* say(other.sessionId)
        yield* post("/api/sdk/handoff", { sessionId: other.sessionId })
        expect((yield* reported).slice(2).map(({ type }) => type)).toEqual([
          "conversation.started",
          "handoff.requested"
        ])
      })
    )

    it.effect("voice/start creates a session and reports that there is no voice", () =>
      Effect.gen(function* () {
        yield* seedDatabase
        const begun = expectData(yield* post("/api/sdk/voice/start", {}))
        expect(begun).toMatchObject({
          sessionId: expect.stringMatching(/^ses_/),
          voice: null,
          realtimeToken: null
        })
        const again = expectData(yield* post("/api/sdk/voice/start", { sessionId: begun.sessionId }))
        expect(again).toEqual(begun)
      })
    )

    it.effect("the token of a session opens the socket of its conversation", () =>
      Effect.gen(function* () {
        yield* seedDatabase
        const { sessionId } = yield* init()
        yield* say(sessionId)
        const { realtimeToken } = yield* init({ sessionId })
        const { url } = yield* TestServer
        const frames = yield* Effect.promise(
          () =>
            new Promise<ReadonlyArray<Json>>((resolve, reject) => {
              const socket = new WebSocket(
                `${url.replace("http", "ws")}/api/realtime?token=${realtimeToken}&lastMessageId=none`
              )
              const seen: Array<Json> = []
              socket.addEventListener("error", () => reject(new Error("refused")))
              socket.addEventListener("message", ({ data }) => {
                seen.push(JSON.parse(String(data)))
                if (seen.length < 3) return
                socket.close()
                resolve(seen)
              })
            })
        )
        expect(frames.map(({ type }) => type)).toEqual([
          "message.created",
          "message.created",
          "conversation.updated"
        ])
      })
    )
  })
})

eachEngineLive("Who may use the widget's routes", (it) => {
  it.layer(WidgetServer())((it) => {
    it.effect("an agent key with chat is accepted on any plan; org keys and others are 403", () =>
      Effect.gen(function* () {
        yield* seedDatabase
        expectData(yield* post("/api/sdk/init", {}, "spk_chat"))
        for (const path of ["/api/sdk/init", "/api/v1/chat/stream"]) {
          expectError(yield* post(path, { message: "Hi" }, "spk_org"), 403, "FORBIDDEN")
          expectError(yield* post(path, { message: "Hi" }, "spk_retrieve"), 403, "FORBIDDEN")
          expectError(yield* post(path, { message: "Hi" }, "spk_nobody"), 401, "UNAUTHORIZED")
          const { call } = yield* TestServer
          expectError(yield* call("POST", path, { body: { message: "Hi" } }), 401, "UNAUTHORIZED")
        }
      })
    )

    it.effect("a key with allowed origins works only from these, and a preflight is answered", () =>
      Effect.gen(function* () {
        yield* seedDatabase
        const from = (origin: string) =>
          ask("POST", "/api/sdk/init", { body: {}, headers: { origin } }, "spk_page")
        const answer = yield* from("https://shop.example")
        expectData(answer)
        expect(answer.headers.get("access-control-allow-origin")).toBe("*")
        expectError(yield* from("https://evil.example"), 403, "FORBIDDEN")
        expectError(yield* post("/api/sdk/init", {}, "spk_page"), 403, "FORBIDDEN")
        const { call } = yield* TestServer
        const preflight = yield* call("OPTIONS", "/api/v1/chat/stream", {
          headers: {
            origin: "https://shop.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": "x-api-key, content-type"
          }
        })
        expect(preflight.status).toBe(204)
        expect(preflight.headers.get("access-control-allow-headers")).toBe("x-api-key, content-type")
        const exposed = answer.headers.get("access-control-expose-headers")
        for (const name of ["x-request-id", "x-end-user-id"]) expect(exposed).toContain(name)
      })
    )

    it.effect("a dashboard session must name the agent, and needs the role and the page's own origin", () =>
      Effect.gen(function* () {
        yield* seedDatabase
        const body = { agentId: "agt_1" }
        const opened = expectData(yield* asUser("agent", "POST", "/api/sdk/init", { body }))
        expectError(yield* asUser("agent", "POST", "/api/sdk/init", { body: {} }), 400, "VALIDATION_ERROR")
        for (const agentId of ["agt_3", "agt_none"]) {
          expectError(
            yield* asUser("agent", "POST", "/api/sdk/init", { body: { agentId } }),
            404,
            "NOT_FOUND"
          )
        }
        expectError(yield* asUser("viewer", "POST", "/api/sdk/init", { body }), 403, "FORBIDDEN")
        const seen = `/api/sdk/conversation?agentId=agt_1&${query(opened.sessionId)}`
        expectData(yield* asUser("viewer", "GET", seen))
        const elsewhere = { body, headers: { origin: "https://evil.example" } }
        expectError(yield* asUser("agent", "POST", "/api/sdk/init", elsewhere), 403, "FORBIDDEN")
        expectError(yield* asUser("stranger", "POST", "/api/sdk/init", { body }), 401, "UNAUTHORIZED")
      })
    )

    it.effect(
      "session users and keys with trace_read see the trace as operators do, other keys redacted",
      () =>
        Effect.gen(function* () {
          yield* seedDatabase
          const payloads = (text: string) =>
            framesOf(text)
              .filter(({ type }) => type === "data-agent-run-event")
              .filter(({ data }) => data.payload !== undefined).length
          const body = { message: "Hi", agentId: "agt_1" }
          const user = yield* asUser("agent", "POST", "/api/v1/chat/stream", { body })
          expect([user.status, payloads(user.text) > 0]).toEqual([200, true])
          expect(payloads((yield* chat(body, "spk_traced")).text)).toBeGreaterThan(0)
          expect(payloads((yield* chat(body)).text)).toBe(0)
        })
    )

    it.effect("the removed routes answer 410 to every request; other methods are 405", () =>
      Effect.gen(function* () {
        const { call } = yield* TestServer
        for (const path of ["/api/v1/chat", "/api/v1/retrieve"]) {
          const bodies: ReadonlyArray<Options> = [
            {},
            { body: { message: "Hi" } },
            { body: "{broken", headers: { "content-type": "application/json" } },
            { body: new Uint8Array(3_000_000), headers: keyHeader("spk_nobody") },
            { body: new FormData(), headers: keyHeader("spk_chat") }
          ]
          for (const options of bodies) expectError(yield* call("POST", path, options), 410, "GONE")
          for (const method of ["GET", "PUT", "DELETE", "PATCH"]) {
            expectError(yield* call(method, path), 405, "METHOD_NOT_ALLOWED")
          }
        }
      })
    )
  })
})
