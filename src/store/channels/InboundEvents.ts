/**
 * What messaging providers have delivered, kept before they are answered: event, dedupe claim and job are one
 * statement. A claim lasts 24 hours; a delivery within them is a duplicate.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { JobQueue, type PreparedJobs } from "../../capabilities/JobQueue.ts"
import { type Arrival, InboundEvent } from "../../domain/channels/Channel.ts"
import { InboundEventId, typeId } from "../../domain/Ids.ts"
import * as CheapSpans from "../../concurrency/CheapSpans.ts"
import { toJsonb } from "../Jsonb.ts"

/** Whose jobs process what is kept here. */
const queueName = "channel-inbound"

/** How long after its delivery an event is kept. */
const retention = Duration.days(30)

/** Rows that one statement of tidying removes at most. */
const tidyBatchSize = 1_000

const Stored = Schema.Struct({
  event: InboundEvent,
  receivedAt: Schema.DateTimeUtcFromDate,
  state: Schema.Literal("queued", "processed", "failed")
})

/** A row of `given` below. */
interface Given {
  readonly id: InboundEventId
  readonly key: string
  readonly serial_key: string
  readonly owner: string
  readonly channel: string
  readonly account_id: string
  readonly message_id: string | null
  readonly event: object
  readonly raw: unknown
}

/** The database refused what it was given, or lost it to others: in smaller parts it may go. */
export class InboundEventRefused extends Schema.TaggedError<InboundEventRefused>()("InboundEventRefused", {
  cause: Schema.Defect
}) {}

/** SQLSTATE classes of data that do not fit, limits, and transactions that were rolled back for others. */
const refused = /^(?:22|23|40|54)/
const isRefused = (error: unknown): error is SqlError =>
  error instanceof SqlError &&
  Predicate.hasProperty(error.cause, "code") &&
  refused.test(String(error.cause.code))

/** As `InboundEvent` encodes it, of which the moment alone is not JSON already; a schema takes far longer. */
export const written = (event: InboundEvent): object => ({
  ...event,
  timestamp: DateTime.formatIso(event.timestamp)
})

/** The first alias is the most stable one. */
const serialKeyOf = (event: InboundEvent) =>
  `${event.channel}:${event.accountId}:${(event._tag === "Message" ? event.from : event.aliases)[0].value}`

/** An update of aliases has no id of its own: the same one, of the same moment, is a repeat. */
const dedupeKeyOf = (event: InboundEvent) =>
  event._tag === "Message"
    ? `inbound:${event.channel}:${event.messageId}`
    : `inbound:${serialKeyOf(event)}:${event.timestamp.epochMillis}`

const givenOf = ({ event, raw }: Arrival, now: number): Given => ({
  id: InboundEventId.make(typeId("inb", now)),
  key: dedupeKeyOf(event),
  serial_key: serialKeyOf(event),
  owner: `${event.channel}:${event.accountId}`,
  channel: event.channel,
  account_id: event.accountId,
  message_id: event._tag === "Message" ? event.messageId : null,
  event: written(event),
  raw
})

export class InboundEvents extends Effect.Service<InboundEvents>()("store/channels/InboundEvents", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const queue = yield* JobQueue

    /**
     * Keys are always claimed in one order, so that deliveries that share some wait for each other and never lock
     * each other out. A repeat within `given` loses to the first.
     */
    const insert = (given: ReadonlyArray<Given>, { ids, maxAttempts, notification }: PreparedJobs) => {
      // One text: a parameter for each column costs both sides more.
      const rows = toJsonb(given.map((one, place) => ({ ...one, job_id: ids[place], place })))
      return sql<{ readonly id: string }>`
        with given as (
          select * from jsonb_to_recordset(${rows}::jsonb) as given (
            id text, key text, channel text, account_id text, message_id text, event jsonb, raw jsonb, job_id text,
            serial_key text, owner text, place int
          )
        ), firsts as (
          select distinct on (key) id, key from given order by key, place
        ), claimed as (
          insert into dedupe_keys as known (key, expires_at)
          select key, now() + interval '24 hours' from firsts order by key
          on conflict (key) do update set expires_at = excluded.expires_at where known.expires_at <= now()
          returning key
        ), fresh as (
          select given.* from given join firsts using (id) join claimed on claimed.key = firsts.key
        ), kept as (
          insert into channel_inbox (id, channel, account_id, message_id, event, raw)
          select id, channel, account_id, message_id, event, raw from fresh order by place
        ), jobs as (
          insert into queue_jobs (id, queue, payload, serial_key, owner, max_attempts, run_at)
          select job_id, ${queueName}, jsonb_build_object('inboxId', id), serial_key, owner, ${maxAttempts}::int, clock_timestamp()
          from fresh order by place
        )
        select id, (select pg_notify(${notification.channel}, ${notification.text})) is not null as told from fresh`
    }

    /**
     * Keeps and queues what is new, all of it or nothing; answers for each arrival whether it was new. Their ids must be
     * free of NUL and lone surrogates; other texts lose them. Joins the transaction of the caller.
     */
    const accept = CheapSpans.fn("InboundEvents.accept")(
      function* (arrivals: ReadonlyArray<Arrival>) {
        if (arrivals.length === 0) return []
        const now = yield* Clock.currentTimeMillis
        const given = arrivals.map((arrival) => givenOf(arrival, now))
        const jobs = yield* queue.prepare(queueName, given.length)
        const fresh = new Set((yield* insert(given, jobs)).map(({ id }) => id))
        if (fresh.size > 0) yield* jobs.inserted
        return given.map(({ id }) => fresh.has(id))
      },
      Effect.catchIf(isRefused, (cause) => new InboundEventRefused({ cause }))
    )

    const find = SqlSchema.findOne({
      Request: InboundEventId,
      Result: Stored,
      execute: (id) =>
        sql`select event, received_at as "receivedAt", state from channel_inbox where id = ${id}`
    })

    /** Null when it is gone. */
    const event = Effect.fn("InboundEvents.event")(function* (id: InboundEventId) {
      return Option.getOrNull(yield* Effect.orDie(find(id)))
    })

    const settle = (id: InboundEventId, state: "processed" | "failed", outcome: string | null) =>
      sql`
        update channel_inbox set state = ${state}, outcome = ${outcome}, processed_at = now() where id = ${id}`.pipe(
        Effect.orDie,
        Effect.asVoid
      )

    /** `outcome` says why it was not answered; null when it was. Joins the transaction of the caller. */
    const processed = (id: InboundEventId, outcome: string | null) => settle(id, "processed", outcome)

    /** It could not be routed, or was tried too often; it can still be processed later. Joins the caller's transaction. */
    const failed = (id: InboundEventId, reason: string) => settle(id, "failed", reason)

    /** Files that came with an event are not kept twice, once they are attached to its message. */
    const withoutFiles = (id: InboundEventId) =>
      sql`
        update channel_inbox set event = jsonb_set(event, '{media}', (
          select coalesce(jsonb_agg(file - 'data' order by place), '[]')
          from jsonb_array_elements(event -> 'media') with ordinality as files (file, place)
        )) where id = ${id}`.pipe(Effect.orDie, Effect.asVoid)

    /** True when another message of the event's contact still waits to be processed. */
    const moreWaiting = (event: InboundEvent) =>
      sql`
        select from queue_jobs j join channel_inbox i on i.id = j.payload ->> 'inboxId'
        where j.queue = ${queueName} and j.serial_key = ${serialKeyOf(event)} and j.state in ('waiting', 'active')
          and i.state = 'queued' and i.event ->> '_tag' = 'Message' limit 1`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.orDie
      )

    /** Forgets claims that have run out, and what was settled 30 days ago. True when there may be more. */
    const prune = Effect.gen(function* () {
      // Ids begin with the moment they were made.
      const old = typeId("inb", (yield* Clock.currentTimeMillis) - Duration.toMillis(retention))
      const keys = yield* sql`
        delete from dedupe_keys where key = any (array(
          select key from dedupe_keys where expires_at <= now() order by key limit ${tidyBatchSize}::int for update skip locked
        )) returning key`
      const rows = yield* sql`
        delete from channel_inbox where id = any (array(
          select id from channel_inbox where id < ${old} and state <> 'queued' order by id
          limit ${tidyBatchSize}::int for update skip locked
        )) returning id`
      return keys.length === tidyBatchSize || rows.length === tidyBatchSize
    })

    return { accept, event, processed, failed, withoutFiles, moreWaiting, prune } as const
  })
}) {}
