/** Test cases of agents. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { maxTestCases, TestCase, type TestCaseFields, type TestCaseId } from "../../domain/agents/TestCase.ts"
import { Citation } from "../../domain/chat/ChatTurn.ts"
import type { RunId } from "../../domain/Ids.ts"
import type { Page } from "../../domain/Page.ts"
import { JsonObject } from "../../domain/Text.ts"
import { toJsonb } from "../Jsonb.ts"
import type { PageRequest } from "../accounts/Tenants.ts"
import { lockRuns } from "../chat/AgentRuns.ts"
import { retryDeadlocks } from "../Deadlock.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  ...TestCase.fields,
  responseSchema: Schema.NullOr(Schema.parseJson(JsonObject)),
  createdAt: Schema.DateTimeUtcFromDate,
  updatedAt: Schema.DateTimeUtcFromDate
})

/** The data that a case is made from. */
const AskedRow = Schema.Struct({
  question: Schema.String,
  /** Null if it got no reply. */
  citations: Schema.NullOr(Schema.Array(Citation)),
  rating: Schema.NullOr(Schema.Int),
  comment: Schema.NullOr(Schema.String),
  /** The later answer of a team member. */
  human: Schema.NullOr(Schema.String)
})

/** As text, because jsonb does not keep the order of the members. */
const schemaText = ({ responseSchema }: TestCaseFields): string | null =>
  responseSchema === undefined ? null : toJsonb(responseSchema)

interface NewTestCase extends Pick<TestCase, "id" | "origin" | "runId"> {
  readonly fields: TestCaseFields
}

export class TestCaseStore extends Effect.Service<TestCaseStore>()("store/agents/TestCases", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const columns = sql`
      id, agent_id as "agentId", question, expect_sources as "expectSources", expect_facts as "expectFacts",
      expect_refusal as "expectRefusal", expect_grounding as "expectGrounding",
      response_schema as "responseSchema", criterion, note, origin, run_id as "runId", created_at as "createdAt",
      updated_at as "updatedAt"`

    /**
     * Stores all of them, in order. Stores none, and returns none, if the agent is not the tenant's or would have too
     * many. Locks the agent's row, so that two requests cannot both use the last places. `missing` when a run of theirs
     * was erased.
     */
    const insert = (
      { agentId, tenantId }: AgentScope,
      cases: ReadonlyArray<NewTestCase>
    ): Effect.Effect<ReadonlyArray<TestCase> | "missing"> =>
      Effect.gen(function* () {
        const rows = cases.map(({ fields, ...row }) => ({
          ...row,
          ...fields,
          responseSchema: schemaText(fields)
        }))
        yield* sql`select 1 from agents where tenant_id = ${tenantId} and id = ${agentId} for no key update`
        const runIds = new Set(cases.map(({ runId }) => runId).filter(Predicate.isNotNull))
        if (!(yield* lockRuns(sql, { tenantId }, runIds))) return "missing" as const
        return yield* sql`
          insert into test_cases (
            id, tenant_id, agent_id, question, expect_sources, expect_facts, expect_refusal, expect_grounding,
            response_schema, criterion, note, origin, run_id
          )
          select c.id, a.tenant_id, a.id, c.question, c."expectSources", c."expectFacts", c."expectRefusal",
            c."expectGrounding", c."responseSchema", c.criterion, c.note, c.origin, c."runId"
          from agents a, jsonb_to_recordset(${toJsonb(rows)}::jsonb) as c (id text, question text,
            "expectSources" jsonb, "expectFacts" jsonb, "expectRefusal" boolean, "expectGrounding" boolean,
            "responseSchema" text, criterion text, note text, origin text, "runId" text)
          where a.tenant_id = ${tenantId} and a.id = ${agentId}
            and (select count(*) from test_cases t
              where t.tenant_id = ${tenantId} and t.agent_id = ${agentId}) + ${cases.length}::int
              <= ${maxTestCases}
          returning ${columns}`.pipe(Rows.all(Row))
      }).pipe(sql.withTransaction, Effect.orDie, retryDeadlocks, Effect.withSpan("TestCaseStore.insert"))

    /** None when the tenant has no such case. */
    const update = (
      { tenantId }: TenantScope,
      id: TestCaseId,
      fields: TestCaseFields
    ): Effect.Effect<Option.Option<TestCase>> => {
      const { criterion, expectFacts, expectGrounding, expectRefusal, expectSources, note, question } = fields
      return sql`
        update test_cases set question = ${question}, expect_sources = ${toJsonb(expectSources)}::jsonb,
          expect_facts = ${toJsonb(expectFacts)}::jsonb, expect_refusal = ${expectRefusal ?? null}::boolean,
          expect_grounding = ${expectGrounding ?? null}::boolean, response_schema = ${schemaText(fields)},
          criterion = ${criterion ?? null}, note = ${note ?? null}, updated_at = now()
        where tenant_id = ${tenantId} and id = ${id} returning ${columns}`.pipe(
        Rows.first(Row),
        Effect.withSpan("TestCaseStore.update")
      )
    }

    /** Oldest first. */
    const page = (
      { agentId, tenantId }: AgentScope,
      { after, limit }: PageRequest
    ): Effect.Effect<Page<TestCase>> =>
      sql`
        select ${columns} from test_cases
        where tenant_id = ${tenantId} and agent_id = ${agentId} and id > ${after ?? ""}
        order by id limit ${limit + 1}`.pipe(Rows.page(Row, limit), Effect.withSpan("TestCaseStore.page"))

    /** Cases of all agents of the tenant, oldest first, without those made from turns. */
    const listWritten = ({ tenantId }: TenantScope) =>
      sql`
        select ${columns} from test_cases where tenant_id = ${tenantId} and run_id is null order by id`.pipe(
        Rows.all(Row),
        Effect.withSpan("TestCaseStore.listWritten")
      )

    /** False when the tenant has no such case. */
    const remove = ({ tenantId }: TenantScope, id: TestCaseId): Effect.Effect<boolean> =>
      sql`delete from test_cases where tenant_id = ${tenantId} and id = ${id} returning id`.pipe(
        Rows.any,
        Effect.withSpan("TestCaseStore.remove")
      )

    /** The question of an ended run and its outcome; none when the agent has no such run. */
    const questionOf = ({ agentId, tenantId }: AgentScope, runId: RunId) =>
      sql`
        select r.user_message as question, m.citations, r.rating, f.comment, h.content as human
        from agent_runs r
        left join messages m
          on m.tenant_id = r.tenant_id and m.conversation_id = r.conversation_id and m.id = r.message_id and r.status = 'complete'
        left join message_feedback f on f.tenant_id = m.tenant_id and f.message_id = m.id
        left join messages q
          on q.tenant_id = r.tenant_id and q.conversation_id = r.conversation_id and q.id = r.user_message_id
        left join lateral (
          select n.content from messages n
          where n.tenant_id = r.tenant_id and n.conversation_id = r.conversation_id and n.position > q.position and n.author = 'human'
            and (r.status = 'failed' or r.handed_over or r.unanswered or r.rating = -1)
          order by n.position limit 1
        ) h on true
        where r.tenant_id = ${tenantId} and r.agent_id = ${agentId} and r.id = ${runId} and r.status <> 'running'`.pipe(
        Rows.first(AskedRow),
        Effect.withSpan("TestCaseStore.questionOf")
      )

    return { insert, update, page, listWritten, remove, questionOf } as const
  })
}) {}
