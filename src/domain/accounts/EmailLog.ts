/** Mails that the service sent, and what the e-mail provider tells of them. */
import * as Schema from "effect/Schema"
import { sanitize } from "../Text.ts"

/** A mail as it is listed. */
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

/** Body of the provider's webhook: every field but `event` is taken as found. */
export const EmailEvents = Schema.Array(
  Schema.Struct(
    { event: Schema.String },
    Schema.Record({ key: Schema.String, value: Schema.Unknown })
  ).annotations({ title: "an object with a string event" })
).annotations({ title: "an array of objects that each have a string event" })
export type EmailEvents = typeof EmailEvents.Type

/**
 * How far each status is: an event moves a mail forward only, so that repeats and late events change nothing. What the
 * provider calls otherwise (`unsubscribe` …) is not about the mail's delivery.
 */
export const progress = [
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

/** From here on a status is the provider's. */
const told: ReadonlyArray<string> = progress.slice(progress.indexOf("processed"))

/** What one event says of the mail that the provider knows by `id`. */
export interface Delivery {
  readonly id: string
  readonly status: string
}

const text = (value: unknown) => (typeof value === "string" ? [sanitize(value).trim()] : [])

/** The ids by which an event may name its mail: the provider's own up to the first dot, or the mail's Message-ID. */
const idsOf = (event: EmailEvents[number]): ReadonlyArray<string> => {
  const own = text(event["sg_message_id"]).flatMap((id) => id.split(".", 1))
  const header = text(event["smtp-id"]).flatMap((id) => [id, id.replace(/^<|>$/gu, "")])
  return [...new Set([...own, ...header])].filter((id) => id !== "")
}

/** What the events say of mails; those that name none, or say nothing of a delivery, say nothing. */
export const deliveriesOf = (events: EmailEvents): ReadonlyArray<Delivery> =>
  events
    .filter(({ event }) => told.includes(event))
    .flatMap((event) => idsOf(event).map((id) => ({ id, status: event.event })))
