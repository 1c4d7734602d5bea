/** Outgoing mails, in `email_logs`. A mail is stored before it is sent, so that every sent mail is recorded. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type TenantId, typeId } from "../../domain/Ids.ts"
import { QueueName } from "../../domain/knowledge/Job.ts"
import * as Rows from "../Rows.ts"

/** The kind of a mail about failed jobs of a queue. */
export const jobsFailed = (queue: string) => `job_failed:${queue}`

/** Later failures are left to the next mail, because transactions may commit later than their time stamp. */
const commitDelay = "2 seconds"
/** Older failures are not reported. */
const maxReportedAge = "24 hours"
/** A mail that is `queued` for longer was not sent. Must be longer than all time-outs of sending. */
const maxSendingTime = "5 minutes"

const Failures = Schema.Struct({
  queue: QueueName,
  failed: Schema.Int,
  /** Ids of the latest jobs, at most five. */
  ids: Schema.Array(Schema.String),
  /** When the latest of them failed. */
  last: Schema.DateTimeUtcFromDate,
  /** End of the reported time: the next mail reports later failures. */
  until: Schema.DateTimeUtcFromDate
})
export type Failures = typeof Failures.Type

export interface OutgoingMail {
  readonly tenantId: string | null
  readonly recipient: string
  readonly kind: string
  readonly createdAt?: DateTime.Utc
}

export class OutgoingMailStore extends Effect.Service<OutgoingMailStore>()("store/accounts/OutgoingMails", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Inserts the mail as `queued` and returns the id of its row. */
    const insert = Effect.fn("OutgoingMailStore.insert")(function* (mail: OutgoingMail) {
      const id = typeId("eml", yield* Clock.currentTimeMillis)
      const at = mail.createdAt === undefined ? null : DateTime.formatIso(mail.createdAt)
      yield* sql`
        insert into email_logs (id, tenant_id, recipient, kind, created_at)
        values (${id}, ${mail.tenantId}, ${mail.recipient}, ${mail.kind}, coalesce(${at}::timestamptz, now()))`
      return id
    }, Effect.orDie)

    /** The tenant's mails of this kind that were stored and not sent yet. */
    const queued = (tenantId: TenantId, kind: string) =>
      sql`
        select id, recipient from email_logs
        where tenant_id = ${tenantId} and kind = ${kind} and status = 'queued' order by id`.pipe(
        Rows.all(Schema.Struct({ id: Schema.String, recipient: Schema.String })),
        Effect.withSpan("OutgoingMailStore.queued")
      )

    /** Has no effect if an event of the provider came first. */
    const markSent = Effect.fn("OutgoingMailStore.markSent")(function* (
      id: string,
      providerMessageId: string
    ) {
      yield* sql`
        update email_logs set status = case when status = 'queued' then 'sent' else status end,
          provider_message_id = ${providerMessageId}, sent_at = now(), updated_at = now()
        where id = ${id}`
    }, Effect.orDie)

    const markFailed = Effect.fn("OutgoingMailStore.markFailed")(function* (id: string, reason: string) {
      yield* sql`
        update email_logs set status = 'failed', last_error = ${reason}, updated_at = now() where id = ${id}`
    }, Effect.orDie)

    /**
     * Jobs that failed permanently since the last mail about their queue, by queue. A mail that was `queued` for too
     * long does not count: its process ended before it was sent.
     */
    const failures = sql`
      with cut as (select date_trunc('milliseconds', clock_timestamp() - ${commitDelay}::interval) as until)
      select name as queue, count(*)::int as failed, (array_agg(id order by finished_at desc))[1:5] as ids, max(finished_at) as last, until
      from cut cross join unnest(${[...QueueName.literals]}::text[]) as names (name)
        join lateral (
          select max(created_at) as at from email_logs where kind = 'job_failed:' || name and status <> 'failed'
            and (status <> 'queued' or updated_at > clock_timestamp() - ${maxSendingTime}::interval)
        ) told on true
        join queue_jobs on queue = name and state = 'failed' and finished_at <= until
          and finished_at > greatest(told.at, until - ${maxReportedAge}::interval)
      group by name, until`.pipe(Rows.all(Failures), Effect.withSpan("OutgoingMailStore.failures"))

    return { insert, queued, markSent, markFailed, failures } as const
  })
}) {}
