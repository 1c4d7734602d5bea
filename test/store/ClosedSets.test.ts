import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { RunStatus } from "../../src/domain/chat/AgentRun.ts"
import { Move, MoveState } from "../../src/domain/accounts/TenantMove.ts"
import { KeyStatus } from "../../src/domain/accounts/ApiKey.ts"
import { Budget } from "../../src/domain/billing/Budget.ts"
import { ModelCallKind } from "../../src/domain/billing/ModelCall.ts"
import { CorrectionOrigin } from "../../src/domain/agents/Correction.ts"
import { Experiment } from "../../src/domain/agents/Experiment.ts"
import { TestCaseOrigin } from "../../src/domain/agents/TestCase.ts"
import { StoredConnectionState } from "../../src/domain/agents/ToolConnection.ts"
import { Delivery } from "../../src/domain/channels/Channel.ts"
import { ConversationState, MessageAuthor, MessageRole } from "../../src/domain/conversations/Conversation.ts"
import { DeliveryStatus } from "../../src/domain/events/Webhook.ts"
import { CrawlOutcome } from "../../src/domain/knowledge/Crawl.ts"
import { FindingKind } from "../../src/domain/knowledge/Finding.ts"
import { JobState } from "../../src/domain/knowledge/Job.ts"
import { IngestionJobStatus, IngestionJobType, SourceStatus } from "../../src/domain/knowledge/Source.ts"
import { eachEngine } from "../TestDatabase.ts"

const without = (all: ReadonlyArray<string>, one: string) => all.filter((other) => other !== one)

/** Every column whose values the database checks. Values of other columns are checked by schemas alone. */
const known: Readonly<Record<string, ReadonlyArray<string>>> = {
  "agent_runs.status": RunStatus.literals,
  "api_keys.scope": ["agent", "org"],
  // An expired key is an active one whose time has passed.
  "api_keys.status": without(KeyStatus.literals, "EXPIRED"),
  "budgets.period": Budget.fields.period.literals,
  "channel_inbox.state": ["queued", "processed", "failed"],
  "channel_outbox.author": MessageAuthor.literals,
  "channel_outbox.delivery": Delivery.literals,
  "channel_outbox.state": ["pending", "sending", "sent", "failed", "cancelled"],
  "conversations.state": ConversationState.literals,
  "other_model_usage.kind": ModelCallKind.literals,
  "corrections.origin": CorrectionOrigin.literals,
  "crawl_entries.outcome": CrawlOutcome.literals,
  "experiments.status": Experiment.fields.status.literals,
  "ingestion_jobs.status": IngestionJobStatus.literals,
  "ingestion_jobs.type": IngestionJobType.literals,
  "messages.author": MessageAuthor.literals,
  "messages.role": MessageRole.literals,
  "passage_findings.kind": FindingKind.literals,
  // A delayed job is a waiting one that is not due.
  "queue_jobs.state": without(JobState.literals, "delayed"),
  "sources.status": SourceStatus.literals,
  "tenant_moves.role": Move.fields.role.literals,
  "tenant_moves.state": MoveState.literals,
  "test_cases.origin": TestCaseOrigin.literals,
  "tool_connections.state": StoredConnectionState.literals,
  "webhook_deliveries.status": DeliveryStatus.literals,
  "webhook_endpoints.status": ["active", "disabled"]
}

eachEngine("A set of names that the database checks", (it) => {
  it.effect("equals the set of the schemas", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const checks = yield* sql<{ readonly name: string; readonly definition: string }>`
        select c.relname || '.' || a.attname as name, pg_get_constraintdef(k.oid) as definition
        from pg_constraint k
        join pg_class c on c.oid = k.conrelid and c.relnamespace = current_schema()::regnamespace
        join pg_attribute a on a.attrelid = c.oid and k.conkey = array[a.attnum]
        where k.contype = 'c' and pg_get_constraintdef(k.oid) like '%ARRAY[''%'`
      const found = checks.map(({ definition, name }) => [
        name,
        Array.from(definition.matchAll(/'([^']*)'::text/gu), ([, value]) => value).toSorted()
      ])
      expect(Object.fromEntries(found)).toEqual(
        Object.fromEntries(Object.entries(known).map(([name, values]) => [name, values.toSorted()]))
      )
    })
  )
})
