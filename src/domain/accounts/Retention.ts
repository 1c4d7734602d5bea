/** Retention periods of a tenant. */
import * as Schema from "effect/Schema"

/** Days; null keeps for ever. */
const Days = Schema.NullOr(Schema.Int.pipe(Schema.between(1, 3_650)))

const limits = {
  /** With their messages, counted from the last change. */
  conversations: Days,
  /** Runs with their traces, from their end. */
  runs: Days,
  auditEntries: Days,
  emailLogs: Days,
  /** Payloads of webhooks; kept for at most seven days. */
  eventDeliveries: Days,
  /** Jobs that have ended; the last of a source stays. */
  ingestionJobs: Days
}

export const Retention = Schema.Struct(limits)
export type Retention = typeof Retention.Type

/** What is left out stays. */
export const PatchRetention = Schema.partialWith(Retention, { exact: true })
export type PatchRetention = typeof PatchRetention.Type
