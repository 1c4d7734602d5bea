/** One process that takes what channels bring, with a scripted model and an outbox that is only written. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import { layerSql } from "../../../src/capabilities/RateLimiter/Sql.ts"
import * as QueueTable from "../../../src/capabilities/JobQueue/Table.ts"
import type { QueueJob } from "../../../src/capabilities/JobQueue.ts"
import { SecretBox } from "../../../src/capabilities/SecretBox.ts"
import { ChannelError } from "../../../src/capabilities/ChannelAdapters.ts"
import { MailSubmission } from "../../../src/capabilities/Mailer.ts"
import { emailAdapter } from "../../../src/channels/email/Adapter.ts"
import * as BuiltIn from "../../../src/channels/BuiltIn.ts"
import { Graph } from "../../../src/channels/Graph.ts"
import { GraphFiles } from "../../../src/channels/GraphFiles.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import type { ContactAlias, InboundEvent, InboundMessage } from "../../../src/domain/channels/Channel.ts"
import { InboundEventId, newId, OutboxId, QueueJobId } from "../../../src/domain/Ids.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { ArtifactRows } from "../../../src/store/knowledge/ArtifactRows.ts"
import { ChannelConversationStore } from "../../../src/store/channels/ChannelConversations.ts"
import { ChannelStore } from "../../../src/store/channels/Channels.ts"
import { ContactStore } from "../../../src/store/channels/Contacts.ts"
import { ConversationStore } from "../../../src/store/conversations/Conversations.ts"
import { ConversationStates } from "../../../src/store/conversations/ConversationStates.ts"
import { InboundEvents } from "../../../src/store/channels/InboundEvents.ts"
import { Artifacts } from "../../../src/usecases/knowledge/Artifacts.ts"
import { Inbound } from "../../../src/usecases/channels/Inbound.ts"
import { InboundFiles } from "../../../src/usecases/channels/InboundFiles.ts"
import { ChannelSender } from "../../../src/usecases/channels/ChannelSender.ts"
import { DeliveryReceipts } from "../../../src/usecases/channels/DeliveryReceipts.ts"
import { Handoff } from "../../../src/usecases/conversations/Handoff.ts"
import { ConversationControl } from "../../../src/usecases/conversations/ConversationControl.ts"
import { Takeover } from "../../../src/usecases/conversations/Takeover.ts"
import { Attachments } from "../../../src/usecases/chat/widget/Attachments.ts"
import { type Knowledge, turnLayer } from "../chat/TurnHarness.ts"

/** Our own sends say so. */
const sent = Layer.succeed(DeliveryReceipts, {
  isOwn: (echo) => Effect.succeed(echo.origin?.outboxId === "out_ours"),
  recordDelivery: () => Effect.void
})

/** The conversations whose messages were shown as read. */
export const shown: Array<string> = []

/** Rows as they are to be sent, written with the message or not at all. */
const sender = Layer.effect(
  ChannelSender,
  Effect.map(SqlClient.SqlClient, (sql) => ({
    markSeen: (_, conversationId) => Effect.sync(() => shown.push(conversationId)),
    post: ({ author, conversationId, epoch, messageId, text }) =>
      Effect.flatMap(
        newId.outbox,
        (id) => sql`
          insert into channel_outbox (id, tenant_id, conversation_id, channel_id, message_id, part, author, epoch, body)
          select ${id}, tenant_id, id, channel_id, ${messageId}, 1, ${author}, ${epoch}, ${text}
          from conversations where id = ${conversationId} and channel_id is not null`
      ).pipe(Effect.orDie, Effect.asVoid)
  }))
)

/** Files that the provider has, by id; a file is read at an address that names the id and no real host. */
export const provided = new Map<string, { readonly bytes: Uint8Array; readonly mimeType: string }>()
/** What each further call of the provider fails with; then it answers. */
export const failures: Array<ChannelError> = []
const filesUrl = "https://files.invalid/"

const graphFiles = Layer.succeed(GraphFiles, {
  locate: (id, token) =>
    Effect.suspend(() => {
      const failure = failures.shift()
      const file = provided.get(id)
      if (failure !== undefined) return Effect.fail(failure)
      return file === undefined || Redacted.value(token) !== "EAAB-token"
        ? Effect.fail(new ChannelError({ reason: "Refused", message: "No such file.", retryable: false }))
        : Effect.succeed({ url: filesUrl + id, mime_type: file.mimeType, file_size: file.bytes.length })
    }),
  upload: () => Effect.dieMessage("Nothing is uploaded here."),
  read: (url) => Effect.succeed(Option.fromNullable(provided.get(url.slice(filesUrl.length))?.bytes))
})

const adapters = Layer.unwrapEffect(
  Effect.map(MailSubmission, (mails) =>
    BuiltIn.layerWithGraph({ appSecret: null, others: [emailAdapter(mails)] })
  )
).pipe(Layer.provide([graphFiles, Layer.mock(Graph, {}), Layer.mock(MailSubmission, {})]))

const kept = Attachments.Default.pipe(
  Layer.provideMerge(Artifacts.Default),
  Layer.provideMerge(
    Layer.mergeAll(layerMemory, ArtifactRows.Default, AgentStore.Default, QueueTable.layerTable)
  )
)

/** Who answers conversations. */
export const ownershipLayer = (timeout?: Duration.DurationInput, knowledge?: Knowledge) =>
  Layer.merge(Handoff.Default, Takeover.Default.pipe(Layer.provide(adapters), Layer.provideMerge(kept))).pipe(
    Layer.provideMerge(ConversationControl.Default),
    Layer.provideMerge(turnLayer(timeout, undefined, knowledge)),
    Layer.provideMerge(Layer.mergeAll(sender, sent, ConversationStates.Default, ConversationStore.Default))
  )

export const inboundLayer = (
  timeout?: Duration.DurationInput,
  inbox = InboundEvents.Default,
  knowledge?: Knowledge
) =>
  Inbound.Default.pipe(
    Layer.provide([adapters, layerSql]),
    Layer.provideMerge(InboundFiles.Default.pipe(Layer.provide([adapters, ChannelStore.Default]))),
    Layer.provideMerge(ownershipLayer(timeout, knowledge)),
    Layer.provideMerge(Layer.mergeAll(inbox, ContactStore.Default, ChannelConversationStore.Default)),
    Layer.provideMerge(QueueTable.layerTable)
  )

export const account = "1067"

/** An active configuration of {@link account}. */
export const channelOf = (
  scope: AgentScope,
  externalId = account,
  channel: InboundMessage["channel"] = "whatsapp"
) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const id = yield* newId.channel
    const token = yield* (yield* SecretBox).seal("channel-token", "EAAB-token")
    yield* sql`
      insert into channels (id, tenant_id, agent_id, channel, external_id, access_token)
      values (${id}, ${scope.tenantId}, ${scope.agentId}, ${channel}, ${externalId}, ${token})`
    return id
  })

export const phone = (value: string): ContactAlias => ({ kind: "phone", value })
export const user = (value: string): ContactAlias => ({ kind: "user_id", value })

let count = 0

/** A message that has just been written. */
export const message = (fields: Partial<InboundMessage> = {}) =>
  Effect.map(DateTime.now, (timestamp): InboundMessage => ({
    _tag: "Message",
    channel: "whatsapp",
    accountId: account,
    messageId: `wamid.${++count}`,
    from: [phone("491701")],
    kind: "text",
    text: `Question ${count}`,
    media: [],
    standby: false,
    timestamp,
    ...fields
  }))

export const ours = { outboxId: OutboxId.make("out_ours") }

/** Puts events into the inbox, as webhooks do; returns their ids in order. */
export const accept = (...events: ReadonlyArray<InboundEvent>) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const inbox = yield* InboundEvents
    const before = yield* sql<{ readonly id: string }>`select id from channel_inbox`
    const known = new Set(before.map(({ id }) => id))
    yield* inbox.accept(events.map((event, place) => ({ event, raw: { place } })))
    const after = yield* sql<{
      readonly id: string
    }>`select id from channel_inbox order by received_at, (raw ->> 'place')::int`
    return after.filter(({ id }) => !known.has(id)).map(({ id }) => InboundEventId.make(id))
  })

export const job = (inboxId: InboundEventId, fields: Partial<QueueJob> = {}): QueueJob => ({
  id: QueueJobId.make("qjb_1"),
  queue: "channel-inbound",
  payload: { inboxId },
  attempt: 1,
  lastAttempt: false,
  ...fields
})

/** Accepts the events and processes them one after the other. */
export const receive = (...events: ReadonlyArray<InboundEvent>) =>
  Effect.gen(function* () {
    const inbound = yield* Inbound
    for (const id of yield* accept(...events)) yield* inbound.process(job(id))
  })

/** What stands in the conversations, oldest conversation first. */
export const transcript = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly line: string }>`
    select position || ' ' || coalesce(author, role) || ': ' || content as line
    from messages order by conversation_id, position`
  return rows.map(({ line }) => line)
})

/** What goes out, in order. */
export const outbox = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly line: string }>`
    select author || ' ' || epoch || ': ' || body as line from channel_outbox order by id`
  return rows.map(({ line }) => line)
})

export const states = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly state: string }>`select state from conversations order by id`
  return rows.map(({ state }) => state)
})
