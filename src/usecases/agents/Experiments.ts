/** Experiments: started by people and programs, run by `ExperimentWork`, compared with each other. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { JobQueue } from "../../capabilities/JobQueue.ts"
import { ToolSources } from "../../capabilities/ToolSources.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { Actor } from "../../domain/accounts/Audit.ts"
import {
  defaultMaxTokens,
  type Experiment,
  type ExperimentId,
  type ExperimentReport,
  newExperimentId,
  type StartExperiment
} from "../../domain/agents/Experiment.ts"
import { maxTestCases, type TestCaseFields } from "../../domain/agents/TestCase.ts"
import {
  Conflict,
  NotFound,
  ServiceUnavailable,
  ValidationError,
  invalidField,
  noSuch,
  orNoSuch
} from "../../domain/Errors.ts"
import type { AgentId, RunId } from "../../domain/Ids.ts"
import type { QaPair } from "../../domain/knowledge/CuratedSource.ts"
import type { PageRequest } from "../../store/accounts/Tenants.ts"
import { AgentStore } from "../../store/agents/Agents.ts"
import type { AgentSettings } from "../../store/agents/AgentSettings.ts"
import { ExperimentStore, maxOpenExperiments, type NewQuestion } from "../../store/agents/Experiments.ts"
import { retryDeadlocks } from "../../store/Deadlock.ts"
import { TestCaseStore } from "../../store/agents/TestCases.ts"
import { checkToolNames, defaultSettings } from "./Agents.ts"
import { casesHash, comparisonOf, testCaseFields, reportOf, settingsHash } from "./ExperimentReports.ts"
import { noSuchVersion } from "../../domain/agents/AgentVersion.ts"

/** The question of a turn whose message has no text. */
const emptyQuestion = "…"
const maxQuestionLength = 32_000

const missingRun = () => new NotFound({ message: "A run of runIds does not exist for this agent." })
const deletedMeanwhile = () =>
  new NotFound({ message: "The agent, or one of the turns or test cases, was deleted meanwhile." })
const nothingToAsk = () =>
  new ValidationError({
    message: "The agent has no test cases. Add some, or name the turns to repeat.",
    details: {}
  })
const differentKind = () =>
  invalidField(
    ["baseline"],
    "Expected an experiment of the same kind",
    "Test cases are compared with test cases, and turns with turns."
  )
const tooManyOpen = () =>
  new Conflict({
    message: `${maxOpenExperiments} experiments of this organisation wait or run. Wait for one of them, or cancel it.`
  })
const unavailable = () =>
  new ServiceUnavailable({ message: "The experiment cannot be queued now. Try again later." })

const hasEnded = ({ status }: Experiment) => status !== "queued" && status !== "running"

/**
 * Questions of one experiment. All are of one kind: a turn is compared with its earlier outcome, a case with its
 * expectations.
 */
interface Questions {
  readonly casesHash: string | null
  readonly questions: ReadonlyArray<NewQuestion>
}

export class Experiments extends Effect.Service<Experiments>()("usecases/agents/Experiments", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const store = yield* ExperimentStore
    const agents = yield* AgentStore
    const cases = yield* TestCaseStore
    const queue = yield* JobQueue
    const sources = yield* ToolSources

    const versionOf = Effect.fn("Experiments.versionOf")(function* (
      { agentId, tenantId }: AgentScope,
      version: number
    ) {
      const found = yield* agents.settingsOf({ tenantId }, agentId, version)
      return Option.isNone(found) ? yield* noSuchVersion() : { version, settings: found.value }
    })

    const versionToRun = (
      scope: AgentScope,
      { settings, version }: StartExperiment,
      { name, publishedVersion }: { readonly name: string; readonly publishedVersion: number }
    ): Effect.Effect<
      { readonly version: number | null; readonly settings: AgentSettings },
      NotFound | ValidationError
    > =>
      settings === undefined
        ? versionOf(scope, version ?? publishedVersion)
        : Effect.as(checkToolNames(sources, settings.tools ?? [], ["settings", "tools"]), {
            version: null,
            settings: defaultSettings({ name, ...settings })
          })

    /** Given cases replace all stored cases but those made from turns, because a file does not contain these. */
    const ofCases = Effect.fn("Experiments.ofCases")(function* (
      scope: AgentScope,
      given: ReadonlyArray<TestCaseFields> | undefined
    ) {
      const { rows } = yield* cases.page(scope, { limit: maxTestCases })
      const kept = given === undefined ? rows : rows.filter(({ runId }) => runId !== null)
      const questions: ReadonlyArray<NewQuestion> = [
        ...kept.map((one) => ({ caseId: one.id, runId: one.runId, asked: testCaseFields(one) })),
        ...(given ?? []).map((asked) => ({ caseId: null, runId: null, asked }))
      ]
      if (questions.length === 0) return yield* nothingToAsk()
      const found: Questions = { casesHash: casesHash(questions.map(({ asked }) => asked)), questions }
      return found
    })

    const ofTurns = Effect.fn("Experiments.ofTurns")(function* (
      scope: AgentScope,
      runIds: ReadonlyArray<RunId>
    ) {
      const wanted = new Set(runIds)
      const stored = yield* store.questionsOf(scope, [...wanted])
      if (stored.length < wanted.size) return yield* missingRun()
      const questions = stored.map(({ id, question }): NewQuestion => {
        const text = question.trim().slice(0, maxQuestionLength).toWellFormed()
        return {
          caseId: null,
          runId: id,
          asked: { question: text === "" ? emptyQuestion : text, expectSources: [], expectFacts: [] }
        }
      })
      const found: Questions = { casesHash: null, questions }
      return found
    })

    const get = Effect.fn("Experiments.get")(function* (scope: TenantScope, id: ExperimentId) {
      return yield* store.find(scope, id).pipe(orNoSuch("experiment"))
    })

    const enqueue = Effect.fn("Experiments.enqueue")(function* (
      scope: AgentScope,
      { settings, version }: { readonly version: number | null; readonly settings: AgentSettings },
      questions: Questions,
      options: {
        readonly baselineId: ExperimentId | null
        readonly maxTokens: number
        readonly author: Actor | null
        readonly curated: QaPair | null
      }
    ) {
      const id = yield* newExperimentId
      const made = { ...questions, ...options, id, version, settings, settingsHash: settingsHash(settings) }
      const outcome = yield* store.insert(scope, made)
      if (outcome === "full") return yield* tooManyOpen()
      if (outcome === "missing") return yield* deletedMeanwhile()
      const { tenantId } = scope
      yield* queue.enqueue(
        "experiments",
        { tenantId, experimentId: id },
        { serialKey: tenantId, owner: tenantId }
      )
      return id
    })

    /**
     * Stores and queues an experiment, after the one of its baseline version, if one is named. CONFLICT when the tenant
     * has too many waiting or running. `author` is null when the service starts it. `curated` is an answer that is
     * tried in addition to the live ones.
     */
    const start = Effect.fn("Experiments.start")(
      function* (
        { tenantId }: TenantScope,
        agentId: AgentId,
        request: StartExperiment,
        author: Actor | null,
        curated: QaPair | null = null
      ) {
        const scope = { tenantId, agentId }
        const agent = yield* agents.find(scope, agentId).pipe(orNoSuch("agent"))
        const { baselineVersion, maxTokens = defaultMaxTokens, model } = request
        const { settings, version } = yield* versionToRun(scope, request, agent)
        const questions = yield* request.runIds === undefined
          ? ofCases(scope, request.cases)
          : ofTurns(scope, request.runIds)
        const options = { maxTokens, author, curated }
        const given = request.baseline === undefined ? null : yield* get(scope, request.baseline)
        if (given !== null && given.agentId !== agentId) return yield* noSuch("experiment")
        if (given !== null && (given.kind === "turns") !== (questions.casesHash === null))
          return yield* differentKind()
        const baselineId =
          baselineVersion === undefined
            ? (given?.id ?? null)
            : yield* enqueue(scope, yield* versionOf(scope, baselineVersion), questions, {
                ...options,
                baselineId: null
              })
        const run = { version, settings: model === undefined ? settings : { ...settings, model } }
        return yield* get(scope, yield* enqueue(scope, run, questions, { ...options, baselineId }))
      },
      sql.withTransaction,
      Effect.catchTags({ SqlError: Effect.die, JobQueueError: unavailable }),
      // An erasure locks the turns in any order.
      (starting) => retryDeadlocks(starting)
    )

    /** Newest first. */
    const list = Effect.fn("Experiments.list")(function* (
      tenant: TenantScope,
      agentId: AgentId,
      page: PageRequest
    ) {
      return yield* store.page(yield* agents.findScope(tenant, agentId).pipe(orNoSuch("agent")), page)
    })

    /**
     * Returns the experiment with its figures so far. The comparison with the baseline is there once both have ended.
     */
    const report = Effect.fn("Experiments.report")(function* (scope: TenantScope, id: ExperimentId) {
      const experiment = yield* get(scope, id)
      const outcomes = yield* store.listOutcomes(scope, id)
      const baseline =
        experiment.baselineId === null ? Option.none() : yield* store.find(scope, experiment.baselineId)
      const comparison =
        Option.isSome(baseline) && hasEnded(baseline.value) && hasEnded(experiment)
          ? yield* comparisonOf(yield* store.listOutcomes(scope, baseline.value.id), outcomes)
          : null
      const { errors, failed, figures, latencyMs, tokens } = reportOf(outcomes)
      const summary: ExperimentReport = { failed, errors, figures, latencyMs, tokens, comparison }
      return { experiment, report: summary }
    })

    const results = Effect.fn("Experiments.results")(function* (
      scope: TenantScope,
      id: ExperimentId,
      page: { readonly after: number; readonly limit: number }
    ) {
      yield* get(scope, id)
      return yield* store.results(scope, id, page)
    })

    /** Cancels the experiment; results so far stay. CONFLICT when it has ended. */
    const cancel = Effect.fn("Experiments.cancel")(function* (scope: TenantScope, id: ExperimentId) {
      yield* get(scope, id)
      if (!(yield* store.end(scope, id, "cancelled")))
        return yield* new Conflict({ message: "The experiment has ended." })
      return yield* get(scope, id)
    })

    const remove = Effect.fn("Experiments.remove")(function* (scope: TenantScope, id: ExperimentId) {
      if (!(yield* store.remove(scope, id))) return yield* noSuch("experiment")
    })

    return { start, list, report, results, cancel, remove } as const
  })
}) {}
