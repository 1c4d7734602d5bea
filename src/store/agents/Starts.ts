/** Progress of agents in the guided start of the dashboard, and the headings of their sources. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { sampleSource } from "../../domain/agents/Start.ts"
import { AgentId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  id: AgentId,
  name: Schema.String,
  isSample: Schema.Boolean,
  sources: Schema.Int,
  documents: Schema.Int,
  tried: Schema.Boolean,
  widget: Schema.Boolean
})

const Heading = Schema.Struct({
  title: Schema.String,
  /** Path of headings, `A > B`; empty before the first one. */
  heading: Schema.String,
  english: Schema.Boolean,
  /** The beginning of the text below it. */
  beginning: Schema.String
})
export type Heading = typeof Heading.Type

/** Maximum number of documents that are searched for questions. */
const maxDocuments = 100
const maxChunksOfDocument = 20

export class StartStore extends Effect.Service<StartStore>()("store/agents/Starts", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const isSample = sql`coalesce((
      select count(*) = 1 and bool_and(s.type = ${sampleSource.type} and s.name = ${sampleSource.name})
      from sources s where s.tenant_id = a.tenant_id and s.agent_id = a.id), false)`

    /** The named agent, else the newest one that is not the sample; and the sample. */
    const find = ({ tenantId }: TenantScope, agentId: AgentId | null) =>
      sql`
        with own as (select a.tenant_id, a.id, a.name, ${isSample} as "isSample" from agents a where a.tenant_id = ${tenantId}),
        chosen as (
          (select * from own where id = ${agentId}::text)
          union
          (select * from own where ${agentId}::text is null and not "isSample" order by id desc limit 1)
          union
          (select * from own where "isSample" order by id limit 1)
        )
        select id, name, "isSample",
          (select count(*)::int from sources s
            where s.tenant_id = chosen.tenant_id and s.agent_id = chosen.id) as sources,
          (select count(*)::int from sources s
            join documents d on d.tenant_id = s.tenant_id and d.source_id = s.id and d.generation = s.live_generation
            where s.tenant_id = chosen.tenant_id and s.agent_id = chosen.id) as documents,
          exists (select from conversations c
            where c.tenant_id = chosen.tenant_id and c.agent_id = chosen.id and c.channel = 'test') as tried,
          exists (select from agent_widgets w
            where w.tenant_id = chosen.tenant_id and w.agent_id = chosen.id) as widget
        from chosen`.pipe(Rows.all(Row), Effect.withSpan("StartStore.find"))

    const isDismissed = ({ tenantId }: TenantScope) =>
      sql`select 1 from tenants where id = ${tenantId} and start_dismissed_at is not null`.pipe(Rows.any)

    const dismiss = ({ tenantId }: TenantScope, dismissed: boolean) =>
      sql`
        update tenants set start_dismissed_at = ${dismissed ? sql`coalesce(start_dismissed_at, now())` : sql`null`}
        where id = ${tenantId}`.pipe(Rows.none)

    /** Headings of documents without labels: pages with short addresses first, each from its top. */
    const headings = ({ agentId, tenantId }: AgentScope) =>
      sql`
        select d.title, c.heading, c.english, c.beginning
        from (
          select d.id, d.title, d.uri from sources s
          join documents d on d.tenant_id = s.tenant_id and d.source_id = s.id and d.generation = s.live_generation
          where s.tenant_id = ${tenantId} and s.agent_id = ${agentId} and s.labels = '[]'
          order by length(d.uri), d.uri, d.id limit ${maxDocuments}
        ) d
        cross join lateral (
          select heading, english, left(content, 400) as beginning, ordinal from chunks
          where tenant_id = ${tenantId} and document_id = d.id and not excluded order by ordinal limit ${maxChunksOfDocument}
        ) c
        order by length(d.uri), d.uri, d.id, c.ordinal`.pipe(
        Rows.all(Heading),
        Effect.withSpan("StartStore.headings")
      )

    return { find, isDismissed, dismiss, headings } as const
  })
}) {}
