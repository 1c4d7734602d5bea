/** Experiments of the tenant's agents, with their questions and results. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { Actor } from "../../domain/accounts/Audit.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import {
  Experiment,
  ExperimentId,
  ExperimentOutcome,
  ExperimentResult
} from "../../domain/agents/Experiment.ts"
import { TestCaseFields, type TestCaseId } from "../../domain/agents/TestCase.ts"
import { AgentId, RunId } from "../../domain/Ids.ts"
import { QaPair } from "../../domain/knowledge/CuratedSource.ts"
import { optional } from "../../domain/Optional.ts"
import { type Page, pageBy } from "../../domain/Page.ts"
import { JsonObject } from "../../domain/Text.ts"
import type { PageRequest } from "../accounts/Tenants.ts"
import { lockRuns } from "../chat/AgentRuns.ts"
import { jsonbOf, toJsonb } from "../Jsonb.ts"
import { AgentSettings, settingsJson } from "./AgentSettings.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of ended experiments that are kept per agent. The oldest are removed when another is started. */
const maxKept = 100
/** Maximum number of waiting and running experiments of one tenant. */
export const maxOpenExperiments = 10

/** A new experiment with its questions. */
export interface NewExperiment {
  readonly id: ExperimentId
  readonly version: number | null
  readonly settings: AgentSettings
  /** Hexadecimal. */
  readonly settingsHash: string
  readonly casesHash: string | null
  readonly baselineId: ExperimentId | null
  readonly maxTokens: number
  readonly author: Actor | null
  /** A curated answer that is tested in addition to the live ones. */
  readonly curated: QaPair | null
  readonly questions: ReadonlyArray<NewQuestion>
}

export interface NewQuestion {
  readonly caseId: TestCaseId | null
  readonly runId: RunId | null
  readonly asked: TestCaseFields
}

/** The case of a question. The response schema is text, because jsonb does not keep the order of its members. */
const Asked = Schema.Struct({
  ...TestCaseFields.from.fields,
  responseSchema: optional(Schema.parseJson(JsonObject))
})

/** The fields that its worker needs. */
const Work = Schema.Struct({
  agentId: AgentId,
  version: Schema.NullOr(Schema.Int),
  settings: AgentSettings,
  kind: Experiment.fields.kind,
  maxTokens: Schema.NumberFromString,
  curated: Schema.NullOr(QaPair)
})

const WaitingRow = Schema.Struct({
  position: Schema.Int,
  runId: Schema.NullOr(RunId),
  asked: Asked
})
export type WaitingQuestion = typeof WaitingRow.Type

const Row = Schema.Struct({
  ...Experiment.fields,
  maxTokens: Schema.NumberFromString,
  inputTokens: Schema.NumberFromString,
  outputTokens: Schema.NumberFromString,
  createdAt: Schema.DateTimeUtcFromDate,
  startedAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  endedAt: Schema.NullOr(Schema.DateTimeUtcFromDate)
})

const MeasuredOutcome = Schema.Struct({
  position: Schema.Int,
  question: Schema.String,
  key: Schema.String,
  result: ExperimentOutcome
})
export type MeasuredOutcome = typeof MeasuredOutcome.Type

const authorJson = jsonbOf(Schema.NullOr(Actor))
const curatedJson = jsonbOf(Schema.NullOr(QaPair))
const askedJson = jsonbOf(Asked)
const resultJson = jsonbOf(ExperimentOutcome)

export class ExperimentStore extends Effect.Service<ExperimentStore>()("store/agents/Experiments", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const columns = sql`
      e.id, e.agent_id as "agentId", case when e.cases_hash is null then 'turns' else 'cases' end as kind, e.version,
      e.settings ->> 'model' as model, e.status, e.reason, r.total, r.asked, r.passed, e.baseline_id as "baselineId",
      e.max_tokens::text as "maxTokens", r.input::text as "inputTokens", r.output::text as "outputTokens", e.author,
      e.created_at as "createdAt", e.started_at as "startedAt", e.ended_at as "endedAt"`
    const joinCounts = sql`
      cross join lateral (
        select count(*)::int as total, count(q.passed)::int as asked,
          (count(*) filter (where q.passed))::int as passed,
          coalesce(sum(q.input_tokens), 0) as input, coalesce(sum(q.output_tokens), 0) as output
        from experiment_results q where q.tenant_id = e.tenant_id and q.experiment_id = e.id
      ) r`

    /** The key by which a question is found in a baseline: the turn, or the case without its note. */
    const keyOf = (row: "o" | "q") => sql`
      case when ${sql(row)}.case_id is null and ${sql(row)}.run_id is not null then ${sql(row)}.run_id
        else (${sql(row)}.asked - 'note')::text end`

    /** False when the agent, or a case or turn of a question, does not exist. Turns before cases, as erasures do. */
    const lockAll = Effect.fn("ExperimentStore.lockAll")(function* (
      { agentId, tenantId }: AgentScope,
      questions: ReadonlyArray<NewQuestion>
    ) {
      const agent =
        yield* sql`select 1 from agents where tenant_id = ${tenantId} and id = ${agentId} for key share`
      const runIds = new Set(questions.map(({ runId }) => runId).filter(Predicate.isNotNull))
      if (agent.length === 0 || !(yield* lockRuns(sql, { tenantId }, runIds))) return false
      const caseIds = questions.map(({ caseId }) => caseId).filter(Predicate.isNotNull)
      const cases = yield* sql`
        select 1 from test_cases where tenant_id = ${tenantId} and id = any(${caseIds}::text[]) for key share`
      return cases.length === caseIds.length
    })

    /**
     * Stores it with its questions, and removes the agent's oldest experiments beyond the limit. `full` when too many of
     * the tenant wait or run, `missing` when the agent, or a case or turn of a question, was deleted. Locks these and
     * the tenant's experiments until the caller's transaction ends.
     */
    const insert = Effect.fn("ExperimentStore.insert")(function* (
      { agentId, tenantId }: AgentScope,
      made: NewExperiment
    ) {
      yield* sql`select pg_advisory_xact_lock(hashtextextended(${`experiments ${tenantId}`}, 0))`
      const open = yield* sql`
        select 1 from experiments where tenant_id = ${tenantId} and status in ('queued', 'running') limit ${maxOpenExperiments}`
      if (open.length >= maxOpenExperiments) return "full" as const
      const isComplete = yield* lockAll({ agentId, tenantId }, made.questions)
      if (!isComplete) return "missing" as const
      yield* sql`
        insert into experiments (tenant_id, id, agent_id, version, settings, settings_hash, cases_hash, baseline_id,
          max_tokens, author, curated)
        values (${tenantId}, ${made.id}, ${agentId}, ${made.version}, ${settingsJson(made.settings)}::jsonb,
          decode(${made.settingsHash}, 'hex'), decode(${made.casesHash}::text, 'hex'), ${made.baselineId},
          ${made.maxTokens}, nullif(${authorJson(made.author)}::jsonb, 'null'),
          nullif(${curatedJson(made.curated)}::jsonb, 'null'))`
      const rows = made.questions.map(({ asked, caseId, runId }) => ({
        caseId,
        runId,
        asked: askedJson(asked)
      }))
      yield* sql`
        insert into experiment_results (tenant_id, experiment_id, position, case_id, run_id, asked)
        select ${tenantId}, ${made.id}, q.place - 1, q.value ->> 'caseId', q.value ->> 'runId',
          (q.value ->> 'asked')::jsonb
        from jsonb_array_elements(${toJsonb(rows)}::jsonb) with ordinality q (value, place)`
      yield* sql`
        delete from experiments where tenant_id = ${tenantId} and id in (
          select id from experiments
          where tenant_id = ${tenantId} and agent_id = ${agentId} and status not in ('queued', 'running')
            and id <> ${made.baselineId ?? ""}
          order by id desc offset ${maxKept})`
      return "made" as const
    }, Effect.orDie)

    /** Questions of these turns, if they have ended. Turns of other agents are ignored. */
    const questionsOf = ({ agentId, tenantId }: AgentScope, ids: ReadonlyArray<RunId>) =>
      sql`
        select id, user_message as question from agent_runs
        where tenant_id = ${tenantId} and agent_id = ${agentId} and id = any(${[...ids]}::text[])
          and status <> 'running'
        order by id`.pipe(
        Rows.all(Schema.Struct({ id: RunId, question: Schema.String })),
        Effect.withSpan("ExperimentStore.questionsOf")
      )

    /** None when the tenant has no such experiment. */
    const find = ({ tenantId }: TenantScope, id: ExperimentId) =>
      sql`
        select ${columns} from experiments e ${joinCounts} where e.tenant_id = ${tenantId} and e.id = ${id}`.pipe(
        Rows.first(Row),
        Effect.withSpan("ExperimentStore.find")
      )

    /** Newest first. */
    const page = (
      { agentId, tenantId }: AgentScope,
      { after, limit }: PageRequest
    ): Effect.Effect<Page<Experiment>> =>
      sql`
        select ${columns} from experiments e ${joinCounts}
        where e.tenant_id = ${tenantId} and e.agent_id = ${agentId}
          and ${after === undefined ? sql`true` : sql`e.id < ${after}`}
        order by e.id desc limit ${limit + 1}`.pipe(
        Rows.page(Row, limit),
        Effect.withSpan("ExperimentStore.page")
      )

    /** Results after the position `after`, in the order of the questions, each with the result of the baseline. */
    const results = (
      { tenantId }: TenantScope,
      id: ExperimentId,
      { after, limit }: { readonly after: number; readonly limit: number }
    ): Effect.Effect<Page<ExperimentResult>> =>
      sql`
        select q.position, q.case_id as "caseId", q.run_id as "runId", q.asked ->> 'question' as question, q.result,
          b.result as baseline
        from experiment_results q
        join experiments e on e.tenant_id = q.tenant_id and e.id = q.experiment_id
        left join lateral (
          select o.result from experiment_results o
          where o.tenant_id = ${tenantId} and o.experiment_id = e.baseline_id
            and ${keyOf("o")} = ${keyOf("q")}
          order by o.position = q.position desc, o.position limit 1
        ) b on true
        where q.tenant_id = ${tenantId} and q.experiment_id = ${id} and q.position > ${after}
        order by q.position limit ${limit + 1}`.pipe(
        Rows.all(ExperimentResult),
        Effect.map((found) => pageBy(found, limit, ({ position }) => String(position))),
        Effect.withSpan("ExperimentStore.results")
      )

    /** All results so far. Replies and citations are left out, because the report does not need them. */
    const listOutcomes = ({ tenantId }: TenantScope, id: ExperimentId) =>
      sql`
        select q.position, q.asked ->> 'question' as question, ${keyOf("q")} as key,
          q.result || '{"reply": null, "before": null, "citations": []}' as result
        from experiment_results q
        where q.tenant_id = ${tenantId} and q.experiment_id = ${id} and q.result is not null order by q.position`.pipe(
        Rows.all(MeasuredOutcome),
        Effect.withSpan("ExperimentStore.listOutcomes")
      )

    /** The newest experiment with all of these cases and equivalent settings. */
    const latest = (
      { agentId, tenantId }: AgentScope,
      hashes: { readonly settingsHash: string; readonly casesHash: string }
    ) =>
      sql`
        select id, baseline_id as "baselineId" from experiments
        where tenant_id = ${tenantId} and agent_id = ${agentId} and status = 'complete'
          and settings_hash = decode(${hashes.settingsHash}, 'hex') and cases_hash = decode(${hashes.casesHash}, 'hex')
        order by id desc limit 1`.pipe(
        Rows.first(Schema.Struct({ id: ExperimentId, baselineId: Schema.NullOr(ExperimentId) })),
        Effect.withSpan("ExperimentStore.latest")
      )

    /** Starts or resumes it. None when it has ended or does not exist. */
    const begin = ({ tenantId }: TenantScope, id: ExperimentId) =>
      sql`
        update experiments set status = 'running', started_at = coalesce(started_at, now())
        where tenant_id = ${tenantId} and id = ${id} and status in ('queued', 'running')
        returning agent_id as "agentId", version, settings, max_tokens::text as "maxTokens",
          case when cases_hash is null then 'turns' else 'cases' end as kind, curated`.pipe(
        Rows.first(Work),
        Effect.withSpan("ExperimentStore.begin")
      )

    /** The next questions of a running experiment; none at its end, or if it was cancelled. */
    const nextQuestions = ({ tenantId }: TenantScope, id: ExperimentId, limit: number) =>
      sql`
        select q.position, q.run_id as "runId", q.asked from experiment_results q
        join experiments e on e.tenant_id = q.tenant_id and e.id = q.experiment_id and e.status = 'running'
        where q.tenant_id = ${tenantId} and q.experiment_id = ${id} and q.result is null
        order by q.position limit ${limit}`.pipe(
        Rows.all(WaitingRow),
        Effect.withSpan("ExperimentStore.nextQuestions")
      )

    /** Stores a result once, and only while the experiment runs. */
    const record = (
      { tenantId }: TenantScope,
      id: ExperimentId,
      position: number,
      result: ExperimentOutcome
    ) =>
      sql`
        update experiment_results q set result = ${resultJson(result)}::jsonb
        from experiments e
        where q.tenant_id = ${tenantId} and q.experiment_id = ${id} and q.position = ${position} and q.result is null
          and e.tenant_id = q.tenant_id and e.id = q.experiment_id and e.status = 'running'`.pipe(
        Rows.none,
        Effect.withSpan("ExperimentStore.record")
      )

    /** Ends it, and removes its curated answer, which is a draft. False when it had ended before, or does not exist. */
    const end = (
      { tenantId }: TenantScope,
      id: ExperimentId,
      status: "complete" | "cancelled" | "failed",
      reason: string | null = null
    ) =>
      sql`
        update experiments set status = ${status}, reason = ${reason}, ended_at = now(), curated = null
        where tenant_id = ${tenantId} and id = ${id} and status in ('queued', 'running') returning id`.pipe(
        Rows.any,
        Effect.withSpan("ExperimentStore.end")
      )

    /** False when the tenant has no such experiment. */
    const remove = ({ tenantId }: TenantScope, id: ExperimentId): Effect.Effect<boolean> =>
      sql`delete from experiments where tenant_id = ${tenantId} and id = ${id} returning id`.pipe(
        Rows.any,
        Effect.withSpan("ExperimentStore.remove")
      )

    return {
      insert,
      questionsOf,
      find,
      page,
      results,
      listOutcomes,
      latest,
      begin,
      nextQuestions,
      record,
      end,
      remove
    } as const
  })
}) {}
