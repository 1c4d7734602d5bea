/** Retention periods of a tenant, and of the installation. */
import * as Schema from "effect/Schema"

/** Days; null keeps data for ever. */
const Days = Schema.NullOr(Schema.Int.pipe(Schema.between(1, 3_650)))

const limits = {
  /** Conversations with their messages, from the last change. */
  conversations: Days,
  /** Conversations of people who have neither an id of the tenant nor an alias, together with these people. */
  anonymousPeople: Days,
  /** Runs with their traces, from their end. */
  runs: Days,
  auditEntries: Days,
  emailLogs: Days,
  /** Payloads of webhooks. They are kept for at most seven days. */
  eventDeliveries: Days,
  /** Jobs that have ended. The last job of a source is kept. */
  ingestionJobs: Days
}

export const Retention = Schema.Struct(limits)
export type Retention = typeof Retention.Type

/** Omitted fields stay as they are. */
export const PatchRetention = Schema.partialWith(Retention, { exact: true })
export type PatchRetention = typeof PatchRetention.Type

export const keepsAll: Retention = {
  conversations: null,
  anonymousPeople: null,
  runs: null,
  auditEntries: null,
  emailLogs: null,
  eventDeliveries: null,
  ingestionJobs: null
}

/** The shorter of two periods. */
export const shorter = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other)
