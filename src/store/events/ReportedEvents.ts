/**
 * Events for endpoints of the tenant, written by the statement whose change they report. They exist exactly when it
 * commits. Without an active endpoint for the type, nothing is written.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import { policies } from "../../capabilities/JobQueue.ts"
import type { MessageId, UserId } from "../../domain/Ids.ts"
import { type EventType, testEvent } from "../../domain/events/Webhook.ts"

/** The queue whose jobs send the events. */
export const queueName = "webhook-outbound"

/** One event. Each field is SQL over the rows of `from`. */
export interface Report {
  readonly type: EventType | typeof testEvent
  /** Key that is unique among the events of its type. */
  readonly key: Fragment
  readonly tenantId: Fragment
  readonly agentId: Fragment
  readonly conversationId: Fragment
  /** `jsonb`: the ids of the affected objects. */
  readonly ids: Fragment
  /** The text behind `from`, with its condition. */
  readonly from: Fragment
  /** Order of events of one statement for the same conversation. */
  readonly place?: Fragment
}

/**
 * The owner of an endpoint's jobs, in the group of its tenant. Jobs that release 0.1.0 queued have the endpoint's id as
 * owner.
 */
export const ownerOf = (tenantId: string, endpointId: string): string => `${tenantId}/${endpointId}`

/**
 * Jobs for the deliveries of the CTE `reported`. Events of one conversation, source, budget, channel or gap go to an
 * endpoint in sequence. The endpoint is the owner ({@link ownerOf}), so that no endpoint waits for another.
 */
export const deliveryJobs = (sql: SqlClient.SqlClient) => sql`
  insert into queue_jobs (id, queue, payload, owner, serial_key, max_attempts, run_at)
  select 'qjb_' || replace(gen_random_uuid()::text, '-', ''), ${sql.literal(`'${queueName}'`)},
    jsonb_build_object('tenantId', tenant_id, 'eventId', event_id, 'endpointId', endpoint_id),
    tenant_id || '/' || endpoint_id,
    endpoint_id || ':' || coalesce(conversation_id, ids ->> 'sourceId', ids ->> 'budgetId', ids ->> 'channelId', ids ->> 'gapId', event_id),
    ${sql.literal(String(policies[queueName].attempts))}, clock_timestamp()
  from reported order by seq
  returning pg_notify('queue_jobs', ${sql.literal(`'${queueName}'`)})`

const row = (sql: SqlClient.SqlClient, report: Report) => sql`
  select ${report.place ?? sql.literal("0")}::bigint as place, ${report.tenantId}::text as tenant_id,
    ${report.agentId}::text as agent_id, ${report.conversationId}::text as conversation_id,
    ${sql.literal(`'${report.type}'`)}::text as type, ${report.key}::text as key, ${report.ids} as ids
  from ${report.from}`

/**
 * Removes receivers' answers to the events that match `condition` on `webhook_deliveries`, because an answer may repeat
 * the content of its event. For when that content is deleted.
 */
export const clearAnswers = (sql: SqlClient.SqlClient, tenantId: string, condition: Fragment) => sql`
  update webhook_deliveries set answer_text = null
  where tenant_id = ${tenantId} and answer_text is not null and ${condition}`

/**
 * True for a delivery whose answer may be stored. False when its conversation was deleted meanwhile; waits for a
 * transaction that is deleting it.
 */
export const keepsAnswer = (sql: SqlClient.SqlClient) => sql`(
  webhook_deliveries.conversation_id is null or exists (
    select from conversations c
    where c.tenant_id = webhook_deliveries.tenant_id and c.id = webhook_deliveries.conversation_id for key share
  ))`

/** The CTEs `reported` and `reported_jobs`, in this order, for a statement whose CTEs contain the rows of `reports`. */
export const eventWrites = (sql: SqlClient.SqlClient, first: Report, ...others: ReadonlyArray<Report>) => sql`
  reported as (
    insert into webhook_deliveries (tenant_id, event_id, endpoint_id, agent_id, conversation_id, type, ids)
    select e.tenant_id, 'evt_' || substr(encode(sha256(convert_to(r.type || ':' || r.key, 'UTF8')), 'hex'), 1, 32), e.id,
      r.agent_id, r.conversation_id, r.type, r.ids
    from (${others.reduce((rows, other) => sql`${rows} union all ${row(sql, other)}`, row(sql, first))}) r
    join webhook_endpoints e on e.tenant_id = r.tenant_id and e.status = 'active' and r.type = any(e.events)
    order by r.place, e.id
    on conflict (tenant_id, event_id, endpoint_id) do nothing
    returning tenant_id, event_id, endpoint_id, conversation_id, ids, seq
  ),
  reported_jobs as (${deliveryJobs(sql)})`

/** Reports started conversations. Rows of `from` are those of `conversations`. */
export const conversationStarted = (
  sql: SqlClient.SqlClient,
  from: Fragment,
  condition?: Fragment
): Report => ({
  type: "conversation.started",
  key: sql`begun.id`,
  tenantId: sql`begun.tenant_id`,
  agentId: sql`begun.agent_id`,
  conversationId: sql`begun.id`,
  ids: sql`jsonb_build_object('endUserId', begun.end_user_id, 'channel', begun.channel)`,
  from: condition === undefined ? sql`${from} begun` : sql`${from} begun where ${condition}`
})

/** Reports that turns use another version. The row of the CTE `changed` is the agent's. */
export const versionPublished = (sql: SqlClient.SqlClient): Report => ({
  type: "version.published",
  // A version may be published again.
  key: sql`changed.id || ':' || changed.published_version || ':' || extract(epoch from clock_timestamp())`,
  tenantId: sql`changed.tenant_id`,
  agentId: sql`changed.id`,
  conversationId: sql`null`,
  ids: sql`jsonb_build_object('version', changed.published_version)`,
  from: sql`changed`
})

/**
 * Reports a message of a team member in the row of the CTE `conversation`. Without `userId` it was not written in the
 * dashboard.
 */
export const messageSent = (
  sql: SqlClient.SqlClient,
  messageId: MessageId,
  userId: UserId | null
): Report => ({
  type: "message.sent",
  key: sql`${messageId}`,
  tenantId: sql`conversation.tenant_id`,
  agentId: sql`conversation.agent_id`,
  conversationId: sql`conversation.id`,
  ids: sql`jsonb_build_object('messageId', ${messageId}::text, 'userId', ${userId}::text)`,
  from: sql`conversation`
})
