/**
 * Events delivered by messaging providers, stored before the delivery is acknowledged. Event, dedupe claim and job are
 * inserted by one statement. A claim lasts 24 hours; a delivery within that time is a duplicate.
 */
import { createHash } from "node:crypto"
import * as SqlClient from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
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
import * as Rows from "../Rows.ts"

/** The queue whose jobs process the events. */
const queueName = "channel-inbound"

/** How long an event is kept after its delivery. */
const retention = Duration.days(30)

/** Maximum number of rows that one cleanup statement removes. */
const pruneBatchSize = 1_000

const Stored = Schema.Struct({
  event: InboundEvent,
  receivedAt: Schema.DateTimeUtcFromDate,
  state: Schema.Literal("queued", "processed", "failed")
})

/** A row of `given` in the statement below. */
interface InboundRow {
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

/** The database refused the rows, or rolled back because of another transaction. Smaller batches may succeed. */
export class InboundEventRefused extends Schema.TaggedError<InboundEventRefused>()("InboundEventRefused", {
  cause: Schema.Defect
}) {}

/** SQLSTATE classes of invalid data, exceeded limits, and transactions that were rolled back for others. */
const refused = /^(?:22|23|40|54)/
const isRefused = (error: unknown): error is SqlError =>
  error instanceof SqlError &&
  Predicate.hasProperty(error.cause, "code") &&
  refused.test(String(error.cause.code))

/**
 * Encodes like the schema `InboundEvent`, in which only the timestamp is not JSON already. The schema itself is far
 * slower.
 */
export const encodeEvent = (event: InboundEvent): object => ({
  ...event,
  timestamp: DateTime.formatIso(event.timestamp)
})

/** The first alias is the most stable one. */
const serialKeyOf = (event: InboundEvent) =>
  `${event.channel}:${event.accountId}:${(event._tag === "Message" ? event.from : event.aliases)[0].value}`

/**
 * An update of aliases has no id of its own. The same update with the same timestamp is a repeat. The alias is hashed,
 * because a claim outlives an erased contact.
 */
const dedupeKeyOf = (event: InboundEvent) =>
  event._tag === "Message"
    ? `inbound:${event.channel}:${event.messageId}`
    : `inbound:${createHash("sha256")
        .update(`${serialKeyOf(event)}:${event.timestamp.epochMillis}`)
        .digest("hex")}`

const rowOf = ({ event, raw }: Arrival, now: number): InboundRow => ({
  id: InboundEventId.make(typeId("inb", now)),
  key: dedupeKeyOf(event),
  serial_key: serialKeyOf(event),
  owner: `${event.channel}:${event.accountId}`,
  channel: event.channel,
  account_id: event.accountId,
  message_id: event._tag === "Message" ? event.messageId : null,
  event: encodeEvent(event),
  raw
})

export class InboundEvents extends Effect.Service<InboundEvents>()("store/channels/InboundEvents", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const queue = yield* JobQueue

    /**
     * Inserts the rows whose keys are new. Of several rows with the same key, the first is inserted. Keys are claimed
     * in a fixed order, so that deliveries with the same keys cannot deadlock.
     */
    const insert = (given: ReadonlyArray<InboundRow>, { ids, maxAttempts, notification }: PreparedJobs) => {
      // One JSON text, because a parameter for each column costs more on both sides.
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
     * Stores and queues all new events, or none on failure. Returns for each arrival whether it was new. Ids must be
     * free of NUL and lone surrogates; these are removed from other texts. Joins the caller's transaction.
     */
    const accept = CheapSpans.fn("InboundEvents.accept")(
      function* (arrivals: ReadonlyArray<Arrival>) {
        if (arrivals.length === 0) return []
        const now = yield* Clock.currentTimeMillis
        const given = arrivals.map((arrival) => rowOf(arrival, now))
        const jobs = yield* queue.prepare(queueName, given.length)
        const fresh = new Set((yield* insert(given, jobs)).map(({ id }) => id))
        if (fresh.size > 0) yield* jobs.inserted
        return given.map(({ id }) => fresh.has(id))
      },
      Effect.catchIf(isRefused, (cause) => new InboundEventRefused({ cause }))
    )

    /** Null when it does not exist. */
    const event = Effect.fn("InboundEvents.event")(function* (id: InboundEventId) {
      const found =
        yield* sql`select event, received_at as "receivedAt", state from channel_inbox where id = ${id}`.pipe(
          Rows.first(Stored)
        )
      return Option.getOrNull(found)
    })

    const settle = (id: InboundEventId, state: "processed" | "failed", outcome: string | null) =>
      sql`
        update channel_inbox set state = ${state}, outcome = ${outcome}, processed_at = now()
        where id = ${id} returning id`.pipe(Rows.any)

    /**
     * `outcome`: why the event was not answered; null when it was. False when the event was erased. Joins the caller's
     * transaction.
     */
    const markProcessed = (id: InboundEventId, outcome: string | null) => settle(id, "processed", outcome)

    /**
     * For an event that could not be routed, or had too many attempts. It can still be processed later. Joins the
     * caller's transaction.
     */
    const markFailed = (id: InboundEventId, reason: string) => Effect.asVoid(settle(id, "failed", reason))

    /** Removes the files of an event once they are attached to its message, so that they are not stored twice. */
    const removeFiles = (id: InboundEventId) =>
      sql`
        update channel_inbox set event = jsonb_set(event, '{media}', (
          select coalesce(jsonb_agg(file - 'data' order by place), '[]')
          from jsonb_array_elements(event -> 'media') with ordinality as files (file, place)
        )) where id = ${id}`.pipe(Rows.none)

    /** True when another message of the event's contact waits to be processed. */
    const hasWaitingMessage = (event: InboundEvent) =>
      sql`
        select from queue_jobs j join channel_inbox i on i.id = j.payload ->> 'inboxId'
        where j.queue = ${queueName} and j.serial_key = ${serialKeyOf(event)} and j.state in ('waiting', 'active')
          and i.state = 'queued' and i.event ->> '_tag' = 'Message' limit 1`.pipe(Rows.any)

    /**
     * Deletes expired claims, events settled 30 days ago, and failed jobs without an event, whose serial keys have an
     * alias. True when there may be more.
     */
    const prune = Effect.gen(function* () {
      // Ids begin with their creation time.
      const old = typeId("inb", (yield* Clock.currentTimeMillis) - Duration.toMillis(retention))
      const keys = yield* sql`
        delete from dedupe_keys where key = any (array(
          select key from dedupe_keys where expires_at <= now() order by key limit ${pruneBatchSize}::int for update skip locked
        )) returning key`
      const rows = yield* sql`
        delete from channel_inbox where id = any (array(
          select id from channel_inbox where id < ${old} and state <> 'queued' order by id
          limit ${pruneBatchSize}::int for update skip locked
        )) returning id`
      const jobs = yield* sql`
        delete from queue_jobs where id = any (array(
          select j.id from queue_jobs j
          where j.queue = ${queueName} and j.state = 'failed'
            and not exists (select from channel_inbox i where i.id = j.payload ->> 'inboxId')
            and j.payload ->> 'inboxId' is not null
          limit ${pruneBatchSize}::int for update of j skip locked
        )) returning id`
      return [keys, rows, jobs].some(({ length }) => length === pruneBatchSize)
    })

    return { accept, event, markProcessed, markFailed, removeFiles, hasWaitingMessage, prune } as const
  })
}) {}
