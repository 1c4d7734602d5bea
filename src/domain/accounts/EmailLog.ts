/** Mails that the service sent, with the delivery status that the e-mail provider reports. */
import * as Schema from "effect/Schema"
import { sanitize } from "../Text.ts"

/** An entry of the list of mails. */
export const EmailLog = Schema.Struct({
  id: Schema.String,
  to: Schema.String,
  /** The kind of mail. */
  kind: Schema.String,
  status: Schema.String.annotations({
    description: "queued, sent or failed; later the last word of the provider's events"
  }),
  sentAt: Schema.NullOr(Schema.DateTimeUtc),
  updatedAt: Schema.DateTimeUtc
})
export type EmailLog = typeof EmailLog.Type

/** Body of the provider's webhook. Every field except `event` is accepted as it is. */
export const EmailEvents = Schema.Array(
  Schema.Struct(
    { event: Schema.String },
    Schema.Record({ key: Schema.String, value: Schema.Unknown })
  ).annotations({ title: "an object with a string event" })
).annotations({ title: "an array of objects that each have a string event" })
export type EmailEvents = typeof EmailEvents.Type

/**
 * Statuses in order. An event moves a mail forward only, so repeated and late events change nothing. Other events of
 * the provider (`unsubscribe` …) are not about delivery.
 */
export const statusOrder = [
  "queued",
  "sent",
  "failed",
  "processed",
  "deferred",
  "delivered",
  "open",
  "click",
  "spamreport",
  "dropped",
  "bounce"
] as const

/** Statuses that the provider reports. */
const reportedStatuses: ReadonlyArray<string> = statusOrder.slice(statusOrder.indexOf("processed"))

/** The status that one event reports for the mail with the provider's id. */
export interface Delivery {
  readonly id: string
  readonly status: string
}

const textIn = (value: unknown) => (typeof value === "string" ? [sanitize(value).trim()] : [])

/** The ids in an event: the provider's own up to the first dot, or the mail's Message-ID. */
const idsOf = (event: EmailEvents[number]): ReadonlyArray<string> => {
  const own = textIn(event["sg_message_id"]).flatMap((id) => id.split(".", 1))
  const header = textIn(event["smtp-id"]).flatMap((id) => [id, id.replace(/^<|>$/gu, "")])
  return [...new Set([...own, ...header])].filter((id) => id !== "")
}

/** The statuses in `events`. Events without an id or without a delivery status are ignored. */
export const deliveriesOf = (events: EmailEvents): ReadonlyArray<Delivery> =>
  events
    .filter(({ event }) => reportedStatuses.includes(event))
    .flatMap((event) => idsOf(event).map((id) => ({ id, status: event.event })))
