/**
 * Health of the provider of a channel's account: stored with the account, and reported when it changes. A failure to
 * store it is logged, because the result of the call matters more.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { ChannelId } from "../../domain/Ids.ts"
import { eventWrites, type Report } from "../events/ReportedEvents.ts"
import * as Rows from "../Rows.ts"

/** Number of consecutive failed calls after which the account is reported as failing. */
const minReportedFailures = 5

const orLogged = Effect.catchAllCause((cause) =>
  Effect.logWarning("The health of a channel could not be stored", cause)
)

export const makeChannelHealth = Effect.map(SqlClient.SqlClient, (sql) => {
  const reportOf = (type: "channel.failing" | "channel.recovered"): Report => ({
    type,
    key: sql`changed.id || ':' || extract(epoch from changed.since)`,
    tenantId: sql`changed.tenant_id`,
    agentId: sql`changed.agent_id`,
    conversationId: sql`null`,
    ids: sql`jsonb_build_object('channelId', changed.id, 'channel', changed.channel)`,
    from: sql`changed where changed.is_news`
  })

  /** Records a failed call of the account's provider. A series of failures is reported once. */
  const recordFailure = ({ tenantId }: TenantScope, id: ChannelId) =>
    sql`
      with changed as (
        update channels set failures = failures + 1,
          failing_since = case when failures + 1 >= ${minReportedFailures}::int then coalesce(failing_since, now()) end
        where tenant_id = ${tenantId} and id = ${id}
        returning id, tenant_id, agent_id, channel, failing_since as since, failures = ${minReportedFailures}::int as is_news
      ),
      ${eventWrites(sql, reportOf("channel.failing"))}
      select id from changed`.pipe(Rows.none, orLogged, Effect.withSpan("ChannelHealth.recordFailure"))

  /** Records a successful call of the account's provider. */
  const recordSuccess = ({ tenantId }: TenantScope, id: ChannelId) =>
    sql`
      with before as (
        select id, failing_since from channels where tenant_id = ${tenantId} and id = ${id} and failures > 0 for update
      ),
      changed as (
        update channels c set failures = 0, failing_since = null from before
        where c.tenant_id = ${tenantId} and c.id = before.id
        returning c.id, c.tenant_id, c.agent_id, c.channel, before.failing_since as since,
          before.failing_since is not null as is_news
      ),
      ${eventWrites(sql, reportOf("channel.recovered"))}
      select id from changed`.pipe(Rows.none, orLogged, Effect.withSpan("ChannelHealth.recordSuccess"))

  return { recordFailure, recordSuccess } as const
})
