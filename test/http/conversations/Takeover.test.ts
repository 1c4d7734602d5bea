/** Humans who answer in place of the agent, over HTTP, beside the agent that answers over the API. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { ArtifactStore, refOf } from "../../../src/capabilities/ArtifactStore.ts"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import type { AgentScope, Role, SessionUser } from "../../../src/domain/accounts/Access.ts"
import { TenantId, UserId } from "../../../src/domain/Ids.ts"
import { SessionAuth } from "../../../src/http/Auth.ts"
import { HostedConversationsApi } from "../../../src/http/hosted/conversations/ConversationsApi.ts"
import { ConversationsHandlers } from "../../../src/http/hosted/conversations/ConversationsHandlers.ts"
import { TakeoverApi } from "../../../src/http/hosted/conversations/TakeoverApi.ts"
import { TakeoverHandlers } from "../../../src/http/hosted/conversations/TakeoverHandlers.ts"
import { AuditTrail } from "../../../src/usecases/accounts/AuditTrail.ts"
import { ChatTurn } from "../../../src/usecases/chat/ChatTurn.ts"
import { Conversations } from "../../../src/usecases/conversations/Conversations.ts"
import { Handoff } from "../../../src/usecases/conversations/Handoff.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { channelOf, ownershipLayer } from "../../usecases/channels/InboundHarness.ts"
import { request, says, Script } from "../../usecases/chat/TurnHarness.ts"
import { inboxView } from "./InboxServer.ts"
import * as TestServer from "../TestServer.ts"

const Surface = HttpApi.make("spoke").add(HostedConversationsApi).add(TakeoverApi)

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
  HttpApiBuilder.api(Surface).pipe(
    Layer.provide(Layer.mergeAll(ConversationsHandlers, TakeoverHandlers)),
    Layer.provide(session),
    Layer.provide(DerivedKeys.layer([Redacted.make("the master secret of these tests, 32 bytes")]))
  )
).pipe(
  Layer.provideMerge(Layer.mergeAll(Conversations.Default, AuditTrail.Default, inboxView)),
  Layer.provideMerge(Layer.merge(ownershipLayer(), SqlAudit.layerSql))
)

const onFreshData = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.zipRight(reset, Effect.provide(effect, server))

const as = ({ tenantId }: AgentScope, role: Role = "agent", userId = UserId.make("mbr_1")) =>
  Effect.sync(() => {
    current.user = { ...current.user, tenantId, role, userId }
  })

const call = (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
  Effect.flatMap(TestServer.TestServer, (test) =>
    test.call(method, path, { headers, ...(body === undefined ? {} : { body }) })
  )

const outcome = ({ json, status }: Effect.Effect.Success<ReturnType<typeof call>>) => [
  status,
  json.error?.code ?? json.data.conversation?.state
]

/** An API conversation with one answered question. */
const talked = Effect.gen(function* () {
  const scope = yield* Fixtures.agent()
  yield* as(scope)
  const chat = yield* ChatTurn
  const { conversationId } = yield* chat.complete(scope, request())
  return { scope, chat, conversationId, path: `/api/conversations/${conversationId}` }
})

eachEngineLive("The dashboard's takeover routes", (it) => {
  it.scoped("lead a conversation through its states, and refuse impossible transitions with 409", () =>
    Effect.gen(function* () {
      const { chat, conversationId, path, scope } = yield* talked
      expect(outcome(yield* call("POST", `${path}/release`))).toEqual([409, "CONFLICT"])
      expect(outcome(yield* call("POST", `${path}/takeover`))).toEqual([200, "HUMAN_ACTIVE"])
      expect(outcome(yield* call("POST", `${path}/takeover`))).toEqual([409, "CONFLICT"])
      const again = chat.complete(scope, request({ conversationId }))
      expect(yield* Effect.flip(again)).toMatchObject({ _tag: "CONVERSATION_NOT_ACTIVE" })
      const said = yield* call("POST", `${path}/messages`, { content: "  Ada here. " })
      expect(outcome(said)).toEqual([201, "HUMAN_ACTIVE"])
      expect(outcome(yield* call("POST", `${path}/release`))).toEqual([200, "AI_ACTIVE"])
      yield* again
      expect(outcome(yield* call("POST", `${path}/messages`, { content: "Me again." }))).toEqual([
        201,
        "HUMAN_ACTIVE"
      ])
      expect(outcome(yield* call("POST", `${path}/close`))).toEqual([200, "CLOSED"])
      for (const act of ["takeover", "release", "close"])
        expect(outcome(yield* call("POST", `${path}/${act}`))).toEqual([409, "CONFLICT"])
      expect(outcome(yield* call("POST", `${path}/messages`, { content: "?" }))).toEqual([409, "CONFLICT"])
      expect(yield* Effect.flip(again)).toMatchObject({ _tag: "CONVERSATION_NOT_ACTIVE" })
      const read = yield* call("GET", path)
      expect(
        read.json.data.messages.map(
          ({ author, content, role }: { author: string; content: string; role: string }) =>
            `${role} ${author}: ${content}`
        )
      ).toEqual([
        "user null: Hello?",
        "assistant agent: Hello",
        "assistant human: Ada here.",
        "user null: Hello?",
        "assistant agent: Hello",
        "assistant human: Me again."
      ])
      expect(read.json.data.messages[2].id).toBe(said.json.data.messageId)
      const sql = yield* SqlClient.SqlClient
      const audited = yield* sql<{ readonly action: string }>`select action from audit_entries order by id`
      expect(audited.map(({ action }) => action)).toEqual([
        "conversation.takeover",
        "conversation.message",
        "conversation.release",
        "conversation.message",
        "conversation.close"
      ])
    }).pipe(onFreshData)
  )

  const png = Uint8Array.from([0x89, ...Buffer.from("PNG\r\n\u001a\n"), 1, 2, 3])
  const gif = Buffer.from("GIF89a and so on")

  const form = (fields: Readonly<Record<string, string>>, ...files: ReadonlyArray<File>) => {
    const made = new FormData()
    for (const [name, value] of Object.entries(fields)) made.append(name, value)
    for (const file of files) made.append("files", file)
    return made
  }

  it.scoped("accept a reply with files as a form, and store them with the message", () =>
    Effect.gen(function* () {
      const { path } = yield* talked
      const picture = new File([png], "plan.png", { type: "image/png" })
      const said = yield* call("POST", `${path}/messages`, form({ content: " Like this. " }, picture))
      expect(outcome(said)).toEqual([201, "HUMAN_ACTIVE"])
      const wordless = yield* call("POST", `${path}/messages`, form({}, picture))
      expect(outcome(wordless)).toEqual([201, "HUMAN_ACTIVE"])
      const stored = { artifact: refOf(png), mimeType: "image/png", name: "plan.png", size: png.length }
      const sql = yield* SqlClient.SqlClient
      expect(
        yield* sql`select content, attachments from messages where author = 'human' order by position`
      ).toEqual([
        { content: "Like this.", attachments: [stored] },
        { content: "[image: plan.png]", attachments: [stored] }
      ])
      expect(yield* sql`select ref from conversation_artifacts`).toEqual([{ ref: refOf(png) }])
      expect(yield* sql`select from artifact_claims`).toEqual([])
      expect(yield* (yield* ArtifactStore).get(refOf(png))).toEqual(Option.some(png))
    }).pipe(onFreshData)
  )

  it.scoped("refuse files as the hosted stream does, and those that the channel does not support", () =>
    Effect.gen(function* () {
      const { conversationId, path, scope } = yield* talked
      const messages = `${path}/messages`
      const refused = (body: FormData) =>
        Effect.map(call("POST", messages, body), ({ json, status }) => [status, json.error?.code])
      const moving = new File([gif], "a.gif", { type: "image/gif" })
      const large = new File([png, new Uint8Array(6 * 1_048_576)], "a.png", { type: "image/png" })
      const text = new File(["text"], "a.txt", { type: "text/plain" })
      expect(yield* refused(form({ content: "Look" }, text))).toEqual([400, "UNSUPPORTED_TYPE"])
      expect(yield* refused(form({}))).toEqual([400, "VALIDATION_ERROR"])
      expect(yield* refused(form({ content: "Look" }, ...Array<File>(11).fill(moving)))).toEqual([
        400,
        "VALIDATION_ERROR"
      ])
      const sql = yield* SqlClient.SqlClient
      const channelId = yield* channelOf(scope)
      yield* sql`update conversations set channel = 'whatsapp', channel_id = ${channelId} where id = ${conversationId}`
      expect(yield* refused(form({}, moving))).toEqual([400, "UNSUPPORTED_ATTACHMENT_TYPE"])
      expect(yield* refused(form({}, large))).toEqual([400, "FILE_TOO_LARGE"])
      expect(yield* sql`select from messages where author = 'human'`).toEqual([])
      expect(yield* sql`select from artifacts`).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped(
    "send a reply once per Idempotency-Key, also if repeats are concurrent or come after the close",
    () =>
      Effect.gen(function* () {
        const { path, scope } = yield* talked
        const send = (content: string, key = "reply-1") =>
          call("POST", `${path}/messages`, { content }, { "idempotency-key": key })
        const first = yield* Effect.forEach(Array.from({ length: 4 }), () => send("Ada here."), {
          concurrency: 4
        })
        expect(first.map(outcome)).toEqual(Array(4).fill([201, "HUMAN_ACTIVE"]))
        expect(new Set(first.map(({ json }) => json.data.messageId)).size).toBe(1)
        expect(outcome(yield* send("Somebody else here."))).toEqual([409, "CONFLICT"])
        expect(outcome(yield* send("Ada here.", "two words"))).toEqual([400, "VALIDATION_ERROR"])
        expect(outcome(yield* send("Ada here.", "reply-2"))).toEqual([201, "HUMAN_ACTIVE"])
        // The key belongs to the user.
        yield* as(scope, "agent", UserId.make("mbr_2"))
        expect(outcome(yield* send("Grace here."))).toEqual([201, "HUMAN_ACTIVE"])
        yield* as(scope)
        expect(outcome(yield* call("POST", `${path}/close`))).toEqual([200, "CLOSED"])
        const late = yield* send("Ada here.")
        expect(outcome(late)).toEqual([201, "CLOSED"])
        expect(late.json.data.messageId).toBe(first[0]?.json.data.messageId)
        expect(outcome(yield* send("Ada here.", "reply-3"))).toEqual([409, "CONFLICT"])
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select content from messages where author = 'human' order by position`).toEqual([
          { content: "Ada here." },
          { content: "Ada here." },
          { content: "Grace here." }
        ])
      }).pipe(onFreshData)
  )

  it.scoped("record a repeat too, because the entry of the first request may be missing", () =>
    Effect.gen(function* () {
      const { path } = yield* talked
      const sql = yield* SqlClient.SqlClient
      const send = call("POST", `${path}/messages`, { content: "Ada here." }, { "idempotency-key": "reply" })
      yield* send
      yield* sql`delete from audit_entries`
      expect(outcome(yield* send)).toEqual([201, "HUMAN_ACTIVE"])
      expect(yield* sql`select action from audit_entries`).toEqual([{ action: "conversation.message" }])
      expect(yield* sql`select content from messages where author = 'human'`).toEqual([
        { content: "Ada here." }
      ])
    }).pipe(onFreshData)
  )

  it.scoped("send a form once per Idempotency-Key, and compare its files", () =>
    Effect.gen(function* () {
      const { path } = yield* talked
      const send = (bytes: Uint8Array) =>
        call(
          "POST",
          `${path}/messages`,
          form(
            { content: "Like this." },
            new File([Uint8Array.from(bytes)], "plan.png", { type: "image/png" })
          ),
          { "idempotency-key": "plan" }
        )
      const first = yield* send(png)
      const repeat = yield* send(png)
      expect([outcome(first), outcome(repeat)]).toEqual(Array(2).fill([201, "HUMAN_ACTIVE"]))
      expect(repeat.json.data.messageId).toBe(first.json.data.messageId)
      expect(outcome(yield* send(Uint8Array.from([...png, 4])))).toEqual([409, "CONFLICT"])
      const sql = yield* SqlClient.SqlClient
      expect(yield* sql`select content from messages where author = 'human'`).toEqual([
        { content: "Like this." }
      ])
      expect(yield* sql`select from artifact_claims`).toEqual([])
    }).pipe(onFreshData)
  )

  it.scoped("find only the tenant's own conversations, and need a message", () =>
    Effect.gen(function* () {
      const { path } = yield* talked
      expect(outcome(yield* call("POST", `${path}/messages`, { content: "  " }))).toEqual([
        400,
        "VALIDATION_ERROR"
      ])
      yield* as(yield* Fixtures.agent(), "owner")
      for (const act of ["takeover", "release", "close"])
        expect(outcome(yield* call("POST", `${path}/${act}`))).toEqual([404, "NOT_FOUND"])
      expect(outcome(yield* call("POST", `${path}/messages`, { content: "Hi" }))).toEqual([404, "NOT_FOUND"])
    }).pipe(onFreshData)
  )

  it.scoped(
    "stop a reply that is being streamed: its client gets TURN_FAILED, and nothing of it is stored",
    () =>
      Effect.gen(function* () {
        const { chat, conversationId, path, scope } = yield* talked
        const { reply } = yield* Script
        const begun = yield* Deferred.make<void>()
        yield* Ref.set(reply, (asked) =>
          Stream.make({ _tag: "TextDelta", delta: "I think " } as const).pipe(
            Stream.concat(Stream.execute(Deferred.succeed(begun, undefined))),
            Stream.concat(Stream.never),
            Stream.concat(says("never")(asked))
          )
        )
        const answering = yield* Effect.fork(
          Effect.either(chat.complete(scope, request({ message: "Why?", conversationId })))
        )
        yield* Deferred.await(begun)
        expect(outcome(yield* call("POST", `${path}/takeover`))).toEqual([200, "HUMAN_ACTIVE"])
        const ended = yield* Fiber.join(answering)
        expect(Either.isLeft(ended) ? ended.left._tag : ended.right).toBe("TURN_FAILED")
        const read = yield* call("GET", path)
        expect(read.json.data.messages.map(({ content }: { content: string }) => content)).toEqual([
          "Hello?",
          "Hello",
          "Why?"
        ])
        const sql = yield* SqlClient.SqlClient
        const failed =
          yield* sql`select payload ->> 'code' as code from agent_run_events where type = 'run.failed'`
        expect(failed).toEqual([{ code: "TAKEN_OVER" }])
      }).pipe(onFreshData)
  )

  it.scoped("show why a human was requested, and notify the customer once", () =>
    Effect.gen(function* () {
      const { conversationId, path, scope } = yield* talked
      if (conversationId === undefined) return expect.unreachable()
      const handoff = yield* Handoff
      expect(
        yield* handoff.request(scope, conversationId, { by: "person", reason: "Pressed the button" })
      ).toBe(true)
      expect(yield* handoff.request(scope, conversationId, { by: "person", reason: "Pressed again" })).toBe(
        false
      )
      const read = yield* call("GET", path)
      expect(read.json.data).toMatchObject({ state: "HUMAN_REQUESTED", handoffReason: "Pressed the button" })
      expect(read.json.data.messages.slice(2)).toMatchObject([
        { role: "assistant", author: "system", content: expect.stringContaining("A member of our team") }
      ])
      expect(outcome(yield* call("POST", `${path}/takeover`))).toEqual([200, "HUMAN_ACTIVE"])
    }).pipe(onFreshData)
  )
})
