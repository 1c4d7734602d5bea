/** Turns with the passages that they cite, and whether those are unchanged in the sources. */
import * as SqlClient from "@effect/sql/SqlClient"
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { minRunIdAt, RunId, SourceId } from "../../domain/Ids.ts"
import { toJsonb } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

/** The period of turns of an agent that are examined, `from` inclusive and `to` exclusive. */
export interface ImpactScope extends AgentScope {
  readonly from: DateTime.Utc
  readonly to: DateTime.Utc
  /** Only this source, which may be deleted. */
  readonly sourceId: SourceId | undefined
}

/** A text and its source. */
const Used = Schema.Struct({ hash: Schema.String, sourceId: SourceId })
export type UsedPassage = typeof Used.Type

const CitingRow = Schema.Struct({
  runId: RunId,
  question: Schema.String,
  reply: Schema.String,
  at: Schema.DateTimeUtcFromDate,
  passages: Schema.Array(Used)
})
export type CitingRow = typeof CitingRow.Type

const StateRow = Schema.Struct({
  ...Used.fields,
  sourceName: Schema.String,
  title: Schema.String,
  heading: Schema.String,
  url: Schema.String,
  text: Schema.String,
  state: Schema.Literal("same", "changed", "gone")
})
export type PassageState = typeof StateRow.Type

/** Maximum number of characters of a question, a reply and a passage that are read. */
const maxQuestionLength = 1_000
const maxShownLength = 300

export class ImpactStore extends Effect.Service<ImpactStore>()("store/knowledge/Impact", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /**
     * The newest `limit` complete turns of customers whose replies cite something, newest first, with their citations.
     */
    const citingTurns = ({ agentId, from, sourceId, tenantId, to }: ImpactScope, limit: number) =>
      sql`
        with newest as materialized (
          select r.tenant_id, r.id, r.user_message, r.started_at, r.message_id from agent_runs r
          join conversations c on c.tenant_id = r.tenant_id and c.id = r.conversation_id and c.channel <> 'test'
          join messages m on m.tenant_id = r.tenant_id and m.id = r.message_id
          where r.tenant_id = ${opaque(sql, tenantId)} and r.agent_id = ${agentId} and r.status = 'complete'
            and r.id >= ${minRunIdAt(from)} and r.id < ${minRunIdAt(to)}
            and exists (
              select from run_passages u where u.tenant_id = r.tenant_id and u.run_id = r.id
                and u.number in (select (k ->> 'index')::int from jsonb_array_elements(m.citations) k)
                ${sourceId === undefined ? sql`` : sql`and u.source_id = ${sourceId}`}
            )
          order by r.id desc limit ${limit}
        )
        select n.id as "runId", left(n.user_message, ${maxQuestionLength}::int) as question,
          left(m.content, ${maxShownLength}::int) as reply, n.started_at as at, used.passages
        from newest n join messages m on m.tenant_id = n.tenant_id and m.id = n.message_id
        cross join lateral (
          select json_agg(distinct jsonb_build_object('hash', encode(u.hash, 'hex'), 'sourceId', u.source_id)) as passages
          from run_passages u
          where u.tenant_id = n.tenant_id and u.run_id = n.id
            and u.number in (select (k ->> 'index')::int from jsonb_array_elements(m.citations) k)
            ${sourceId === undefined ? sql`` : sql`and u.source_id = ${sourceId}`}
        ) used
        order by n.id desc`.pipe(Rows.all(CitingRow), Effect.withSpan("ImpactStore.citingTurns"))

    /**
     * The state of each text. It is unchanged when each of its parts, separated by `gap`, is under the same heading
     * of the same live document.
     */
    const states = ({ agentId, tenantId }: AgentScope, used: ReadonlyArray<UsedPassage>, gap: string) =>
      sql`
        select x.hash, x."sourceId", p.source_name as "sourceName", p.title, p.heading, p.url,
          left(p.content, ${maxShownLength}::int) as text,
          case
            when d.id is null then 'gone'
            when (
              select bool_and(strpos(coalesce(section.content, ''), part) > 0)
              from unnest(string_to_array(p.content, ${gap}::text)) part
            ) then 'same'
            else 'changed'
          end as state
        from jsonb_to_recordset(${toJsonb(used)}::jsonb) as x (hash text, "sourceId" text)
        join passages p on p.tenant_id = ${opaque(sql, tenantId)} and p.hash = decode(x.hash, 'hex')
        left join lateral (
          select d.tenant_id, d.id from sources s
          join documents d on d.tenant_id = s.tenant_id and d.source_id = s.id and d.generation = s.live_generation
            and d.uri = p.url
          where s.tenant_id = p.tenant_id and s.agent_id = ${agentId} and s.id = x."sourceId" limit 1
        ) d on true
        left join lateral (
          select string_agg(c.content, E'\\n\\n' order by c.ordinal) as content from chunks c
          where c.tenant_id = d.tenant_id and c.document_id = d.id and c.heading = p.heading
            and not c.excluded
        ) section on true`.pipe(Rows.all(StateRow), Effect.withSpan("ImpactStore.states"))

    return { citingTurns, states } as const
  })
}) {}
