/** Outgoing events: stored with the change that they report, and sent at least once, in order, until an endpoint accepts them. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Webhook as Verifier } from "standardwebhooks"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import { JobFailure, policies, type QueueJob } from "../../../src/capabilities/JobQueue.ts"
import { Mailer } from "../../../src/capabilities/Mailer.ts"
import {
  OutboundHttp,
  OutboundHttpError,
  type OutboundRequest,
  type OutboundResponse
} from "../../../src/capabilities/OutboundHttp.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import type { ReadScope } from "../../../src/domain/accounts/Access.ts"
import type { EventType, WebhookId } from "../../../src/domain/events/Webhook.ts"
import { type ConversationId, MessageId, newId, QueueJobId } from "../../../src/domain/Ids.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { AgentVersionStore } from "../../../src/store/agents/AgentVersions.ts"
import { WidgetMessageStore } from "../../../src/store/chat/WidgetMessages.ts"
import { OutgoingMailStore } from "../../../src/store/accounts/OutgoingMails.ts"
import { ProcessLeases } from "../../../src/store/chat/ProcessLeases.ts"
import { Turns, type TurnStart } from "../../../src/store/chat/Turns.ts"
import { EndUserStore } from "../../../src/store/conversations/EndUsers.ts"
import { ConversationStates } from "../../../src/store/conversations/ConversationStates.ts"
import { WebhookDeliveryStore } from "../../../src/store/events/WebhookDeliveries.ts"
import { WebhookEndpointStore } from "../../../src/store/events/WebhookEndpoints.ts"
import { WebhookListenerStore } from "../../../src/store/events/WebhookListeners.ts"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { WebhookDelivery } from "../../../src/usecases/events/WebhookDelivery.ts"
import { WebhookEndpoints } from "../../../src/usecases/events/WebhookEndpoints.ts"
import { WebhookListeners } from "../../../src/usecases/events/WebhookListeners.ts"
import { crossing } from "../../store/Crossing.ts"
import * as Fixtures from "../../Fixtures.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"

type Receiver = (request: OutboundRequest) => Effect.Effect<OutboundResponse, OutboundHttpError>

const answering =
  (status: number, text = ""): Receiver =>
  ({ url }) =>
    Effect.succeed({ url, status, headers: {}, body: new TextEncoder().encode(text) })

const silent: Receiver = () => new OutboundHttpError({ reason: "TimedOut", message: "No answer." })

let calls: Array<OutboundRequest> = []
let mails: Array<string> = []
/** What the mail server does before it takes a mail. */
let mailing: Effect.Effect<void> = Effect.void
/** What the receiver says to each call; then it takes everything. */
let answers: Array<Receiver> = []

const masterSecret = "a master secret of these tests, long enough"

const outside = Layer.mergeAll(
  Layer.succeed(OutboundHttp, {
    fetch: (request) =>
      Effect.suspend(() => {
        calls.push(request)
        return (answers.shift() ?? answering(204))(request)
      })
  }),
  Layer.succeed(Mailer, {
    configured: true,
    send: ({ to }) =>
      Effect.suspend(() =>
        Effect.map(mailing, () => {
          mails.push(to)
          return { messageId: to }
        })
      )
  })
)

const webhooks = Layer.mergeAll(
  WebhookDelivery.Default,
  WebhookEndpoints.Default,
  WebhookListeners.Default
).pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      Turns.Default,
      ProcessLeases.Default,
      ConversationStates.Default,
      IngestionJobStore.Default,
      AgentStore.Default,
      AgentVersionStore.Default,
      WidgetMessageStore.Default,
      WebhookDeliveryStore.Default,
      WebhookEndpointStore.Default,
      WebhookListenerStore.Default,
      OutgoingMailStore.Default,
      EndUserStore.Default,
      SqlAudit.layerSql,
      outside,
      DerivedKeys.layer([Redacted.make(masterSecret)])
    )
  )
)

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.sync(() => {
    calls = []
    answers = []
    mails = []
    mailing = Effect.void
  }).pipe(Effect.zipRight(reset), Effect.zipRight(Effect.provide(test, webhooks)))

const all: ReadonlyArray<EventType> = [
  "conversation.started",
  "turn.settled",
  "handoff.requested",
  "handoff.taken",
  "message.sent",
  "source.ready",
  "source.failed",
  "feedback.given",
  "version.published",
  "budget.near",
  "channel.failing",
  "channel.recovered",
  "gap.found"
]

const url = "https://receiver.example/spoke"

const endpoint = (scope: ReadScope, events = all, payload: "thin" | "full" = "thin") =>
  Effect.flatMap(WebhookEndpoints, (endpoints) => endpoints.create(scope, { url, events, payload })).pipe(
    Effect.map(({ secret, webhook }) => ({ id: webhook.id, secret: Redacted.value(secret) }))
  )

const begin = (scope: ReadScope, conversation?: ConversationId) =>
  Effect.gen(function* () {
    const conversationId = conversation ?? (yield* newId.conversation)
    const opening: TurnStart = {
      target: conversation === undefined ? { _tag: "Anonymous" } : { _tag: "Conversation", id: conversation },
      persist: true,
      channel: "api",
      instanceId: "test",
      runId: yield* newId.run,
      endUserId: yield* newId.endUser,
      conversationId,
      userMessageId: yield* newId.message,
      message: "Where is my order?",
      startedAt: yield* DateTime.now,
      startedLabel: "Started",
      timeout: "1 minute"
    }
    yield* (yield* Turns).begin(scope, opening)
    return opening
  })

const settle = (scope: ReadScope, { runId }: TurnStart, handoff?: string) =>
  Effect.gen(function* () {
    const turns = yield* Turns
    const reply = { id: yield* newId.message, content: "It left yesterday.", citations: [] }
    const settlement = { runId, counted: true, inputTokens: 1, outputTokens: 1, reply, handoff, events: [] }
    return yield* turns.settle(scope, settlement)
  })

/** A turn from its beginning to its end. */
const turn = (scope: ReadScope, conversation?: ConversationId) =>
  Effect.tap(begin(scope, conversation), (opening) => settle(scope, opening))

const deliveries = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{
    readonly eventId: string
    readonly type: string
    readonly status: string
    readonly attempts: number
  }>`
    select event_id as "eventId", type, status, attempts from webhook_deliveries order by seq`
)

/** The jobs as a worker would take them, in their order. */
const jobs = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly id: string; readonly payload: QueueJob["payload"]; readonly serialKey: string }>`
    select id, payload, serial_key as "serialKey" from queue_jobs
    where queue = 'webhook-outbound' and state = 'waiting' order by seq`
)

const run = (payload: QueueJob["payload"]) =>
  Effect.flatMap(WebhookDelivery, ({ process }) =>
    process({
      id: QueueJobId.make("qjb_1"),
      queue: "webhook-outbound",
      payload,
      attempt: 1,
      lastAttempt: false
    })
  )

/** One attempt of every job that there is; those that fail are to be repeated. */
const attemptAll = Effect.flatMap(jobs, (found) =>
  Effect.forEach(found, ({ payload }) => Effect.exit(run(payload)))
)

const bodyOf = (call: OutboundRequest | undefined) => JSON.parse(String(call?.body))

eachEngineLive("Webhook events", (it, engine) => {
  it.effect("are written with the turn that they report, with the same id at all endpoints", () =>
    onFreshData(
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const stranger = yield* Fixtures.agent()
        yield* endpoint(scope)
        yield* endpoint(scope, ["turn.settled"])
        yield* endpoint(stranger)
        const { conversationId } = yield* turn(scope)
        const found = yield* deliveries
        expect(found.map(({ type }) => type)).toEqual([
          "conversation.started",
          "turn.settled",
          "turn.settled"
        ])
        expect(new Set(found.map(({ eventId }) => eventId)).size).toBe(2)
        yield* turn(scope, conversationId)
        expect((yield* deliveries).map(({ type }) => type).slice(3)).toEqual(["turn.settled", "turn.settled"])
        expect((yield* jobs).map(({ serialKey }) => serialKey.split(":")[1])).toEqual(
          Array.from({ length: 5 }, () => conversationId)
        )
      })
    )
  )

  it.effect(
    "do not report an imported conversation as begun, whether an agent or a human answers it first",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const scope = yield* Fixtures.agent()
          const { agentId, tenantId } = scope
          yield* endpoint(scope)
          yield* sql`insert into end_users (id, tenant_id) values ('usr_1', ${tenantId})`
          const ids = [yield* newId.conversation, yield* newId.conversation] as const
          for (const id of ids)
            yield* sql`
            insert into conversations (id, tenant_id, agent_id, end_user_id, channel, import_key)
            values (${id}, ${tenantId}, ${agentId}, 'usr_1', 'api', ${id})`
          yield* turn(scope, ids[0])
          const states = yield* ConversationStates
          yield* states.change(scope, ids[1], {
            from: ["AI_ACTIVE"],
            to: "HUMAN_ACTIVE",
            unanswered: "human"
          })
          expect((yield* deliveries).map(({ type }) => type)).toEqual(["turn.settled", "handoff.taken"])
        })
      )
  )

  it.effect(
    "are not written without a subscriber: no endpoint, another type, a disabled one, a rolled back transaction",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const scope = yield* Fixtures.agent()
          yield* turn(scope)
          yield* endpoint(scope, ["source.ready"])
          const { id } = yield* endpoint(scope)
          yield* (yield* WebhookEndpoints).patch(scope, id, { status: "disabled" })
          yield* turn(scope)
          expect(yield* deliveries).toEqual([])
          yield* (yield* WebhookEndpoints).patch(scope, id, { status: "active" })
          yield* sql.withTransaction(Effect.zipRight(turn(scope), Effect.fail("undone"))).pipe(Effect.ignore)
          expect([...(yield* deliveries), ...(yield* jobs)]).toEqual([])
        })
      )
  )

  it.effect("keep no answer of a receiver that comes after the person was erased", () =>
    onFreshData(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const people = yield* EndUserStore
        const scope = yield* Fixtures.agent()
        const { id } = yield* endpoint(scope, ["turn.settled"], "full")
        const { endUserId } = yield* turn(scope)
        const echo: Receiver = (request) =>
          answering(answers.length === 0 ? 200 : 500, String(request.body))(request)
        const erasing: Receiver = (request) =>
          Effect.zipRight(Effect.orDie(people.erase(scope, endUserId, () => Effect.void)), echo(request))
        answers = [echo, erasing, echo]
        const kept = sql<{ readonly text: string | null }>`
          select answer_text as text from webhook_deliveries where endpoint_id = ${id}`
        yield* attemptAll
        expect((yield* kept)[0]?.text).toContain("Where is my order?")
        yield* attemptAll
        expect(yield* kept).toEqual([{ text: null }])
        yield* attemptAll
        expect(yield* kept).toEqual([{ text: null }])
      })
    )
  )

  // The embedded database has one connection: nothing waits there.
  it.effect.skipIf(engine === "embedded")("that were accepted are not sent again after a deadlock", () =>
    onFreshData(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        yield* endpoint(scope, ["turn.settled"])
        yield* turn(scope)
        answers = [answering(500)]
        yield* attemptAll
        // As the deletion of the agent does.
        yield* crossing(
          {
            first: sql`select from webhook_deliveries where tenant_id = ${scope.tenantId} for update`,
            second: sql`select from conversations where tenant_id = ${scope.tenantId} for update`,
            waiting: "set failures = 0"
          },
          attemptAll
        )
        yield* attemptAll
        expect(calls).toHaveLength(2)
        expect(yield* sql`select status, attempts from webhook_deliveries`).toEqual([
          { status: "delivered", attempts: 2 }
        ])
      })
    )
  )

  it.effect.skipIf(engine === "embedded")("that were refused are counted once after a deadlock", () =>
    onFreshData(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        yield* endpoint(scope, ["turn.settled"])
        yield* turn(scope)
        answers = [answering(500)]
        // As the deletion of the agent does, while the failed call holds the webhook.
        yield* crossing(
          {
            first: sql`select from webhook_deliveries where tenant_id = ${scope.tenantId} for update`,
            second: sql`select from webhook_endpoints where tenant_id = ${scope.tenantId} for update`,
            waiting: "set failures = failures + 1"
          },
          attemptAll
        )
        expect(calls).toHaveLength(1)
        expect(yield* sql`select failures from webhook_endpoints`).toEqual([{ failures: 1 }])
        expect(yield* sql`select status, attempts, answer_status from webhook_deliveries`).toEqual([
          { status: "pending", attempts: 1, answer_status: 500 }
        ])
      })
    )
  )

  it.effect(
    "that wait while the webhook's secret and the master secret are rotated are sent and signed",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const scope = yield* Fixtures.agent()
          const { id, secret } = yield* endpoint(scope, ["turn.settled"])
          yield* turn(scope)
          answers = [silent]
          yield* attemptAll
          const rotated = Redacted.value((yield* (yield* WebhookEndpoints).rotate(scope, id)).secret)
          // The next process has another master secret, and the earlier one as well.
          const masters = DerivedKeys.layer([
            Redacted.make("the next master secret of these tests, long enough"),
            Redacted.make(masterSecret)
          ])
          yield* attemptAll.pipe(
            Effect.provide(Layer.fresh(WebhookDelivery.Default).pipe(Layer.provide(masters)))
          )
          for (const each of [secret, rotated])
            new Verifier(each).verify(String(calls[1]?.body), { ...calls[1]?.headers })
          expect(yield* deliveries).toMatchObject([{ status: "delivered", attempts: 2 }])
        })
      )
  )

  it.effect("report a handoff after its turn, a takeover, a human's messages, and sources", () =>
    onFreshData(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        yield* endpoint(scope)
        const opening = yield* begin(scope)
        yield* settle(scope, opening, "They ask for a person")
        const states = yield* ConversationStates
        yield* states.change(scope, opening.conversationId, {
          from: ["HUMAN_REQUESTED"],
          to: "HUMAN_ACTIVE",
          unanswered: "human"
        })
        yield* states.addMessage(scope, opening.conversationId, {
          id: yield* newId.message,
          content: "Hello, I am Ada.",
          author: "human",
          userId: null,
          attachments: []
        })
        const sourceId = yield* newId.source
        yield* sql`
          insert into sources (id, tenant_id, agent_id, type, name, config)
          values (${sourceId}, ${scope.tenantId}, ${scope.agentId}, 'URL', 'Handbook', '{}')`
        const ingestion = yield* IngestionJobStore
        const jobId = yield* newId.ingestionJob
        yield* ingestion.insert(scope, { id: jobId, sourceId, type: "INGEST" })
        yield* ingestion.fail(yield* Effect.flatten(ingestion.task(scope, jobId)), "It is gone.")
        yield* attemptAll
        expect(calls.map((call) => bodyOf(call).type)).toEqual([
          "conversation.started",
          "turn.settled",
          "handoff.requested",
          "handoff.taken",
          "message.sent",
          "source.failed"
        ])
        expect(bodyOf(calls[5]).data).toEqual({ agentId: scope.agentId, sourceId, ingestionJobId: jobId })
      })
    )
  )

  it.effect("report each rating of a reply, with its comment if the endpoint wants full payloads", () =>
    onFreshData(
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        yield* endpoint(scope, ["feedback.given"])
        yield* endpoint(scope, ["feedback.given"], "full")
        const opening = yield* begin(scope)
        yield* settle(scope, opening)
        const sql = yield* SqlClient.SqlClient
        const [reply] = yield* sql<{ readonly id: string }>`select id from messages where role = 'assistant'`
        const messageId = MessageId.make(reply?.id ?? "")
        const messages = yield* WidgetMessageStore
        for (const rating of [1, -1] as const) {
          yield* messages.rate(scope, opening.conversationId, { messageId, rating, comment: "Thank you" })
        }
        yield* messages.rate(scope, opening.conversationId, { messageId: yield* newId.message, rating: 1 })
        yield* attemptAll
        const ids = { agentId: scope.agentId, conversationId: opening.conversationId, messageId }
        const given = calls.map((call) => bodyOf(call).data)
        expect(given.filter((data) => data.comment === undefined)).toEqual([
          { ...ids, rating: 1 },
          { ...ids, rating: -1 }
        ])
        expect(given.filter((data) => data.comment === "Thank you")).toHaveLength(2)
        expect(new Set(calls.map((call) => call.headers?.["webhook-id"])).size).toBe(2)
      })
    )
  )

  it.effect("report each published version, and no draft", () =>
    onFreshData(
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        yield* endpoint(scope, ["version.published"])
        const agents = yield* AgentStore
        const made = { from: null, note: null, author: null }
        for (const [instructions, publish] of [
          ["Two.", true],
          ["Three.", false]
        ] as const) {
          yield* agents.update(scope, scope.agentId, { ...made, changes: { instructions }, publish })
        }
        const versions = yield* AgentVersionStore
        for (const version of [3, 2, 3]) yield* versions.publish(scope, scope.agentId, version)
        yield* attemptAll
        expect(calls.map((call) => bodyOf(call).data)).toEqual(
          [2, 3, 2, 3].map((version) => ({ agentId: scope.agentId, version }))
        )
      })
    )
  )

  it.effect("report a turn whose process died", () =>
    onFreshData(
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        yield* endpoint(scope, ["turn.settled"])
        const { conversationId, runId } = yield* begin(scope)
        // Its process has never renewed a lease.
        expect(yield* (yield* ProcessLeases).sweep).toBe(1)
        yield* attemptAll
        expect(bodyOf(calls[0]).data).toEqual({
          agentId: scope.agentId,
          conversationId,
          runId,
          messageId: null,
          status: "failed"
        })
      })
    )
  )

  it.effect(
    "are signed by both secrets for a day after a rotation, and verified by the convention's own library",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const scope = yield* Fixtures.agent()
          const { id, secret } = yield* endpoint(scope, ["turn.settled"])
          expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
          const rotated = Redacted.value((yield* (yield* WebhookEndpoints).rotate(scope, id)).secret)
          yield* turn(scope)
          yield* attemptAll
          yield* sql`update webhook_endpoints set previous_until = now()`
          yield* turn(scope)
          yield* attemptAll
          const verified = (of: string, call: OutboundRequest | undefined) =>
            Effect.exit(Effect.try(() => new Verifier(of).verify(String(call?.body), { ...call?.headers })))
          for (const of of [secret, rotated]) {
            const verdict = yield* verified(of, calls[0])
            expect(Exit.isSuccess(verdict) && verdict.value).toMatchObject({ type: "turn.settled" })
          }
          const [first, second] = [yield* verified(secret, calls[1]), yield* verified(rotated, calls[1])]
          expect([Exit.isSuccess(first), Exit.isSuccess(second)]).toEqual([false, true])
          const rows = yield* sql<
            Record<string, string>
          >`select secret, previous_secret from webhook_endpoints`
          expect(JSON.stringify(rows)).not.toContain("whsec_")
        })
      )
  )

  it.effect("are thin or full as configured, and full ones contain nothing of an erased end user", () =>
    onFreshData(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        yield* endpoint(scope, ["turn.settled"])
        yield* endpoint(scope, ["turn.settled"], "full")
        yield* turn(scope)
        yield* attemptAll
        // Endpoints of one event have no order among each other.
        const sent: ReadonlyArray<Record<string, unknown>> = calls.map((call) => bodyOf(call).data)
        expect(sent).toHaveLength(2)
        expect(sent.filter((data) => "reply" in data || "message" in data)).toMatchObject([
          { message: "Where is my order?", reply: "It left yesterday.", citations: [] }
        ])
        yield* turn(scope)
        yield* sql`delete from conversations`
        yield* attemptAll
        expect(calls.slice(2).map(({ body }) => /order|yesterday/.test(String(body)))).toEqual([false, false])
      })
    )
  )

  it.effect("are sent again with the same id after every kind of failure, until they are accepted", () =>
    onFreshData(
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        yield* endpoint(scope, ["turn.settled"])
        yield* turn(scope)
        const redirected: Receiver = () =>
          new OutboundHttpError({ reason: "TooManyRedirects", message: "It redirects." })
        answers = [silent, redirected, answering(500, "Down."), answering(302)]
        const exits = [yield* attemptAll, yield* attemptAll, yield* attemptAll, yield* attemptAll].flat()
        const waits = exits.map((exit) =>
          Exit.isFailure(exit) && exit.cause._tag === "Fail" && exit.cause.error instanceof JobFailure
            ? exit.cause.error.retryAfter
            : undefined
        )
        expect(waits.every((wait) => wait !== undefined)).toBe(true)
        expect((yield* deliveries)[0]).toMatchObject({ status: "pending", attempts: 4 })
        yield* attemptAll
        expect((yield* deliveries)[0]).toMatchObject({ status: "delivered", attempts: 5 })
        expect(new Set(calls.map(({ headers }) => headers?.["webhook-id"])).size).toBe(1)
        expect(calls.every(({ maxRedirects }) => maxRedirects === 0)).toBe(true)
        yield* attemptAll
        expect(calls.length).toBe(5)
      })
    )
  )

  it.effect("of an attempt that is interrupted before, during or after its call are not lost", () =>
    onFreshData(
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        yield* endpoint(scope, ["turn.settled"])
        yield* turn(scope)
        const store = yield* WebhookDeliveryStore
        const [job] = yield* jobs
        const told = (job?.payload ?? {}) as { readonly eventId: string; readonly endpointId: WebhookId }
        const key = { ...told, tenantId: scope.tenantId }
        // Taken, and then the process died.
        yield* store.take(key)
        expect((yield* deliveries)[0]).toMatchObject({ status: "pending", attempts: 0 })
        // Died while the receiver was answering, and before its answer was written.
        answers = [() => Effect.interrupt]
        expect(Exit.isInterrupted((yield* attemptAll)[0] ?? Exit.void)).toBe(true)
        expect((yield* deliveries)[0]).toMatchObject({ status: "pending", attempts: 0 })
        yield* attemptAll
        expect((yield* deliveries)[0]).toMatchObject({ status: "delivered", attempts: 1 })
        const [lost, again] = calls.map(({ headers }) => headers?.["webhook-id"])
        expect([lost, again]).toEqual([key.eventId, key.eventId])
        // Stored, and then the job was lost: its repetition sends no request.
        yield* attemptAll
        expect(calls.length).toBe(2)
      })
    )
  )

  it.effect(
    "an endpoint that answers 410 is disabled at once, with an audit entry and a mail to the owners",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const scope = yield* Fixtures.agent()
          yield* sql`
          insert into users (id, tenant_id, email, password_hash, role)
          values ('mbr_1', ${scope.tenantId}, 'ada@example.com', 'x', 'owner')`
          const { id } = yield* endpoint(scope, ["turn.settled"])
          yield* turn(scope)
          yield* turn(scope)
          answers = [answering(410)]
          yield* attemptAll
          expect(calls.length).toBe(1)
          expect((yield* deliveries).map(({ status }) => status)).toEqual(["failed", "cancelled"])
          expect(yield* (yield* WebhookEndpoints).find(scope, id)).toMatchObject({
            status: "disabled",
            disabledReason: "gone"
          })
          const entries = yield* sql`select action, target, actor_type as actor from audit_entries`
          expect(entries).toEqual([{ action: "webhook.disable", target: id, actor: "service" }])
          expect(mails).toEqual(["ada@example.com"])
        })
      )
  )

  it.effect(
    "the mails of an attempt that ended before it had sent them are sent when its job is repeated",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const scope = yield* Fixtures.agent()
          yield* sql`
          insert into users (id, tenant_id, email, password_hash, role)
          values ('mbr_1', ${scope.tenantId}, 'ada@example.com', 'x', 'owner'),
            ('mbr_2', ${scope.tenantId}, 'eve@example.com', 'x', 'owner')`
          yield* endpoint(scope, ["turn.settled"])
          yield* turn(scope)
          yield* turn(scope)
          answers = [answering(410)]
          const [job] = yield* jobs
          if (job === undefined) return expect.unreachable()
          // The worker is killed while it sends the first mail.
          mailing = Effect.interrupt
          expect(Exit.isInterrupted(yield* Effect.exit(run(job.payload)))).toBe(true)
          const stored = yield* sql`select recipient, status from email_logs order by recipient`
          expect(stored).toEqual([
            { recipient: "ada@example.com", status: "queued" },
            { recipient: "eve@example.com", status: "queued" }
          ])
          mailing = Effect.void
          yield* attemptAll
          yield* attemptAll
          expect(calls.length).toBe(1)
          expect(mails.toSorted()).toEqual(["ada@example.com", "eve@example.com"])
          expect(yield* sql`select distinct status from email_logs`).toEqual([{ status: "sent" }])
        })
      )
  )

  it.effect(
    "an attempt that ends between the answer 410 and the disabling of its endpoint is made again",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const scope = yield* Fixtures.agent()
          const { id } = yield* endpoint(scope, ["turn.settled"])
          yield* turn(scope)
          answers = [answering(410), answering(410)]
          // Without its audit entry the endpoint is not disabled.
          yield* sql`alter table audit_entries rename to audit_entries_away`
          const [first] = yield* Effect.ensuring(
            attemptAll,
            Effect.orDie(sql`alter table audit_entries_away rename to audit_entries`)
          )
          expect(Exit.isFailure(first ?? Exit.void)).toBe(true)
          expect(yield* deliveries).toMatchObject([{ status: "pending", attempts: 0 }])
          expect((yield* (yield* WebhookEndpoints).find(scope, id)).status).toBe("active")
          yield* attemptAll
          expect(yield* deliveries).toMatchObject([{ status: "failed", attempts: 1 }])
          expect((yield* (yield* WebhookEndpoints).find(scope, id)).disabledReason).toBe("gone")
        })
      )
  )

  it.effect(
    "an answer of the previous address does not disable an endpoint, and its event is sent to the new one",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const scope = yield* Fixtures.agent()
          const { id } = yield* endpoint(scope, ["turn.settled"])
          yield* turn(scope)
          const moved = `${url}/moved`
          answers = [
            (request) =>
              Effect.zipRight(
                Effect.orDie(sql`update webhook_endpoints set url = ${moved} where id = ${id}`),
                answering(410)(request)
              )
          ]
          yield* attemptAll
          expect(yield* (yield* WebhookEndpoints).find(scope, id)).toMatchObject({
            status: "active",
            failingSince: null
          })
          expect(yield* deliveries).toMatchObject([{ status: "pending", attempts: 1 }])
          yield* attemptAll
          expect(calls.map((call) => call.url)).toEqual([url, moved])
          expect(yield* deliveries).toMatchObject([{ status: "delivered", attempts: 2 }])
        })
      )
  )

  it.effect(
    "an endpoint that has failed for three days is disabled; a replay sends failed events with their ids",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const scope = yield* Fixtures.agent()
          const { id } = yield* endpoint(scope, ["turn.settled"])
          yield* turn(scope)
          yield* turn(scope)
          answers = [answering(500), answering(500), answering(500)]
          yield* attemptAll
          yield* sql`update webhook_endpoints set failing_since = now() - interval '73 hours'`
          yield* sql`update webhook_deliveries set pending_since = now() - interval '73 hours'`
          yield* attemptAll
          expect((yield* deliveries).map(({ status }) => status)).toEqual(["failed", "cancelled"])
          const endpoints = yield* WebhookEndpoints
          expect(yield* endpoints.find(scope, id)).toMatchObject({
            status: "disabled",
            disabledReason: "failing"
          })
          const range = { from: DateTime.unsafeMake("2020-01-01T00:00:00Z") }
          expect((yield* Effect.flip(endpoints.replay(scope, id, range)))._tag).toBe("CONFLICT")
          yield* endpoints.patch(scope, id, { status: "active" })
          yield* sql`delete from queue_jobs`
          expect(yield* endpoints.replay(scope, id, range)).toEqual({ replayed: 2, nextFrom: null })
          calls = []
          yield* attemptAll
          expect(calls.map(({ headers }) => headers?.["webhook-id"])).toEqual(
            (yield* deliveries).map(({ eventId }) => eventId)
          )
          expect((yield* deliveries).map(({ status }) => status)).toEqual(["delivered", "delivered"])
        })
      )
  )

  it.effect(
    "time in which no endpoint was called, because no worker ran, does not disable one that failed before",
    () =>
      onFreshData(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const scope = yield* Fixtures.agent()
          const { id } = yield* endpoint(scope, ["turn.settled"])
          yield* turn(scope)
          yield* turn(scope)
          answers = Array.from({ length: 4 }, () => silent)
          yield* attemptAll
          yield* sql`update webhook_endpoints set failing_since = failing_since - interval '73 hours'`
          yield* sql`
          update webhook_deliveries set pending_since = pending_since - interval '73 hours',
            attempted_at = attempted_at - interval '73 hours'`
          yield* attemptAll
          expect(yield* (yield* WebhookEndpoints).find(scope, id)).toMatchObject({ status: "active" })
          expect((yield* deliveries).map(({ status }) => status)).toEqual(["pending", "pending"])
          yield* attemptAll
          expect((yield* deliveries).map(({ status }) => status)).toEqual(["delivered", "delivered"])
        })
      )
  )

  it.effect("a failing endpoint is called by one delivery at a time, and by all after it has recovered", () =>
    onFreshData(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        yield* endpoint(scope, ["turn.settled"])
        for (let count = 0; count < 8; count++) yield* turn(scope)
        answers = Array.from({ length: 8 }, () => silent)
        yield* attemptAll
        expect(calls.length).toBe(5)
        yield* attemptAll
        expect(calls.length).toBe(5)
        yield* sql`update webhook_endpoints set retry_at = now()`
        yield* sql`update queue_jobs set run_at = now() + interval '1 hour'`
        yield* attemptAll
        expect(calls.length).toBe(6)
        answers = []
        yield* sql`update webhook_endpoints set retry_at = now()`
        yield* attemptAll
        expect((yield* deliveries).every(({ status }) => status === "delivered")).toBe(true)
        const late = yield* sql`select id from queue_jobs where run_at > now()`
        expect(late).toEqual([])
      })
    )
  )

  it.effect("are deleted after a week unless they still wait; a test event is for one endpoint only", () =>
    onFreshData(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        const { id } = yield* endpoint(scope)
        yield* endpoint(scope)
        const eventId = yield* (yield* WebhookEndpoints).test(scope, id)
        yield* attemptAll
        expect(calls.map((call) => [call.headers?.["webhook-id"], bodyOf(call).type])).toEqual([
          [eventId, "webhook.test"]
        ])
        yield* turn(scope)
        yield* sql`update webhook_deliveries set created_at = now() - interval '8 days'`
        expect(yield* (yield* WebhookDelivery).sweep).toBe(false)
        expect(new Set((yield* deliveries).map(({ status }) => status))).toEqual(new Set(["pending"]))
        yield* sql`delete from tenants`
        expect(yield* deliveries).toEqual([])
        expect(yield* attemptAll).toSatisfy((exits: ReadonlyArray<Exit.Exit<void>>) =>
          exits.every(Exit.isSuccess)
        )
        expect(policies["webhook-outbound"].attempts).toBeGreaterThan(100_000)
      })
    )
  )

  it.effect("wait for a listener until it has received them, in order and signed, without any call", () =>
    onFreshData(
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const stranger = yield* Fixtures.agent()
        const listeners = yield* WebhookListeners
        const started = yield* listeners.start(scope, { events: all, payload: "full" })
        const { id } = started.listener
        const { conversationId, runId } = yield* turn(scope)
        yield* turn(stranger)
        yield* attemptAll
        expect(calls).toEqual([])
        const wait = Duration.zero
        const first = yield* listeners.next(scope, id, { received: null, wait })
        expect(first.events.map(({ type }) => type)).toEqual(["conversation.started", "turn.settled"])
        const [, settled] = first.events
        const verifier = new Verifier(Redacted.value(started.secret))
        expect(verifier.verify(settled?.body ?? "", settled?.headers ?? {})).toMatchObject({
          type: "turn.settled",
          data: { conversationId, runId, reply: "It left yesterday." }
        })
        // What has not been received comes again, under the same ids.
        const again = yield* listeners.next(scope, id, { received: null, wait })
        expect(again.events.map((event) => event.id)).toEqual(first.events.map((event) => event.id))
        yield* turn(scope, conversationId)
        const after = yield* listeners.next(scope, id, { received: first.received, wait })
        expect(after.events.map(({ type }) => type)).toEqual(["turn.settled"])
        expect(yield* listeners.next(scope, id, { received: after.received, wait })).toEqual({
          events: [],
          received: after.received
        })
        // As one whose transaction commits after those of later places.
        const sql = yield* SqlClient.SqlClient
        yield* sql`
          update webhook_deliveries set status = 'pending', settled_at = null, attempted_at = null
          where event_id = ${settled?.id ?? ""}`
        const late = yield* listeners.next(scope, id, { received: after.received, wait })
        expect(late.events.map((event) => event.id)).toEqual([settled?.id])
        const others = yield* Effect.exit(listeners.next(stranger, id, { received: null, wait }))
        expect(Exit.isFailure(others)).toBe(true)
      })
    )
  )

  it.effect("end for a listener without requests, which is not listed as a webhook", () =>
    onFreshData(
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const scope = yield* Fixtures.agent()
        const listeners = yield* WebhookListeners
        const endpoints = yield* WebhookEndpoints
        const { id } = (yield* listeners.start(scope, { events: all, payload: "thin" })).listener
        expect((yield* endpoints.list(scope, { limit: 20, after: undefined })).rows).toEqual([])
        const refusals = yield* Effect.all([
          Effect.isFailure(endpoints.find(scope, id)),
          Effect.isFailure(endpoints.rotate(scope, id)),
          Effect.isFailure(endpoints.remove(scope, id))
        ])
        expect(refusals).toEqual([true, true, true])
        yield* listeners.sweep
        expect((yield* listeners.next(scope, id, { received: null, wait: Duration.zero })).events).toEqual([])
        yield* sql`update webhook_endpoints set listening_until = now() - interval '1 second'`
        yield* listeners.sweep
        const gone = yield* Effect.flip(listeners.next(scope, id, { received: null, wait: Duration.zero }))
        expect(gone._tag).toBe("NOT_FOUND")
      })
    )
  )

  it.effect("of one customer wait in a limited number of requests, and others still get theirs", () =>
    onFreshData(
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const stranger = yield* Fixtures.agent()
        const listeners = yield* WebhookListeners
        const heard = (of: typeof scope, wait: Duration.DurationInput) =>
          Effect.flatMap(listeners.start(of, { events: all, payload: "thin" }), ({ listener }) =>
            listeners.next(of, listener.id, { received: null, wait: Duration.decode(wait) })
          )
        const { id } = (yield* listeners.start(scope, { events: all, payload: "thin" })).listener
        const next = (wait: Duration.DurationInput) =>
          listeners.next(scope, id, { received: null, wait: Duration.decode(wait) })
        const refused = yield* Effect.flip(
          Effect.all(
            Array.from({ length: 41 }, () => next("10 minutes")),
            { concurrency: "unbounded" }
          ).pipe(
            Effect.tapError(() => heard(stranger, 0)),
            Effect.timeout("1 minute")
          )
        )
        expect(refused._tag).toBe("SERVICE_UNAVAILABLE")
        expect((yield* next(0)).events).toEqual([])
      })
    )
  )

  it.effect("are sent as examples of a type to its subscribers, with one id", () =>
    onFreshData(
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const stranger = yield* Fixtures.agent()
        yield* endpoint(scope)
        yield* endpoint(scope, ["turn.settled"], "full")
        yield* endpoint(scope, ["source.ready"])
        yield* endpoint(stranger)
        const listeners = yield* WebhookListeners
        expect(yield* listeners.trigger(scope, "turn.settled")).toBe(2)
        yield* attemptAll
        expect(new Set(calls.map((call) => call.headers?.["webhook-id"])).size).toBe(1)
        expect(calls.map(bodyOf)).toEqual(
          Array.from({ length: 2 }, () =>
            expect.objectContaining({
              type: "turn.settled",
              data: expect.objectContaining({ runId: "run_example", example: true })
            })
          )
        )
        expect(yield* listeners.trigger(scope, "handoff.taken")).toBe(1)
      })
    )
  )

  it.effect("are not cancelled by a worker that found their webhook disabled, once it is active again", () =>
    onFreshData(
      Effect.gen(function* () {
        const scope = yield* Fixtures.agent()
        const { id } = yield* endpoint(scope, ["turn.settled"])
        yield* begin(scope)
        yield* (yield* ProcessLeases).sweep
        const store = yield* WebhookDeliveryStore
        // The worker has read the webhook before an admin has made it active.
        yield* store.cancel(scope, id)
        expect((yield* deliveries).map(({ status }) => status)).toEqual(["pending"])
        yield* (yield* WebhookEndpoints).patch(scope, id, { status: "disabled" })
        expect((yield* deliveries).map(({ status }) => status)).toEqual(["cancelled"])
      })
    )
  )
})
