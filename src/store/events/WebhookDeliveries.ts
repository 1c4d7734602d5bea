/** Past and pending deliveries to endpoints: one row per event and endpoint. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { hasCome } from "../../concurrency/DatabaseTime.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import {
  DeliveryStatus,
  Payload,
  testEvent,
  WebhookDelivery,
  WebhookId
} from "../../domain/events/Webhook.ts"
import { TenantId } from "../../domain/Ids.ts"
import { type Page, pageBy } from "../../domain/Page.ts"
import { JsonObject, sanitize } from "../../domain/Text.ts"
import type { PageRequest } from "../accounts/Tenants.ts"
import { deliveryJobs, keepsAnswer, ownerOf, queueName } from "./ReportedEvents.ts"
import * as Rows from "../Rows.ts"

/** How long a delivery is kept after its event. A pending one is kept until it has ended. */
const retention = Duration.days(7)
/** Maximum number of rows that one sweep removes. */
const sweepBatch = 1_000
/** Maximum number of events that one replay sends again. */
const maxReplayed = 10_000
/** Maximum number of characters of an answer, or of an error, that are stored. */
const maxTextCharacters = 1_000
/** Number of consecutive failures after which an endpoint is called by one delivery at a time. */
export const failuresBeforePause = 5
/** Longest pause of an endpoint. */
export const maxPause = Duration.hours(1)
/** No worker has run if a failing endpoint was not called for this time. */
const idleTime = Duration.times(maxPause, 2)
/** A delivery is given up, and its endpoint disabled, after this time without a successful call. */
const maxRetryTime = Duration.days(3)
/** The others are due after that delivery's attempt. */
const afterProbe = "interval '15 seconds'"
/** If a worker dies during an attempt, other deliveries to the endpoint wait for this time. */
const probeLease = Duration.seconds(60)

/** Key of a delivery. */
export interface DeliveryKey extends TenantScope {
  readonly eventId: string
  readonly endpointId: WebhookId
}

const LogRow = Schema.Struct({
  ...WebhookDelivery.fields,
  createdAt: Schema.DateTimeUtcFromDate,
  attemptedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  settledAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  place: Schema.String
})

/** The data that a call needs. */
export const ClaimedDelivery = Schema.Struct({
  tenantId: TenantId,
  url: Schema.String,
  payload: Payload,
  active: Schema.Boolean,
  /** True for a listener, which has no address and fetches its deliveries. */
  listening: Schema.Boolean,
  /** Sealed secrets that currently sign, the newest first. */
  secrets: Schema.Array(Schema.String),
  /** Number of consecutive failed calls of the endpoint. */
  failures: Schema.Int,
  /** Milliseconds until the endpoint may be called, if it keeps failing and this delivery must wait; else null. */
  pausedMs: Schema.NullOr(Schema.Number),
  type: Schema.String,
  agentId: Schema.NullOr(Schema.String),
  conversationId: Schema.NullOr(Schema.String),
  ids: JsonObject,
  /** The additional fields of a full payload. Null for a thin one, and after they were removed. */
  content: Schema.NullOr(JsonObject),
  createdAt: Schema.DateTimeUtcFromDate,
  attempts: Schema.Int
})
export type ClaimedDelivery = typeof ClaimedDelivery.Type

/** The result of a call. */
export interface Answer {
  readonly status: number | null
  readonly text: string | null
  readonly error: string | null
}

const Failed = Schema.Struct({
  /** Whether the endpoint has failed for too long. */
  isFailing: Schema.Boolean,
  /** Whether the delivery is given up. */
  isOver: Schema.Boolean
})

const storableText = (text: string | null) =>
  text === null ? null : sanitize(text).slice(0, maxTextCharacters)

export class WebhookDeliveryStore extends Effect.Service<WebhookDeliveryStore>()(
  "store/events/WebhookDeliveries",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** Newest first; `after` is the position of the last one of the previous page. */
      const page = (
        { tenantId }: TenantScope,
        endpointId: WebhookId,
        { after, limit, status }: PageRequest & { readonly status?: typeof DeliveryStatus.Type | undefined }
      ): Effect.Effect<Page<WebhookDelivery>> =>
        sql`
          select d.event_id as "eventId", d.type, d.status, d.attempts, d.answer_status as "answerStatus",
            d.answer_text as "answerText", d.error, d.created_at as "createdAt", d.attempted_at as "attemptedAt",
            d.settled_at as "settledAt", d.seq::text as place
          from webhook_endpoints e join webhook_deliveries d on d.tenant_id = e.tenant_id and d.endpoint_id = e.id
          where e.tenant_id = ${tenantId} and e.id = ${endpointId}
            and ${after === undefined ? sql`true` : sql`d.seq < ${after}::bigint`}
            and ${status === undefined ? sql`true` : sql`d.status = ${status}`}
          order by d.seq desc limit ${limit + 1}`.pipe(
          Rows.all(LogRow),
          Effect.map((found) => {
            const { next, rows } = pageBy(found, limit, ({ place }) => place)
            return { rows: rows.map(({ place: _, ...row }) => row), next }
          })
        )

      /** The current content. Data of a person erased meanwhile is no longer in it. */
      const content = sql`
        case d.type
          when 'turn.settled' then (
            select jsonb_build_object('message', r.user_message, 'reply', m.content, 'citations', m.citations)
            from agent_runs r
            left join messages m on m.tenant_id = r.tenant_id and m.conversation_id = r.conversation_id
              and m.id = r.message_id and m.role = 'assistant'
            where r.tenant_id = d.tenant_id and r.id = d.ids ->> 'runId')
          when 'handoff.requested' then (
            select jsonb_build_object('reason', c.handoff_reason) from conversations c
            where c.tenant_id = d.tenant_id and c.id = d.conversation_id)
          when 'conversation.started' then (
            select jsonb_build_object('externalEndUserId', u.external_id) from end_users u
            where u.tenant_id = d.tenant_id and u.id = d.ids ->> 'endUserId')
          when 'message.sent' then (
            select jsonb_build_object('content', m.content) from messages m
            where m.tenant_id = d.tenant_id and m.conversation_id = d.conversation_id and m.id = d.ids ->> 'messageId')
          when 'source.ready' then (
            select jsonb_build_object('name', s.name, 'type', s.type) from sources s
            where s.tenant_id = d.tenant_id and s.id = d.ids ->> 'sourceId')
          when 'source.failed' then (
            select jsonb_build_object('name', s.name, 'type', s.type, 'error', s.last_error)
            from sources s
            where s.tenant_id = d.tenant_id and s.id = d.ids ->> 'sourceId')
          when 'feedback.given' then (
            select jsonb_build_object('comment', f.comment) from message_feedback f
            where f.tenant_id = d.tenant_id and f.conversation_id = d.conversation_id and f.message_id = d.ids ->> 'messageId')
        end`

      /**
       * The delivery to send now; none if it is not pending any more. For an endpoint that keeps failing, one delivery
       * is tried at a time, and the others are paused.
       */
      const take = ({
        endpointId,
        eventId,
        tenantId
      }: DeliveryKey): Effect.Effect<Option.Option<ClaimedDelivery>> =>
        sql`
          with delivery as (
            select * from webhook_deliveries
            where tenant_id = ${tenantId} and event_id = ${eventId} and endpoint_id = ${endpointId} and status = 'pending'
          ),
          probe as (
            update webhook_endpoints e
            set retry_at = clock_timestamp() + make_interval(secs => ${Duration.toSeconds(probeLease)})
            from delivery where e.tenant_id = delivery.tenant_id and e.id = delivery.endpoint_id and e.status = 'active'
              and e.failures >= ${failuresBeforePause}::int and coalesce(${hasCome(sql, sql`e.retry_at`, maxPause)}, true)
            returning e.id
          )
          select e.tenant_id as "tenantId", e.url, e.payload, e.status = 'active' as active,
            e.listening_until is not null as listening,
            array_remove(array[e.secret, case when e.previous_until > now() then e.previous_secret end], null) as secrets,
            e.failures,
            case when e.failures >= ${failuresBeforePause}::int and not exists (select from probe) then
              greatest(0, extract(epoch from coalesce(e.retry_at, now()) - clock_timestamp()) * 1000)::float8
            end as "pausedMs",
            d.type, d.agent_id as "agentId", d.conversation_id as "conversationId", d.ids,
            case when e.payload = 'full' then ${content} end as content,
            d.created_at as "createdAt", d.attempts
          from delivery d join webhook_endpoints e on e.tenant_id = d.tenant_id and e.id = d.endpoint_id`.pipe(
          Rows.first(ClaimedDelivery)
        )

      const answerColumns = ({ error, status, text }: Answer) => sql`
        attempts = attempts + 1, attempted_at = now(), answer_status = ${status}::int, answer_text = case when ${keepsAnswer(sql)} then ${storableText(text)}::text end,
        error = ${storableText(error)}::text`

      const earliest = sql`now() - make_interval(secs => ${Duration.toSeconds(maxRetryTime)})`

      const isOfEndpoint = (tenantId: string, endpointId: WebhookId) =>
        sql`queue = ${queueName} and owner in (${ownerOf(tenantId, endpointId)}, ${endpointId}) and state = 'waiting'`

      /** Runs the jobs that wait because of earlier failures now. */
      const retryNow = ({ tenantId }: TenantScope, endpointId: WebhookId) =>
        sql`
          with due as (
            update queue_jobs set run_at = clock_timestamp()
            where id in (
              select id from queue_jobs where ${isOfEndpoint(tenantId, endpointId)} and run_at > clock_timestamp()
              order by id for update
            )
            returning id
          )
          select pg_notify('queue_jobs', ${queueName}) where exists (select from due)`.pipe(Rows.none)

      /** Records a successful call. True when others wait because of earlier failures. */
      const recordSuccess = ({ endpointId, eventId, tenantId }: DeliveryKey, answer: Answer) =>
        sql<{ readonly paused: boolean }>`
          with delivery as (
            update webhook_deliveries set status = 'delivered', settled_at = now(), ${answerColumns(answer)}
            where tenant_id = ${tenantId} and event_id = ${eventId} and endpoint_id = ${endpointId} and status = 'pending'
          ),
          before as (select failures from webhook_endpoints where tenant_id = ${tenantId} and id = ${endpointId}),
          endpoint as (
            update webhook_endpoints set failures = 0, failing_since = null, retry_at = null
            where tenant_id = ${tenantId} and id = ${endpointId} and failures > 0
          )
          select failures >= ${failuresBeforePause}::int as paused from before`.pipe(
          Effect.orDie,
          Effect.map(([row]) => row?.paused === true)
        )

      /**
       * Records a failed attempt. It was the last one if the endpoint `isGone`, or after {@link maxRetryTime}, which
       * begins again after a time in which no worker ran. An endpoint that keeps failing is not called again before
       * `pause` has passed: all its waiting jobs but one are delayed until after that call. None when the endpoint was
       * deleted or has another address than `url`, which was called: its delivery stays pending.
       */
      const recordFailure = (
        { endpointId, eventId, tenantId }: DeliveryKey,
        answer: Answer,
        {
          isGone,
          pause,
          url
        }: { readonly isGone: boolean; readonly pause: Duration.Duration; readonly url: string }
      ) =>
        sql`
          with before as (
            select failing_since <= ${earliest} and not exists (
                select from webhook_deliveries where tenant_id = ${tenantId} and endpoint_id = ${endpointId}
                  and attempted_at > now() - make_interval(secs => ${Duration.toSeconds(idleTime)})
              ) as was_idle
            from webhook_endpoints where tenant_id = ${tenantId} and id = ${endpointId}
          ),
          endpoint as (
            update webhook_endpoints set failures = failures + 1,
              failing_since = case when was_idle then now() else coalesce(failing_since, now()) end,
              retry_at = case when failures + 1 >= ${failuresBeforePause}::int
                then clock_timestamp() + make_interval(secs => ${Duration.toSeconds(pause)}) end
            from before
            where tenant_id = ${tenantId} and id = ${endpointId} and url = ${url}
            returning retry_at, coalesce(was_idle, false) as was_idle, failing_since <= ${earliest} as is_failing
          ),
          over as (
            select coalesce(bool_or(was_idle), false) as was_idle,
              coalesce(bool_or(${isGone}::boolean or pending_since <= ${earliest} and not was_idle), false) as is_over
            from endpoint, webhook_deliveries
            where tenant_id = ${tenantId} and event_id = ${eventId} and endpoint_id = ${endpointId} and status = 'pending'
          ),
          delivery as (
            update webhook_deliveries set ${answerColumns(answer)},
              pending_since = case when was_idle then now() else pending_since end,
              status = case when is_over then 'failed' else 'pending' end, settled_at = case when is_over then now() end
            from over
            where tenant_id = ${tenantId} and event_id = ${eventId} and endpoint_id = ${endpointId} and status = 'pending'
          ),
          others as (
            update webhook_deliveries set pending_since = now() from endpoint
            where was_idle and tenant_id = ${tenantId} and endpoint_id = ${endpointId} and event_id <> ${eventId} and status = 'pending'
          ),
          early as (
            select id, row_number() over (order by seq) = 1 as tries from (
              select id, seq from queue_jobs
              where ${isOfEndpoint(tenantId, endpointId)} and run_at < (select retry_at from endpoint)
              order by id for update
            ) found
          ),
          put_off as (
            update queue_jobs j set run_at = retry_at + case when tries then interval '0' else ${sql.literal(afterProbe)} end
            from early, endpoint where j.id = early.id
          )
          select is_failing as "isFailing", is_over as "isOver" from endpoint, over`.pipe(Rows.first(Failed))

      /** Cancels pending deliveries of the endpoint, unless it is active: it may have been made active meanwhile. */
      const cancel = ({ tenantId }: TenantScope, endpointId: WebhookId) =>
        sql`
          update webhook_deliveries set status = 'cancelled', settled_at = now()
          where tenant_id = ${tenantId} and endpoint_id = ${endpointId} and status = 'pending' and not exists (
            select from webhook_endpoints where tenant_id = ${tenantId} and id = ${endpointId} and status = 'active'
          )`.pipe(Rows.none)

      /**
       * Disables an active endpoint of this address and cancels its pending deliveries. False when it was not active.
       * Needs a transaction.
       */
      const disable = (
        { tenantId, url }: TenantScope & { readonly url: string },
        endpointId: WebhookId,
        reason: "gone" | "failing"
      ) =>
        sql`
          update webhook_endpoints set status = 'disabled', disabled_reason = ${reason}, version = version + 1,
            updated_at = now()
          where tenant_id = ${tenantId} and id = ${endpointId} and url = ${url} and status = 'active' returning id`.pipe(
          Rows.any,
          Effect.tap((was) => (was ? cancel({ tenantId }, endpointId) : Effect.void))
        )

      const Replay = Schema.Struct({
        replayed: Schema.Int,
        nextFrom: Schema.NullOr(Schema.DateTimeUtcFromDate)
      })

      /**
       * Sends the endpoint's events in `[from, to)` again, under the same ids and in the same order. Pending ones stay
       * pending. No effect for an endpoint that is not the tenant's, or not active.
       */
      const replay = (
        { tenantId }: TenantScope,
        endpointId: WebhookId,
        { from, to }: { readonly from: DateTime.Utc; readonly to: DateTime.Utc }
      ) =>
        sql`
          with found as (
            select d.event_id, d.endpoint_id, d.seq, d.created_at
            from webhook_endpoints e join webhook_deliveries d on d.tenant_id = e.tenant_id and d.endpoint_id = e.id
            where e.tenant_id = ${tenantId} and e.id = ${endpointId} and e.status = 'active' and d.status <> 'pending'
              and d.created_at >= ${DateTime.formatIso(from)}::timestamptz
              and d.created_at < ${DateTime.formatIso(to)}::timestamptz
            order by d.seq limit ${maxReplayed + 1}::int
          ),
          part as (select event_id, endpoint_id from found order by seq limit ${maxReplayed}::int),
          reported as (
            update webhook_deliveries d set status = 'pending', pending_since = now(), attempts = 0, settled_at = null,
              attempted_at = null, answer_status = null, answer_text = null, error = null
            from part where d.tenant_id = ${tenantId} and d.event_id = part.event_id and d.endpoint_id = part.endpoint_id and d.status <> 'pending'
            returning d.tenant_id, d.event_id, d.endpoint_id, d.conversation_id, d.ids, d.seq
          ),
          reported_jobs as (${deliveryJobs(sql)})
          select (select count(*) from reported)::int as replayed,
            (select created_at from found order by seq offset ${maxReplayed}::int limit 1) as "nextFrom"`.pipe(
          Rows.one(Replay)
        )

      /**
       * Creates an event of type {@link testEvent} for this endpoint only. Returns its id; none when the endpoint is
       * not the tenant's, or not active.
       */
      const test = ({ tenantId }: TenantScope, endpointId: WebhookId) =>
        sql<{ readonly eventId: string }>`
          with reported as (
            insert into webhook_deliveries (tenant_id, event_id, endpoint_id, type, ids)
            select tenant_id, 'evt_' || replace(gen_random_uuid()::text, '-', ''), id, ${testEvent}, jsonb_build_object('webhookId', id)
            from webhook_endpoints where tenant_id = ${tenantId} and id = ${endpointId} and status = 'active'
            returning tenant_id, event_id, endpoint_id, conversation_id, ids, seq
          ),
          reported_jobs as (${deliveryJobs(sql)})
          select event_id as "eventId" from reported`.pipe(
          Effect.orDie,
          Effect.map(([row]) => Option.fromNullable(row?.eventId))
        )

      /** Deletes deliveries older than {@link retention}; true when there may be more. */
      const sweep = sql`/* every tenant: sweep */
        delete from webhook_deliveries where (tenant_id, event_id, endpoint_id) in (
          select tenant_id, event_id, endpoint_id from webhook_deliveries
          where created_at < now() - make_interval(secs => ${Duration.toSeconds(retention)}) and status <> 'pending' and tenant_is_swept(tenant_id)
          order by created_at limit ${sweepBatch}::int
        ) returning event_id`.pipe(
        Effect.orDie,
        Effect.map((rows) => rows.length === sweepBatch),
        Effect.withSpan("WebhookDeliveryStore.sweep")
      )

      return {
        page,
        take,
        recordSuccess,
        retryNow,
        recordFailure,
        cancel,
        disable,
        replay,
        test,
        sweep
      } as const
    })
  }
) {}
