/** Events that are reported to addresses of the customer, by the conventions of Standard Webhooks. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { urlOf } from "../Address.ts"
import { typeId } from "../Ids.ts"
import { optional } from "../Optional.ts"
import { Text } from "../Text.ts"
import { TimestampInput } from "../TimestampInput.ts"
import { Version } from "../Version.ts"

export const WebhookId = Text.pipe(Schema.minLength(1), Schema.brand("WebhookId"))
export type WebhookId = typeof WebhookId.Type
export const newWebhookId = Effect.map(Clock.currentTimeMillis, (now) => WebhookId.make(typeId("whk", now)))

/** Events that an endpoint may subscribe to. */
export const EventType = Schema.Literal(
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
)
export type EventType = typeof EventType.Type

/** Example ids of each event type. They do not exist. */
export const exampleIds: Readonly<Record<EventType, Readonly<Record<string, unknown>>>> = {
  "conversation.started": { conversationId: "cnv_example", endUserId: "eus_example", channel: "api" },
  "turn.settled": {
    conversationId: "cnv_example",
    runId: "run_example",
    messageId: "msg_example",
    status: "complete"
  },
  "handoff.requested": { conversationId: "cnv_example" },
  "handoff.taken": { conversationId: "cnv_example" },
  "message.sent": { conversationId: "cnv_example", messageId: "msg_example", userId: null },
  "source.ready": { sourceId: "src_example", ingestionJobId: "job_example" },
  "source.failed": { sourceId: "src_example", ingestionJobId: "job_example" },
  "feedback.given": { conversationId: "cnv_example", messageId: "msg_example", rating: 1 },
  "version.published": { version: 1 },
  "budget.near": {
    budgetId: "bgt_example",
    keyId: null,
    period: "month",
    percent: 80,
    limitNanoUsd: 100_000_000_000,
    spentNanoUsd: 80_100_000_000
  },
  "channel.failing": { channelId: "chn_example", channel: "whatsapp" },
  "channel.recovered": { channelId: "chn_example", channel: "whatsapp" },
  "gap.found": { gapId: "grp_example", count: 5, people: 3, runIds: ["run_example"] }
}

/** Sent on request, whatever the endpoint subscribes to. */
export const testEvent = "webhook.test"

const EventTypes = Schema.Array(EventType).pipe(
  Schema.minItems(1, { message: () => "Expected at least one event type" }),
  Schema.maxItems(100),
  Schema.transform(Schema.Array(EventType), {
    strict: true,
    decode: (all) => [...new Set(all)],
    encode: (all) => all
  })
)

/** `thin`: ids only. `full`: also the content, as it is when the event is sent. */
export const Payload = Schema.Literal("thin", "full")
export type Payload = typeof Payload.Type

const WebhookUrl = Text.pipe(
  Schema.maxLength(2_048),
  Schema.filter(
    (text) =>
      (/^https?:\/\/[^\s/?#@\\]+(?:[/?][^\s#\\]*)?$/i.test(text) && urlOf(text) !== null) ||
      "Expected an http or https URL without credentials"
  )
)

/** `manual`: by a team member. `gone`: it answered 410. `failing`: it has failed for three days. */
const DisabledReason = Schema.Literal("manual", "gone", "failing")

/** An endpoint without its secret. */
export const Webhook = Schema.Struct({
  id: WebhookId,
  url: Schema.String,
  events: Schema.Array(EventType),
  payload: Payload,
  status: Schema.Literal("active", "disabled"),
  /** Null while it is active. */
  disabledReason: Schema.NullOr(DisabledReason),
  /** When calls began to fail; null if the last one succeeded. */
  failingSince: Schema.NullOr(Schema.DateTimeUtc),
  version: Version,
  createdAt: Schema.DateTimeUtc,
  updatedAt: Schema.DateTimeUtc
})
export type Webhook = typeof Webhook.Type

export const CreateWebhook = Schema.Struct({
  url: WebhookUrl,
  events: EventTypes,
  payload: Schema.optionalWith(Payload, { exact: true, default: () => "thin" as const })
})
export type CreateWebhook = typeof CreateWebhook.Type

/** The events that a developer listens to: all types, unless some are named. */
export const StartListener = Schema.Struct({
  events: Schema.optionalWith(EventTypes, { exact: true, default: () => EventType.literals }),
  payload: Schema.optionalWith(Payload, { exact: true, default: () => "thin" as const })
})
export type StartListener = typeof StartListener.Type

/** An event as a webhook receives it: its signed headers and its body. */
export const ReceivedEvent = Schema.Struct({
  id: Schema.String,
  type: Schema.String,
  headers: Schema.Record({ key: Schema.String, value: Schema.String }),
  body: Schema.String
})
export type ReceivedEvent = typeof ReceivedEvent.Type

/** Omitted fields stay. */
export const PatchWebhook = Schema.Struct({
  url: optional(WebhookUrl),
  events: optional(EventTypes),
  payload: optional(Payload),
  status: optional(Schema.Literal("active", "disabled"))
})
export type PatchWebhook = typeof PatchWebhook.Type

/** `from` is inclusive, `to` exclusive. Default of `to`: now. */
export const ReplayRange = Schema.Struct({ from: TimestampInput, to: optional(TimestampInput) })
export type ReplayRange = typeof ReplayRange.Type

export const Replayed = Schema.Struct({
  /** Number of events that will be sent again. */
  replayed: Schema.Int,
  /** Position for the next request when the range is larger than one request allows; null at the end. */
  nextFrom: Schema.NullOr(Schema.DateTimeUtc)
})

/**
 * State of an event at an endpoint. `cancelled`: the endpoint was disabled first. `failed`: attempts ended after three
 * days.
 */
export const DeliveryStatus = Schema.Literal("pending", "delivered", "failed", "cancelled")

export const WebhookDelivery = Schema.Struct({
  eventId: Schema.String,
  type: Schema.String,
  status: DeliveryStatus,
  attempts: Schema.Int,
  /** Status of the last answer; null if there was none. */
  answerStatus: Schema.NullOr(Schema.Int),
  /** The beginning of the last answer's body. */
  answerText: Schema.NullOr(Schema.String),
  /** Why the last attempt got no answer. */
  error: Schema.NullOr(Schema.String),
  createdAt: Schema.DateTimeUtc,
  attemptedAt: Schema.NullOr(Schema.DateTimeUtc),
  settledAt: Schema.NullOr(Schema.DateTimeUtc)
})
export type WebhookDelivery = typeof WebhookDelivery.Type
