/** Drafts of curated answers, and their results. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { Actor } from "../../domain/accounts/Audit.ts"
import { Correction, type CorrectionId, type CorrectionOrigin } from "../../domain/agents/Correction.ts"
import type { ExperimentId } from "../../domain/agents/Experiment.ts"
import type { TestCaseId } from "../../domain/agents/TestCase.ts"
import { RunId, SourceId } from "../../domain/Ids.ts"
import type { Page } from "../../domain/Page.ts"
import type { PageRequest } from "../accounts/Tenants.ts"
import { lockRuns } from "../chat/AgentRuns.ts"
import { retryDeadlocks } from "../Deadlock.ts"
import { jsonbOf, toJsonb } from "../Jsonb.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  ...Correction.fields,
  createdAt: Schema.DateTimeUtcFromDate,
  updatedAt: Schema.DateTimeUtcFromDate,
  approvedAt: Schema.NullOr(Schema.DateTimeUtcFromDate)
})

export interface NewCorrection {
  readonly id: CorrectionId
  /** The turn of the question, and the turn whose conversation has the answer. */
  readonly runId: RunId | null
  readonly replyRunId: RunId | null
  readonly runIds: ReadonlyArray<RunId>
  readonly question: string
  readonly answer: string
  readonly origin: CorrectionOrigin
  readonly author: Actor
}

const authorJson = jsonbOf(Actor)

/** Maximum number of characters of a question that are read. */
const maxQuestionLength = 1_000

export class CorrectionStore extends Effect.Service<CorrectionStore>()("store/agents/Corrections", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      k.id, k.agent_id as "agentId", k.question, k.answer, k.origin, k.run_ids as "runIds",
      case when k.approved_at is null then 'draft' else 'approved' end as status,
      (
        select jsonb_build_object('experimentId', e.id, 'isComplete', e.status = 'complete', 'turns', count(*),
          'asked', count(q.result), 'changed', count(*) filter (where q.result ->> 'outcome' <> 'same'))
        from experiments e
        join experiment_results q on q.tenant_id = e.tenant_id and q.experiment_id = e.id
        where e.tenant_id = k.tenant_id and e.id = k.experiment_id group by e.id, e.status
      ) as preview,
      k.source_id as "sourceId", k.case_id as "caseId", k.author, k.created_at as "createdAt", k.updated_at as "updatedAt",
      k.approved_at as "approvedAt"`

    /** `full` when the agent has `max` drafts or more, `missing` when one of the turns was erased. */
    const insert = Effect.fn("CorrectionStore.insert")(
      function* ({ agentId, tenantId }: AgentScope, made: NewCorrection, max: number) {
        yield* sql`select 1 from agents where tenant_id = ${tenantId} and id = ${agentId} for no key update`
        const drafts = yield* sql`
        select 1 from corrections where tenant_id = ${tenantId} and agent_id = ${agentId} and approved_at is null
        limit ${max}`
        if (drafts.length >= max) return "full" as const
        const runIds = new Set([made.runId, made.replyRunId].filter(Predicate.isNotNull))
        if (!(yield* lockRuns(sql, { tenantId }, runIds))) return "missing" as const
        yield* sql`
        insert into corrections (tenant_id, id, agent_id, run_id, reply_run_id, run_ids, question, answer, origin, author)
        values (${tenantId}, ${made.id}, ${agentId}, ${made.runId}, ${made.replyRunId}, ${toJsonb(made.runIds)}::jsonb,
          ${made.question}, ${made.answer}, ${made.origin}, ${authorJson(made.author)}::jsonb)`
        return "made" as const
      },
      sql.withTransaction,
      Effect.orDie,
      // An erasure locks the turns in any order.
      (inserting) => retryDeadlocks(inserting)
    )

    /** None when the tenant has no such correction. */
    const find = ({ tenantId }: TenantScope, id: CorrectionId) =>
      sql`select ${columns} from corrections k where k.tenant_id = ${tenantId} and k.id = ${id}`.pipe(
        Rows.first(Row),
        Effect.withSpan("CorrectionStore.find")
      )

    /** Like {@link find}, but locks it until the caller's transaction ends. */
    const hold = ({ tenantId }: TenantScope, id: CorrectionId) =>
      sql`select 1 from corrections where tenant_id = ${tenantId} and id = ${id} for update`.pipe(
        Effect.orDie,
        Effect.zipRight(find({ tenantId }, id)),
        Effect.withSpan("CorrectionStore.hold")
      )

    /** Newest first. */
    const page = (
      { agentId, tenantId }: AgentScope,
      { after, limit }: PageRequest
    ): Effect.Effect<Page<Correction>> =>
      sql`
        select ${columns} from corrections k
        where k.tenant_id = ${tenantId} and k.agent_id = ${agentId}
          and ${after === undefined ? sql`true` : sql`k.id < ${after}`}
        order by k.id desc limit ${limit + 1}`.pipe(
        Rows.page(Row, limit),
        Effect.withSpan("CorrectionStore.page")
      )

    /** Changes a draft and removes its preview. */
    const update = (
      { tenantId }: TenantScope,
      id: CorrectionId,
      { answer, question }: { readonly question: string; readonly answer: string }
    ) =>
      sql`
        update corrections set question = ${question}, answer = ${answer}, experiment_id = null, updated_at = now()
        where tenant_id = ${tenantId} and id = ${id} and approved_at is null`.pipe(
        Rows.none,
        Effect.withSpan("CorrectionStore.update")
      )

    /** Stores a preview, unless the draft has changed since. */
    const recordPreview = (
      { tenantId }: TenantScope,
      { answer, id, question }: Correction,
      experimentId: ExperimentId
    ) =>
      sql`
        update corrections set experiment_id = ${experimentId}
        where tenant_id = ${tenantId} and id = ${id} and question = ${question} and answer = ${answer}`.pipe(
        Rows.none,
        Effect.withSpan("CorrectionStore.recordPreview")
      )

    const approve = (
      { tenantId }: TenantScope,
      id: CorrectionId,
      made: { readonly sourceId: SourceId; readonly caseId: TestCaseId }
    ) =>
      sql`
        update corrections set source_id = ${made.sourceId}, case_id = ${made.caseId}, approved_at = now()
        where tenant_id = ${tenantId} and id = ${id}`.pipe(
        Rows.none,
        Effect.withSpan("CorrectionStore.approve")
      )

    /**
     * The agent's sources that corrections are stored in, newest first: those called `name`, also with a number (see
     * {@link freeSourceName}), and those with an approved answer. `isAnswered`: the source has an answer to `question`.
     * Locks them until the transaction ends, so that no other change of their pairs is lost. Further calls for the
     * agent wait.
     */
    const sourcesOf = Effect.fn("CorrectionStore.sourcesOf")(function* (
      { agentId, tenantId }: AgentScope,
      name: string,
      question: string
    ) {
      yield* sql`select pg_advisory_xact_lock(hashtextextended(${`corrections ${tenantId} ${agentId}`}, 0))`
      return yield* sql`
        select s.id, coalesce(s.config -> 'pairs' @> ${toJsonb([{ question }])}::jsonb, false) as "isAnswered" from sources s
        where s.tenant_id = ${tenantId} and s.agent_id = ${agentId} and s.type = 'QA' and (
          regexp_replace(s.name, ' [0-9]+$', '') = ${name} or exists (
            select from corrections k
            where k.tenant_id = s.tenant_id and k.agent_id = s.agent_id and k.source_id = s.id
          )
        )
        order by s.id desc for update of s`.pipe(
        Rows.all(Schema.Struct({ id: SourceId, isAnswered: Schema.Boolean }))
      )
    }, Effect.orDie)

    /** `name`, or that name with the first number that no source of the agent has: files refer to sources by name. */
    const freeSourceName = ({ agentId, tenantId }: AgentScope, name: string) =>
      sql<{ readonly name: string }>`
        select name from sources
        where tenant_id = ${tenantId} and agent_id = ${agentId} and starts_with(name, ${name})`.pipe(
        Effect.orDie,
        Effect.map((rows) => {
          const taken = new Set(rows.map((row) => row.name))
          let free = name
          for (let number = 2; taken.has(free); number++) free = `${name} ${number}`
          return free
        }),
        Effect.withSpan("CorrectionStore.freeSourceName")
      )

    /** The newest `limit` ended turns of customers, and those of `ids` that exist. */
    const listQuestions = ({ agentId, tenantId }: AgentScope, ids: ReadonlyArray<RunId>, limit: number) =>
      sql`
        with newest as (
          select r.tenant_id, r.id from agent_runs r
          join conversations c on c.tenant_id = r.tenant_id and c.id = r.conversation_id and c.channel <> 'test'
          where r.tenant_id = ${opaque(sql, tenantId)} and r.agent_id = ${agentId} and r.status <> 'running'
          order by r.id desc limit ${limit}
        )
        select r.id, left(r.user_message, ${maxQuestionLength}::int) as question from agent_runs r
        where r.tenant_id = ${tenantId} and r.agent_id = ${agentId} and r.status <> 'running'
          and (r.id = any(${[...ids]}::text[]) or r.id in (select id from newest where tenant_id = ${tenantId}))
        order by r.id desc`.pipe(
        Rows.all(Schema.Struct({ id: RunId, question: Schema.String })),
        Effect.withSpan("CorrectionStore.listQuestions")
      )

    /** False when the tenant has no such correction. */
    const remove = ({ tenantId }: TenantScope, id: CorrectionId): Effect.Effect<boolean> =>
      sql`delete from corrections where tenant_id = ${tenantId} and id = ${id} returning id`.pipe(
        Rows.any,
        Effect.withSpan("CorrectionStore.remove")
      )

    return {
      insert,
      find,
      hold,
      page,
      update,
      recordPreview,
      approve,
      sourcesOf,
      freeSourceName,
      listQuestions,
      remove
    } as const
  })
}) {}
