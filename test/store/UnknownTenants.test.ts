/**
 * Reads of a tenant that was created after the last analysis of the tables. By their statistics it has no rows, so
 * every index that begins with the tenant seems to lead to one row.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { AgentScope, ReadScope } from "../../src/domain/accounts/Access.ts"
import { ConversationId, DocumentId, newId, SourceId, UserId } from "../../src/domain/Ids.ts"
import { makeAgentProblems } from "../../src/store/agents/AgentProblems.ts"
import { CorrectionStore } from "../../src/store/agents/Corrections.ts"
import { UsageStore } from "../../src/store/billing/Usage.ts"
import { InboxListStore } from "../../src/store/conversations/InboxList.ts"
import { InboxViewStore } from "../../src/store/conversations/InboxView.ts"
import { InsightStore } from "../../src/store/conversations/Insights.ts"
import { ContentStore } from "../../src/store/knowledge/Contents.ts"
import { FindingStore } from "../../src/store/knowledge/Findings.ts"
import { ImpactStore } from "../../src/store/knowledge/Impact.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

/** A source with one passage. */
const source = ({ agentId, tenantId }: AgentScope) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const sourceId = SourceId.make(`src_${tenantId}`)
    const documentId = DocumentId.make(`doc_${tenantId}`)
    yield* sql`
      insert into sources (id, tenant_id, agent_id, type, name, config, live_generation)
      values (${sourceId}, ${tenantId}, ${agentId}, 'URL', 'Source', '{}', 1)`
    yield* sql`
      insert into documents (id, tenant_id, agent_id, source_id, generation, uri, title, content_hash)
      values (${documentId}, ${tenantId}, ${agentId}, ${sourceId}, 1, 'https://example.com/1', 'Page', '')`
    yield* sql`
      insert into chunks (id, tenant_id, agent_id, source_id, generation, document_id, ordinal, content, content_hash, tsv, length, version)
      values (${`chk_${tenantId}`}, ${tenantId}, ${agentId}, ${sourceId}, 1, ${documentId}, 0, 'So it is.', '', '', 3, 1)`
    return { sourceId, documentId }
  })

/** Inserts conversations with one turn each, whose reply cites its own passage. */
const turns = ({ agentId, tenantId }: AgentScope, count: number) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const { documentId, sourceId } = yield* source({ agentId, tenantId })
    const ids = yield* Effect.replicateEffect(
      Effect.all({
        run: newId.run,
        conversation: newId.conversation,
        question: newId.message,
        reply: newId.message
      }),
      count
    )
    const given = sql`jsonb_to_recordset(${JSON.stringify(ids)}::jsonb)
      as g (run text, conversation text, question text, reply text)`
    yield* sql`insert into end_users (id, tenant_id) values (${`usr_${tenantId}`}, ${tenantId})`
    yield* sql`
      insert into conversations (id, tenant_id, agent_id, end_user_id, channel, message_count)
      select conversation, ${tenantId}, ${agentId}, ${`usr_${tenantId}`}, 'api', 2 from ${given}`
    yield* sql`
      insert into messages (id, tenant_id, conversation_id, agent_id, position, role, author, content, citations)
      select question, ${tenantId}, conversation, ${agentId}, 1, 'user', null, 'Why?', '[]'::jsonb from ${given}
      union all
      select reply, ${tenantId}, conversation, ${agentId}, 2, 'assistant', 'agent', 'So. [1]', '[{"index": 1}]' from ${given}`
    yield* sql`
      insert into agent_runs (id, tenant_id, agent_id, conversation_id, ticket, instance_id, user_message_id, user_message,
        period_start, epoch, status, unanswered, rating, started_at, completed_at,
        ends_by, message_id)
      select run, ${tenantId}, ${agentId}, conversation, 1, 'ins_1', question, 'Why?', now(), 0, 'complete', true, -1,
        now(), now(), now(), reply from ${given}`
    yield* sql`
      insert into passages (tenant_id, hash, source_name, title, heading, url, content)
      select ${tenantId}, sha256(run::bytea), 'Source', 'Page', '', 'https://example.com/1', 'So it is.' from ${given}`
    yield* sql`
      insert into run_passages (tenant_id, run_id, number, hash, source_id, document_id, chunk_id, score)
      select ${tenantId}, run, 1, sha256(run::bytea), ${sourceId}, ${documentId}, ${`chk_${tenantId}`}, 0.5 from ${given}`
    return {
      sourceId,
      documentId,
      conversations: ids.map(({ conversation }) => ConversationId.make(conversation))
    }
  })

/** Rows that the session has read and not reported yet, by index or by a scan of the table. */
const readRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ readonly rows: number }>`
    select sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::float8 as rows from pg_stat_xact_user_tables`
  return row?.rows ?? 0
})

/** Rows that `effect` reads. */
const readsOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = yield* readRows
    yield* effect
    return (yield* readRows) - before
  }).pipe((reading) => Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(reading)))

const count = 500
const live = Layer.mergeAll(
  UsageStore.Default,
  InsightStore.Default,
  ImpactStore.Default,
  ContentStore.Default,
  InboxListStore.Default,
  InboxViewStore.Default,
  FindingStore.Default,
  CorrectionStore.Default
)

eachEngineLive("The reports of a tenant that statistics do not know", (it) => {
  it.effect("read each row only a few times", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      // Indexes stay large after deletions. The planner then prefers a smaller one, with fewer columns of the condition.
      for (let tenants = 0; tenants < 3; tenants++) yield* turns(yield* Fixtures.agent(), 300)
      yield* sql`analyze`
      yield* reset
      yield* turns(yield* Fixtures.agent(), 100)
      yield* sql`analyze`
      const scope: ReadScope = yield* Fixtures.agent()
      const { conversations, documentId, sourceId } = yield* turns(scope, count)
      const shown = conversations.slice(-50)
      const now = yield* DateTime.now
      const period = { from: DateTime.subtract(now, { days: 1 }), to: DateTime.add(now, { days: 1 }) }
      const reader = { tenantId: scope.tenantId, userId: UserId.make("mbr_1") }
      const usage = yield* UsageStore
      const insights = yield* InsightStore
      const impact = yield* ImpactStore
      const contents = yield* ContentStore
      const inbox = yield* InboxListStore
      const view = yield* InboxViewStore
      const problems = yield* makeAgentProblems
      const findings = yield* FindingStore
      const corrections = yield* CorrectionStore
      const report = { tenantId: scope.tenantId, agentId: undefined, ...period }
      const reads = yield* Effect.all({
        usage: readsOf(usage.byDay(scope, { start: period.from, end: period.to })),
        wrong: readsOf(insights.failedTurns(report, "none", 1_000)),
        "wrong of the agent": readsOf(
          insights.failedTurns({ ...report, agentId: scope.agentId }, "none", 1_000)
        ),
        measures: readsOf(insights.measures(report, "day")),
        impact: readsOf(impact.citingTurns({ ...scope, ...period, sourceId: undefined }, 1_000)),
        passages: readsOf(contents.passages(scope, sourceId, documentId, { after: -1, limit: 20 })),
        inbox: readsOf(inbox.list(reader, {}, { after: undefined, limit: 50 })),
        unread: readsOf(inbox.list(reader, { unread: "true" }, { after: undefined, limit: 50 })),
        standings: readsOf(inbox.readStates(reader, shown)),
        glances: readsOf(view.previews(scope, shown)),
        problems: readsOf(problems.list(scope)),
        stale: readsOf(findings.stale(scope, DateTime.add(now, { days: 1 }))),
        "values of sources": readsOf(findings.values(scope, { ...period, after: "", limit: 50 })),
        corrections: readsOf(corrections.listQuestions(scope, [], 1_000))
      })
      expect(Object.entries(reads).filter(([, rows]) => rows > 10 * count)).toEqual([])
      for (const name of ["usage", "wrong", "measures", "impact", "passages"] as const)
        expect(reads[name]).toBeGreaterThanOrEqual(count)
    }).pipe(Effect.provide(live))
  )
})
