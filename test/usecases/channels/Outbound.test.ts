import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/TestClock"
import * as TestServices from "effect/TestServices"
import { ArtifactStore, layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import * as DedupeSql from "../../../src/capabilities/DedupeStore/Sql.ts"
import * as QueueTable from "../../../src/capabilities/JobQueue/Table.ts"
import * as RealtimeMemory from "../../../src/capabilities/Realtime/Memory.ts"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import { SecretBox } from "../../../src/capabilities/SecretBox.ts"
import { ChannelError } from "../../../src/capabilities/ChannelAdapters.ts"
import { Graph } from "../../../src/channels/Graph.ts"
import { GraphFiles } from "../../../src/channels/GraphFiles.ts"
import * as BuiltIn from "../../../src/channels/BuiltIn.ts"
import type { NewFile } from "../../../src/channels/ProviderRequest.ts"
import { ConversationStates } from "../../../src/store/conversations/ConversationStates.ts"
import type { StoredAttachment } from "../../../src/domain/channels/Attachment.ts"
import type { DeliveryStatus } from "../../../src/domain/channels/Channel.ts"
import type { TenantScope } from "../../../src/domain/accounts/Account.ts"
import { ConversationId, MessageId, newId, OutboxId, QueueJobId, TenantId } from "../../../src/domain/Ids.ts"
import { ConversationFeedStore } from "../../../src/store/conversations/ConversationFeed.ts"
import { OutboxStore } from "../../../src/store/channels/Outbox.ts"
import { Outbound } from "../../../src/usecases/channels/Outbound.ts"
import { RealtimeFeed } from "../../../src/usecases/conversations/RealtimeFeed.ts"
import { counterValue } from "../../Counters.ts"
import * as Fixtures from "../../Fixtures.ts"
import { channelSettings } from "../../channels/Settings.ts"
import { eachEngine, reset } from "../../TestDatabase.ts"
import { failsOnce } from "../../FailingWrites.ts"
import { account, message } from "./InboundHarness.ts"

const lost = () => new ChannelError({ reason: "Unknown", message: "Lost.", retryable: true })
const busy = () => new ChannelError({ reason: "Refused", message: "Busy.", retryable: true })
const closed = () =>
  new ChannelError({ reason: "Refused", message: "The window is closed.", retryable: false })

interface Call {
  readonly path: string
  readonly token: string
  readonly body: Record<string, unknown>
}
let calls: Array<Call> = []
/** What the provider says to each call; then it takes everything. */
let answers: Array<Effect.Effect<unknown, ChannelError>> = []

const graph = Layer.succeed(Graph, {
  get: () => Effect.dieMessage("Nothing is asked here."),
  post: (path, token, body) =>
    Effect.suspend(() => {
      calls.push({ path, token: Redacted.value(token), body })
      return answers.shift() ?? Effect.succeed({ messages: [{ id: `wamid.out.${calls.length}` }] })
    })
})

interface Upload {
  readonly path: string
  readonly fields: Readonly<Record<string, string>>
  readonly file: NewFile
}
let uploads: Array<Upload> = []
/** What the provider says to each upload; then it takes everything. */
let receipts: Array<Effect.Effect<unknown, ChannelError>> = []

const graphFiles = Layer.succeed(GraphFiles, {
  locate: () => Effect.dieMessage("Nothing is located here."),
  read: () => Effect.dieMessage("Nothing is read here."),
  upload: (path, _, fields, file) =>
    Effect.suspend(() => {
      uploads.push({ path, fields, file })
      return (
        receipts.shift() ??
        Effect.succeed({ id: `file.${uploads.length}`, attachment_id: `${uploads.length}` })
      )
    })
})

const settings = channelSettings({ appId: "8801" })
const adapters = BuiltIn.layerWithGraph({ appSecret: null }).pipe(Layer.provide([graph, graphFiles]))

const outboundLayer = Outbound.Default.pipe(
  Layer.provideMerge(OutboxStore.Default),
  Layer.provide([RealtimeFeed.Default, adapters, ConversationStates.Default, DedupeSql.layerSql, settings]),
  Layer.provideMerge(layerMemory),
  Layer.provide([ConversationFeedStore.Default, RealtimeMemory.layerMemory]),
  Layer.provideMerge(QueueTable.layerTable),
  Layer.provideMerge(DerivedKeys.layer([Redacted.make("a master secret of these tests, long enough")]))
)

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.sync(() => {
    calls = []
    answers = []
    uploads = []
    receipts = []
  }).pipe(Effect.zipRight(reset), Effect.zipRight(Effect.provide(test, outboundLayer)))

/** With the real clock, for pauses between attempts to reach the database. */
const onFreshDataLive = <A, E, R>(test: Effect.Effect<A, E, R>) => TestServices.provideLive(onFreshData(test))

const conversationId = ConversationId.make("cnv_1")
const messageId = MessageId.make("msg_1")

/** A conversation with a contact that has a phone number. */
const conversation = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { agentId, tenantId } = yield* Fixtures.agent()
  const token = yield* (yield* SecretBox).seal("channel-token", "EAAB-token")
  yield* sql`
    insert into channels (id, tenant_id, agent_id, channel, external_id, access_token)
    values ('chn_1', ${tenantId}, ${agentId}, 'whatsapp', ${account}, ${token})`
  yield* sql`insert into end_users (id, tenant_id) values ('usr_1', ${tenantId})`
  yield* sql`
    insert into end_user_aliases (tenant_id, channel, kind, value, end_user_id)
    values (${tenantId}, 'whatsapp', 'user_id', 'DE.1', 'usr_1'), (${tenantId}, 'whatsapp', 'phone', '491701', 'usr_1')`
  yield* sql`
    insert into conversations (id, tenant_id, agent_id, end_user_id, channel, channel_id)
    values (${conversationId}, ${tenantId}, ${agentId}, 'usr_1', 'whatsapp', 'chn_1')`
})

/** Of the conversation. */
const tenant = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<TenantScope>`select tenant_id as "tenantId" from conversations`
).pipe(Effect.map(([scope]) => scope ?? { tenantId: TenantId.make("ten_none") }))

const post = (text = "Hello", author: "agent" | "human" | "system" = "agent") =>
  Effect.flatMap(Effect.all([Outbound, tenant]), ([outbound, scope]) =>
    outbound.post({ ...scope, conversationId, messageId, author, epoch: 0, text })
  )

/** One attempt of the message's job. */
const attempt = (number: number) =>
  Effect.flatMap(Effect.all([Outbound, tenant]), ([outbound, scope]) =>
    outbound.process({
      id: QueueJobId.make("qjb_1"),
      queue: "channel-outbound",
      payload: { ...scope, messageId },
      attempt: number,
      lastAttempt: number === 3
    })
  )

const rows = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<Record<string, unknown>>`
    select state, attempts, resent, provider_message_id as provider, delivery, last_error as error
    from channel_outbox order by message_id, part`
)

const status = (fields: Partial<DeliveryStatus>): DeliveryStatus => ({
  channel: "whatsapp",
  accountId: account,
  providerMessageId: null,
  outboxId: null,
  delivery: "sent",
  error: null,
  ...fields
})

const outboxId = Effect.map(
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql<{ id: string }>`select id from channel_outbox`),
  ([row]) => OutboxId.make(row?.id ?? "")
)

const told = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly type: string; readonly ids: Readonly<Record<string, unknown>> }>`
    select type, ids from webhook_deliveries where type like 'channel.%' order by seq`
)

eachEngine("A message sent through a channel", (it) => {
  it.effect("is sent once with the channel's token, even if its job runs repeatedly", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        yield* post()
        yield* attempt(1)
        yield* attempt(1)
        expect(calls).toHaveLength(1)
        expect(calls[0]).toMatchObject({
          path: `${account}/messages`,
          token: "EAAB-token",
          body: { to: "491701", text: { body: "Hello" }, biz_opaque_callback_data: yield* outboxId }
        })
        expect(yield* rows).toMatchObject([
          { state: "sent", attempts: 1, resent: false, provider: "wamid.out.1", delivery: "sent" }
        ])
        const sql = yield* SqlClient.SqlClient
        const jobs = yield* sql`select serial_key from queue_jobs where queue = 'channel-outbound'`
        expect(jobs).toEqual([{ serial_key: conversationId }])
      })
    )
  )

  it.effect("reports a failing provider once, and its recovery once", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        const sql = yield* SqlClient.SqlClient
        yield* sql`
          insert into webhook_endpoints (tenant_id, id, url, events, payload, secret)
          select tenant_id, 'whk_1', 'https://receiver.example/', '{channel.failing,channel.recovered}', 'thin', 's'
          from conversations`
        yield* post()
        answers = Array.from({ length: 7 }, busy)
        const failing = (times: number) =>
          Effect.forEach(Array.from({ length: times }), () => Effect.exit(attempt(2)))
        yield* failing(4)
        expect(yield* told).toEqual([])
        yield* failing(3)
        const ids = { channelId: "chn_1", channel: "whatsapp" }
        expect(yield* told).toEqual([{ type: "channel.failing", ids }])
        yield* attempt(2)
        expect(yield* told).toEqual([
          { type: "channel.failing", ids },
          { type: "channel.recovered", ids }
        ])
        expect(yield* sql`select failures, failing_since from channels`).toEqual([
          { failures: 0, failing_since: null }
        ])
      })
    )
  )

  it.effect("is sent with the new configuration of an account, but never with another tenant's", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        const sql = yield* SqlClient.SqlClient
        const box = yield* SecretBox
        const configure = (id: string, token: string, tenantId: string, agentId: string) =>
          Effect.flatMap(
            box.seal("channel-token", token),
            (sealed) => sql`
              insert into channels (id, tenant_id, agent_id, channel, external_id, access_token)
              values (${id}, ${tenantId}, ${agentId}, 'whatsapp', ${account}, ${sealed})`
          )
        yield* sql`update channels set active = false`
        const other = yield* Fixtures.agent()
        yield* configure("chn_2", "EAAB-another's", other.tenantId, other.agentId)
        yield* post()
        expect(yield* Effect.flip(attempt(1))).toMatchObject({ fatal: true })
        expect(calls).toEqual([])
        yield* sql`delete from channels where id = 'chn_2'`
        const [own] = yield* sql<{ tenant: string; agent: string }>`
          select tenant_id as tenant, agent_id as agent from channels`
        if (own === undefined) return expect.unreachable()
        yield* configure("chn_3", "EAAB-new", own.tenant, own.agent)
        yield* attempt(1)
        expect(calls.map(({ token }) => token)).toEqual(["EAAB-new"])
        expect(yield* rows).toMatchObject([{ state: "sent", attempts: 1, resent: false }])
      })
    )
  )

  it.effect("is not made if the conversation has no channel", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        const sql = yield* SqlClient.SqlClient
        yield* sql`update conversations set channel_id = null`
        yield* post()
        expect(yield* rows).toEqual([])
        expect(yield* sql`select from queue_jobs`).toEqual([])
      })
    )
  )

  it.effect("is cancelled after a takeover by a human, unless the human wrote it", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        const sql = yield* SqlClient.SqlClient
        yield* sql`update conversations set epoch = 1, state = 'HUMAN_ACTIVE'`
        yield* attempt(1)
        expect(calls).toEqual([])
        expect(yield* rows).toMatchObject([{ state: "cancelled", attempts: 0 }])
        yield* sql`delete from channel_outbox`
        yield* post("I **am** here [1].", "human")
        yield* attempt(1)
        // As it was typed.
        expect(calls).toMatchObject([{ body: { text: { body: "I **am** here [1]." } } }])
      })
    )
  )

  it.effect(
    "is formatted for the channel, and an announcement of a human is sent even after a takeover",
    () =>
      onFreshData(
        Effect.gen(function* () {
          yield* conversation
          yield* post("**Somebody** will answer you [1].", "system")
          const sql = yield* SqlClient.SqlClient
          yield* sql`update conversations set epoch = 1, state = 'HUMAN_ACTIVE'`
          yield* attempt(1)
          expect(calls).toMatchObject([{ body: { text: { body: "*Somebody* will answer you." } } }])
        })
      )
  )

  it.effect("is retried after a temporary refusal, and failed with the reason after a permanent one", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        answers = [Effect.fail(busy()), Effect.fail(busy()), Effect.fail(busy()), Effect.fail(closed())]
        expect(yield* Effect.flip(attempt(1))).toMatchObject({ fatal: false, message: "Busy." })
        yield* Effect.flip(attempt(2))
        expect(yield* rows).toMatchObject([{ state: "pending", resent: false, error: "Busy." }])
        yield* Effect.flip(attempt(3))
        expect(yield* rows).toMatchObject([{ state: "failed", resent: false, error: "Busy." }])
        // An operator's retry begins anew.
        expect(yield* Effect.flip(attempt(1))).toMatchObject({
          fatal: true,
          message: "The window is closed."
        })
        expect(yield* rows).toMatchObject([{ state: "failed", error: "The window is closed." }])
        yield* attempt(1)
        expect(yield* rows).toMatchObject([{ state: "sent", resent: false, error: null }])
      })
    )
  )

  /** Runs `attempt`. The dedupe keys cannot be reached until `meanwhile` has ended, which begins after a second. */
  const withoutKeys = <A, E, R, E2, R2>(
    attempt: Effect.Effect<A, E, R>,
    meanwhile: Effect.Effect<void, E2, R2>
  ) =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`alter table dedupe_keys rename to hidden`
      const fiber = yield* Effect.fork(attempt)
      const show = Effect.orDie(sql`alter table hidden rename to dedupe_keys`)
      yield* Effect.ensuring(
        Effect.zipRight(TestServices.provideLive(Effect.sleep("1 second")), meanwhile),
        show
      )
      yield* Effect.forkScoped(
        Effect.forever(
          Effect.zipRight(TestClock.adjust("500 millis"), TestServices.provideLive(Effect.sleep("20 millis")))
        )
      )
      return yield* Fiber.join(fiber)
    }).pipe(Effect.scoped)

  it.effect("is sent once, unmarked, if the dedupe keys cannot be reached for a moment", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        yield* withoutKeys(attempt(1), Effect.void)
        expect([calls.length, yield* rows]).toMatchObject([1, [{ state: "sent", resent: false }]])
      })
    )
  )

  it.effect(
    "is retried after a minute if the dedupe keys cannot be reached, and then sent once, unmarked",
    () =>
      onFreshData(
        Effect.gen(function* () {
          yield* conversation
          yield* post()
          const eachRetry = Effect.zipRight(
            TestClock.adjust("500 millis"),
            TestServices.provideLive(Effect.sleep("100 millis"))
          )
          const failure = yield* Effect.flip(withoutKeys(attempt(1), Effect.repeatN(eachRetry, 20)))
          expect(failure).toMatchObject({ fatal: false, retryAfter: Duration.minutes(1) })
          expect([calls, yield* rows]).toMatchObject([[], [{ state: "pending", resent: false }]])
          yield* attempt(2)
          expect([calls.length, yield* rows]).toMatchObject([1, [{ state: "sent", resent: false }]])
        })
      )
  )

  it.effect("requests a human after a permanent refusal, and not after a temporary one", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        const sql = yield* SqlClient.SqlClient
        const state = sql`select state, handoff_reason as reason from conversations`
        const before = yield* counterValue("spoke_handoffs_total", "service")
        answers = [Effect.fail(busy()), Effect.fail(lost()), Effect.fail(closed())]
        yield* Effect.flip(attempt(1))
        yield* Effect.flip(attempt(2))
        expect(yield* state).toEqual([{ state: "AI_ACTIVE", reason: null }])
        yield* Effect.flip(attempt(3))
        expect(yield* state).toEqual([{ state: "HUMAN_REQUESTED", reason: "The window is closed." }])
        expect(yield* counterValue("spoke_handoffs_total", "service")).toBe(before + 1)
        // The human has taken over: unsent parts of the agent's reply are cancelled.
        yield* sql`update conversations set state = 'HUMAN_ACTIVE', epoch = epoch + 1`
        yield* Effect.flip(attempt(1))
        expect(calls).toHaveLength(3)
        expect(yield* rows).toMatchObject([{ state: "failed", error: "outcome unknown" }])
      })
    )
  )

  it.effect(
    "is sent a second time if an answer was lost, is marked as resent, and is never sent a third time",
    () =>
      onFreshData(
        Effect.gen(function* () {
          yield* conversation
          yield* post()
          answers = [Effect.fail(lost()), Effect.fail(lost())]
          yield* Effect.flip(attempt(1))
          expect(yield* rows).toMatchObject([{ state: "sending", attempts: 1, resent: false }])
          yield* Effect.flip(attempt(2))
          expect(yield* rows).toMatchObject([{ state: "sending", attempts: 2, resent: true }])
          expect(yield* Effect.flip(attempt(3))).toMatchObject({ fatal: true, message: "outcome unknown" })
          yield* Effect.flip(attempt(1))
          expect(calls).toHaveLength(2)
          expect(yield* rows).toMatchObject([
            { state: "failed", attempts: 2, resent: true, error: "outcome unknown" }
          ])
        })
      )
  )

  it.effect("is not sent again when a status shows that it was accepted", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        answers = [Effect.fail(lost())]
        yield* Effect.flip(attempt(1))
        const outbound = yield* Outbound
        yield* outbound.recordDelivery(status({ outboxId: yield* outboxId, providerMessageId: "wamid.x" }))
        yield* attempt(2)
        expect(calls).toHaveLength(1)
        expect(yield* rows).toMatchObject([{ state: "sent", resent: false, provider: "wamid.x" }])
      })
    )
  )

  it.effect("only moves forward in status, regardless of the order of the provider's statuses", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        yield* attempt(1)
        const outbound = yield* Outbound
        const tell = (delivery: DeliveryStatus["delivery"], accountId = account) =>
          outbound.recordDelivery(status({ providerMessageId: "wamid.out.1", delivery, accountId }))
        yield* tell("read", "another")
        expect(yield* rows).toMatchObject([{ delivery: "sent" }])
        yield* tell("read")
        for (const late of ["delivered", "sent", "failed"] as const) yield* tell(late)
        expect(yield* rows).toMatchObject([{ state: "sent", delivery: "read" }])
      })
    )
  )

  it.effect("requests a human once when a status reports that it could not be delivered", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        yield* attempt(1)
        const outbound = yield* Outbound
        const sql = yield* SqlClient.SqlClient
        const state = sql`select state, handoff_reason as reason from conversations`
        const error = "131026 Message undeliverable"
        const failed = status({ providerMessageId: "wamid.out.1", delivery: "failed", error })
        yield* outbound.recordDelivery(failed)
        expect(yield* rows).toMatchObject([{ state: "failed", error }])
        expect(yield* state).toEqual([{ state: "HUMAN_REQUESTED", reason: error }])
        // A human has given it back, and the provider repeats itself.
        yield* sql`update conversations set state = 'AI_ACTIVE', handoff_reason = null`
        yield* outbound.recordDelivery(failed)
        expect(yield* state).toEqual([{ state: "AI_ACTIVE", reason: null }])
      })
    )
  )

  it.effect("is stored as sent, or as refused, also if the database stops meanwhile", () =>
    onFreshDataLive(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        answers = [Effect.fail(busy())]
        yield* Effect.flip(failsOnce("channel_outbox", "new.state = 'pending'", "57P01", attempt(1)))
        expect(yield* rows).toMatchObject([{ state: "pending", attempts: 1, error: "Busy." }])
        yield* failsOnce("channel_outbox", "new.state = 'sent'", "57P01", attempt(2))
        yield* attempt(3)
        expect(calls).toHaveLength(2)
        expect(yield* rows).toMatchObject([{ state: "sent", resent: false, provider: "wamid.out.2" }])
      })
    )
  )

  it.effect("is stored as sent, or as refused, if the health of its channel cannot be stored", () =>
    onFreshDataLive(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        answers = [Effect.fail(busy()), Effect.fail(busy())]
        yield* Effect.flip(failsOnce("channels", "new.failures = 1", "40P01", attempt(1)))
        expect(yield* rows).toMatchObject([{ state: "pending", error: "Busy." }])
        yield* Effect.flip(attempt(2))
        yield* failsOnce("channels", "new.failures = 0", "40P01", attempt(3))
        expect(calls).toHaveLength(3)
        expect(yield* rows).toMatchObject([{ state: "sent", resent: false }])
      })
    )
  )

  it.effect("requests a human after a permanent refusal, also if the database stops meanwhile", () =>
    onFreshDataLive(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        answers = [Effect.fail(closed())]
        yield* Effect.flip(failsOnce("conversations", "new.state = 'HUMAN_REQUESTED'", "57P01", attempt(3)))
        expect(yield* rows).toMatchObject([{ state: "failed", error: "The window is closed." }])
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select state from conversations`).toEqual([{ state: "HUMAN_REQUESTED" }])
      })
    )
  )

  it.effect("requests a human when a status is delivered again that could not be processed", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        yield* attempt(1)
        const outbound = yield* Outbound
        const failed = outbound.recordDelivery(
          status({ providerMessageId: "wamid.out.1", delivery: "failed", error: "Undeliverable" })
        )
        yield* Effect.exit(failsOnce("conversations", "new.state = 'HUMAN_REQUESTED'", "57P01", failed))
        yield* failed
        expect(yield* rows).toMatchObject([{ state: "failed", error: "Undeliverable" }])
        const sql = yield* SqlClient.SqlClient
        expect(yield* sql`select state from conversations`).toEqual([{ state: "HUMAN_REQUESTED" }])
      })
    )
  )

  it.effect("is recognized as an echo", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* post()
        yield* attempt(1)
        const { isOwn } = yield* Outbound
        const echo = yield* message({ kind: "echo", messageId: "wamid.out.1" })
        expect(yield* isOwn(echo)).toBe(true)
        expect(yield* isOwn({ ...echo, messageId: "other", origin: { outboxId: yield* outboxId } })).toBe(
          true
        )
        expect(yield* isOwn({ ...echo, messageId: "other", origin: { outboxId: yield* newId.outbox } })).toBe(
          false
        )
        expect(yield* isOwn({ ...echo, accountId: "another" })).toBe(false)
        // An echo with our app's id is ours, also without a row in the outbox; one of another app is not ours.
        expect(yield* isOwn({ ...echo, messageId: "other", origin: { appId: "8801" } })).toBe(true)
        expect(yield* isOwn({ ...echo, messageId: "other", origin: { appId: "8802" } })).toBe(false)
      })
    )
  )

  it.effect("is sent part by part in order; parts after a failed part are not sent", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* post("A sentence of some words. ".repeat(400))
        answers = [Effect.succeed({ messages: [{ id: "wamid.first" }] }), Effect.fail(closed())]
        yield* Effect.flip(attempt(1))
        expect(yield* rows).toMatchObject([{ state: "sent" }, { state: "failed" }, { state: "failed" }])
        expect(calls).toHaveLength(2)
      })
    )
  )

  const png = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 1, 2, 3])

  /** A human's message with files of these types. */
  const postFiles = (text: string, ...types: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const store = yield* ArtifactStore
      const artifact = yield* store.put(png)
      const attachments = types.map((mimeType, place): StoredAttachment => ({
        artifact,
        mimeType,
        name: `file ${place}`,
        size: png.length
      }))
      const scope = yield* tenant
      const message = {
        ...scope,
        conversationId,
        messageId,
        author: "human",
        epoch: 0,
        text,
        attachments
      } as const
      yield* (yield* Outbound).post(message)
    })

  it.effect("contains one uploaded file with the text as its caption, if the text fits", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* postFiles("As you asked.", "application/pdf")
        yield* attempt(1)
        yield* attempt(1)
        expect(uploads).toMatchObject([
          {
            path: `${account}/media`,
            fields: { messaging_product: "whatsapp", type: "application/pdf" },
            file: { field: "file", name: "file 0", mimeType: "application/pdf", bytes: png }
          }
        ])
        expect(calls.map(({ body }) => body)).toEqual([
          {
            messaging_product: "whatsapp",
            recipient_type: "individual",
            to: "491701",
            type: "document",
            document: { id: "file.1", caption: "As you asked.", filename: "file 0" },
            biz_opaque_callback_data: yield* outboxId
          }
        ])
        expect(yield* rows).toMatchObject([{ state: "sent", attempts: 1, resent: false }])
      })
    )
  )

  it.effect("sends several files, or a file with a long text, as separate messages, the text first", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* postFiles("Two of them.", "image/png", "image/jpeg")
        yield* attempt(1)
        expect(calls.map(({ body }) => [body["type"], body["text"] ?? body["image"]])).toEqual([
          ["text", { body: "Two of them.", preview_url: false }],
          ["image", { id: "file.1" }],
          ["image", { id: "file.2" }]
        ])
        const sql = yield* SqlClient.SqlClient
        yield* sql`delete from channel_outbox`
        calls = []
        yield* postFiles("x".repeat(1_025), "image/png")
        yield* attempt(1)
        expect(calls.map(({ body }) => body["type"])).toEqual(["text", "image"])
        yield* sql`delete from channel_outbox`
        calls = []
        yield* postFiles("", "image/png")
        yield* attempt(1)
        expect(calls.map(({ body }) => body["image"])).toEqual([{ id: "file.4" }])
      })
    )
  )

  it.effect("uploads to a Page and names the attachment, without a caption", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        const sql = yield* SqlClient.SqlClient
        yield* sql`update channels set channel = 'messenger'`
        yield* sql`update end_user_aliases set channel = 'messenger', kind = 'page_scoped_id' where kind = 'phone'`
        yield* postFiles("Here.", "image/gif", "application/pdf")
        answers = ["mid.1", "mid.2", "mid.3"].map((message_id) => Effect.succeed({ message_id }))
        yield* attempt(1)
        expect(uploads.map(({ fields, file, path }) => [path, fields["message"], file.field])).toEqual(
          ["image", "file"].map((type) => [
            `${account}/message_attachments`,
            JSON.stringify({ attachment: { type, payload: { is_reusable: true } } }),
            "filedata"
          ])
        )
        const ids = yield* sql<{ readonly id: string }>`select id from channel_outbox order by part`
        expect(calls.map(({ body }) => body["message"])).toEqual([
          { text: "Here.", metadata: ids[0]?.id },
          { attachment: { type: "image", payload: { attachment_id: "1" } }, metadata: ids[1]?.id },
          { attachment: { type: "file", payload: { attachment_id: "2" } }, metadata: ids[2]?.id }
        ])
      })
    )
  )

  it.effect("is sent once, unmarked, when only the answer to its file's upload was lost", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* postFiles("Look.", "image/png")
        receipts = [Effect.fail(lost()), Effect.fail(busy())]
        expect(yield* Effect.flip(attempt(1))).toMatchObject({ fatal: false })
        expect(yield* Effect.flip(attempt(2))).toMatchObject({ fatal: false })
        expect(yield* rows).toMatchObject([{ state: "pending", attempts: 0, resent: false }])
        yield* attempt(3)
        expect([uploads.length, calls.length]).toEqual([3, 1])
        expect(yield* rows).toMatchObject([{ state: "sent", attempts: 1, resent: false }])
      })
    )
  )

  it.effect("is failed with the reason when its file is missing, or its type is not supported", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        yield* postFiles("Look.", "image/gif")
        expect(yield* Effect.flip(attempt(1))).toMatchObject({ fatal: true })
        expect(yield* rows).toMatchObject([
          { state: "failed", error: "The channel does not carry files of this type." }
        ])
        const sql = yield* SqlClient.SqlClient
        yield* sql`delete from channel_outbox`
        yield* postFiles("Look.", "image/png")
        yield* sql`update channel_outbox set media = jsonb_set(media, '{artifact}', ${JSON.stringify(`sha256:${"0".repeat(64)}`)}::jsonb)`
        expect(yield* Effect.flip(attempt(1))).toMatchObject({ fatal: true })
        expect(yield* rows).toMatchObject([{ state: "failed", error: "The file is gone." }])
        expect(calls).toEqual([])
      })
    )
  )

  it.effect(
    "marks the customer's message as read with a typing indicator, and ignores failures of that",
    () =>
      onFreshData(
        Effect.gen(function* () {
          yield* conversation
          const sql = yield* SqlClient.SqlClient
          yield* sql`
          insert into messages (id, tenant_id, conversation_id, agent_id, position, role, content, channel_message_id)
          select 'msg_in', tenant_id, id, agent_id, 1, 'user', 'Hi', 'wamid.in' from conversations`
          answers = [Effect.fail(lost())]
          yield* (yield* Outbound).markSeen(yield* tenant, conversationId)
          expect(calls).toMatchObject([
            { body: { status: "read", message_id: "wamid.in", typing_indicator: { type: "text" } } }
          ])
        })
      )
  )

  it.effect("gets its status from a later watermark of Messenger", () =>
    onFreshData(
      Effect.gen(function* () {
        yield* conversation
        const sql = yield* SqlClient.SqlClient
        yield* sql`update conversations set channel = 'messenger'`
        yield* sql`update channels set channel = 'messenger'`
        yield* sql`update end_user_aliases set channel = 'messenger', kind = 'page_scoped_id' where kind = 'phone'`
        yield* post()
        answers = [Effect.succeed({ message_id: "mid.1" })]
        yield* attempt(1)
        const tell = (until: string, delivery: DeliveryStatus["delivery"]) =>
          Effect.flatMap(Outbound, ({ recordDelivery }) =>
            recordDelivery(
              status({
                channel: "messenger",
                delivery,
                watermark: { pageScopedId: "491701", until: DateTime.unsafeMake(until) }
              })
            )
          )
        yield* tell("2020-01-01T00:00:00Z", "read")
        expect(yield* rows).toMatchObject([{ delivery: "sent", provider: "mid.1" }])
        yield* tell("2099-01-01T00:00:00Z", "delivered")
        expect(yield* rows).toMatchObject([{ delivery: "delivered" }])
      })
    )
  )
})
